// SPDX-License-Identifier: Apache-2.0
// Convolutions become graphs of cuDNN, with execution plans for GPUs that are not here: cuDNN takes
// a device in words. What runs on the device is in device_test.cpp.

#include <gtest/gtest.h>

#include "described_gpu.hpp"
#include "plan_fixture.hpp"
#include "plugins/cuda/networks.hpp"

namespace tenon::cuda {
namespace {

struct Form {
  int64_t n, c, side, k, kernel, pad, stride, groups;
};

// What ResNet-50 and the CNN of the tests are made of, and one of each other kind.
constexpr Form kForms[] = {{32, 3, 224, 64, 7, 3, 2, 1},  {32, 64, 56, 64, 1, 0, 1, 1},
                           {32, 64, 56, 64, 3, 1, 1, 1},  {32, 256, 56, 512, 1, 0, 2, 1},
                           {32, 512, 7, 512, 3, 1, 1, 1}, {64, 1, 28, 8, 3, 1, 1, 1},
                           {64, 8, 14, 16, 3, 1, 1, 1},   {32, 96, 56, 96, 3, 1, 1, 96},
                           {32, 64, 28, 64, 3, 1, 1, 4},  {2, 3, 7, 5, 3, 1, 2, 1}};

Convolution convolution(const Form& form, uint32_t dtype, ConvolutionKind kind) {
  Convolution c;
  c.kind = kind;
  c.dtype = dtype;
  c.n = form.n;
  c.c = form.c;
  c.h = c.width = form.side;
  c.k = form.k;
  c.r = c.s = form.kernel;
  c.p = c.q = (form.side + 2 * form.pad - form.kernel) / form.stride + 1;
  c.groups = form.groups;
  for (int axis = 0; axis < 2; ++axis) {
    c.pad[axis] = form.pad;
    c.stride[axis] = form.stride;
  }
  c.channels_last = true;
  return c;
}

using test::profile;

class CudnnPlans : public test::Plans {
 protected:
  void SetUp() override {
    Plans::SetUp();
    Result<const Cudnn*> opened = Cudnn::get();
    if (!opened.ok()) GTEST_SKIP() << opened.status().message();
    cudnn_ = *opened;
  }
  void expect_plan(const Convolution& form, bool tf32, const Descriptor& device) {
    Result<ConvolutionGraph> made = ConvolutionGraph::make(*cudnn_, form, tf32, device);
    EXPECT_TRUE(made.ok()) << made.status().message();
  }

