// SPDX-License-Identifier: Apache-2.0
// Convolutions become graphs of cuDNN, with execution plans for GPUs that are not here: cuDNN takes
// a device in words. What runs on the device is in device_test.cpp.

#include <gtest/gtest.h>

#include "device/convolution_graph.hpp"
#include "plugins/plugin_session.hpp"

namespace tenon::cuda {
namespace {

// Numbers of one kind of GPU, as cuDNN writes them.
std::string profile(int architecture, int multiprocessors, int shared_bytes) {
  return nlohmann::json{{"maxGridSize", {2147483647, 65535, 65535}},
                        {"maxBlockSize", {1024, 1024, 64}},
                        {"regsPerBlock", 65536},
                        {"multiProcessorCount", multiprocessors},
                        {"warpSize", 32},
                        {"maxSharedMemoryPerBlock", 49152},
                        {"maxSharedMemoryPerBlockOptin", shared_bytes},
                        {"reservedSharedMemoryPerBlock", 1024},
                        {"maxRegistersPerSM", 65536},
                        {"maxCtasPerSM", 32},
                        {"maxThreadsPerBlock", 1024},
                        {"maxThreadsPerSM", 2048},
                        {"pciDeviceId", 0},
                        {"isTccDriver", 0},
                        {"supportCoopLaunch", 1},
                        {"totalGlobalMem", 80000000000},
                        {"smClockRateKHz", 1410000},
                        {"memClockRateKHz", 1593000},
                        {"l2CacheSize", 41943040},
                        {"cudaDeviceId", 0},
                        {"deviceVer", architecture * 10},
                        {"driverVer", 13000},
                        {"deviceName", "a GPU"}}
      .dump();
}

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

class CudnnPlans : public tenon::test::PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
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
  for (auto [architecture, multiprocessors, shared_bytes] :
       {std::tuple(80, 108, 166912), {90, 132, 232448}}) {
    Result<Descriptor> device =
        cudnn_device(*cudnn_, profile(architecture, multiprocessors, shared_bytes));
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
  Result<Descriptor> device = cudnn_device(*cudnn_, profile(90, 132, 232448));
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
  Result<Descriptor> device = cudnn_device(*cudnn_, profile(90, 132, 232448));
  ASSERT_TRUE(device.ok());
  Convolution c = convolution(kForms[0], TN_F32, ConvolutionKind::kForward);
  c.p = 1;  // not what comes out

  Result<ConvolutionGraph> made = ConvolutionGraph::make(*cudnn_, c, false, *device);

  ASSERT_FALSE(made.ok());
  std::string why = made.status().message();
  EXPECT_NE(why.find("cuDNN"), std::string::npos) << why;
}

TEST_F(CudnnPlans, RefuseADeviceThatIsNotDescribed) {
  Result<Descriptor> device = cudnn_device(*cudnn_, "{}");

  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.status().message().find("maxGridSize"), std::string::npos);
}

}  // namespace
}  // namespace tenon::cuda