  const Cudnn* cudnn_ = nullptr;
};

class InType : public CudnnPlans, public testing::WithParamInterface<uint32_t> {};

TEST_P(InType, AreThereForTwoArchitecturesWithoutAGpu) {
  for (int architecture : {80, 90}) {
    Result<Descriptor> device = cudnn_device(*cudnn_, profile(architecture));
    ASSERT_TRUE(device.ok()) << device.status().message();
    for (const Form& form : kForms) {
      for (bool tf32 : {false, true}) {
        if (tf32 && GetParam() != TN_F32) continue;
        Convolution c = convolution(form, GetParam(), ConvolutionKind::kForward);
        expect_plan(c, tf32, *device);
        c.bias = 0;
        expect_plan(c, tf32, *device);
        c.relu = true;
        expect_plan(c, tf32, *device);
        c.z = 0;
        expect_plan(c, tf32, *device);
        c.relu = false;
        expect_plan(c, tf32, *device);
        expect_plan(convolution(form, GetParam(), ConvolutionKind::kInputGrad), tf32, *device);
        expect_plan(convolution(form, GetParam(), ConvolutionKind::kWeightGrad), tf32, *device);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(CudnnPlans,
                         InType,
                         testing::Values(TN_F32, TN_F16, TN_BF16),
                         [](const auto& type) { return dtype_name(type.param); });

TEST_P(InType, AreThereAlongOneAxisAndForSpreadKernels) {
  Result<Descriptor> device = cudnn_device(*cudnn_, profile(90));
  ASSERT_TRUE(device.ok()) << device.status().message();
  for (ConvolutionKind kind :
       {ConvolutionKind::kForward, ConvolutionKind::kInputGrad, ConvolutionKind::kWeightGrad}) {
    Convolution line = convolution({4, 16, 100, 32, 5, 0, 1, 1}, GetParam(), kind);
    line.h = line.r = line.p = 1;  // one axis is two, the first of them 1
    expect_plan(line, false, *device);
    Convolution spread = convolution({4, 16, 20, 32, 3, 2, 1, 1}, GetParam(), kind);
    spread.dilation[0] = spread.dilation[1] = 2;
    spread.p = spread.q = 20;
    expect_plan(spread, false, *device);
  }
}

TEST_F(CudnnPlans, SayWhatThereIsNoPlanFor) {
  Result<Descriptor> device = cudnn_device(*cudnn_, profile(90));
  ASSERT_TRUE(device.ok());
  Convolution c = convolution(kForms[0], TN_F32, ConvolutionKind::kForward);
  c.p = 1;  // not what comes out

  Result<ConvolutionGraph> made = ConvolutionGraph::make(*cudnn_, c, false, *device);

  ASSERT_FALSE(made.ok());
  std::string why = made.status().message();
  EXPECT_NE(why.find("cuDNN"), std::string::npos) << why;
}

// One batch is more than cuDNN counts; the others, grouped and transposed, are as it likes them.
TEST_F(CudnnPlans, DecideWhichNodesAreTaken) {
  Result<Target> target = test::described_target(ctx_, 90);
  ASSERT_TRUE(target.ok()) << target.status().message();
  graph_ = parse(R"(graph {
  input %x: f16[2, 6, 9, 7]
  input %w: f16[9, 2, 3, 3]
  input %b: f16[9]
  input %v: f16[9, 2, 3, 3]
  input %many: f16[3000000000, 1, 1, 1]
  input %one: f16[1, 1, 1, 1]
  %c: f16[2, 9, 9, 7] = Conv(%x, %w, %b) {group = 3, pads = ints [1, 1, 1, 1]} @grouped
  %t: f16[2, 6, 18, 14] = ConvTranspose(%c, %v) {group = 3, strides = ints [2, 2], pads = ints [1, 1, 1, 1], output_padding = ints [1, 1]} @transposed
  %y: f16[3000000000, 1, 1, 1] = Conv(%many, %one) @many
  %z: f16[3000000000, 1, 1, 1] = ConvTranspose(%many, %one) @many_transposed
  output t = %t
  output y = %y
  output z = %z
}
)");
  Imported imported = *import_graph(graph_.get());
  ASSERT_EQ(imported.nodes.size(), 4u);

  EXPECT_EQ(why_not(imported, 0, *target), "");
  EXPECT_EQ(why_not(imported, 1, *target), "");
  for (int many : {2, 3}) {
    EXPECT_EQ(why_not(imported, many), "") << "without asking cuDNN";
    std::string why = why_not(imported, many, *target);
    EXPECT_NE(why.find("cuDNN has no plan for a "), std::string::npos) << why;
    EXPECT_NE(why.find("of float16 [3000000000, 1, 1, 1]"), std::string::npos) << why;
  }
}

// Bias, residual and ReLU of every block are in cuDNN's own plan, and no convolution is left over.
TEST_F(CudnnPlans, TakeAllOfResNetWithItsEpilogues) {
  for (int architecture : {80, 90}) {
    Result<Target> target = test::described_target(ctx_, architecture);
    ASSERT_TRUE(target.ok()) << target.status().message();
    for (const char* dtype : {"f32", "f16", "bf16"}) {
      SCOPED_TRACE(cat(dtype, " on ", architecture));
      tenon::test::ResNet network;
      network.dtype = dtype;
      graph_ = parse(network.network().text);
      Plan asked = plan_for(*target);
      EXPECT_EQ(kernels(asked), kernels(plan_for({ctx_, architecture})));
      EXPECT_FALSE(asked.steps.empty());
    }
  }
}

TEST_F(CudnnPlans, RefuseADeviceThatIsNotDescribed) {
  Result<Descriptor> device = cudnn_device(*cudnn_, "{}");

  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.status().message().find("maxGridSize"), std::string::npos);
}

}  // namespace
}  // namespace tenon::cuda
