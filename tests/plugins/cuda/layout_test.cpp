// SPDX-License-Identifier: Apache-2.0
// Which values lie with channels last, and what is copied for it.

#include <algorithm>

#include "plan_fixture.hpp"

namespace tenon::cuda {
namespace {

class Layouts : public test::Plans {
 protected:
  // Operators of the steps, in order.
  static std::vector<std::string> operators(const Plan& plan) {
    std::vector<std::string> out;
    for (const Step& step : plan.steps)
      out.push_back(step.op);
    return out;
  }
  using Steps = std::vector<std::string>;
};

TEST_F(Layouts, StayWithChannelsLastFromConvolutionToConvolution) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[2, 3, 8, 8]
  input %s: f32[4, 1, 1]
  constant %w: f32[4, 3, 1, 1] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
  constant %v: f32[2, 4, 2, 1] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
  %a: f32[2, 4, 8, 8] = Conv(%x, %w) @first
  %b: f32[2, 4, 8, 8] = Mul(%a, %s) @scale
  %c: f32[2, 4, 8, 8] = Add(%b, %a) @residual
  %d: f32[2, 4, 4, 4] = MaxPool(%c) {kernel_shape = ints [2, 2], strides = ints [2, 2]} @pool
  %e: f32[2, 2, 3, 4] = Conv(%d, %v) @second
  %f: f32[2, 2, 1, 1] = GlobalAveragePool(%e) @mean
  output f = %f
}
)");
  EXPECT_EQ(operators(plan),
            (Steps{"layout", "Conv", "Add", "MaxPool", "Conv", "GlobalAveragePool"}));
  ASSERT_EQ(plan.constants.size(), 2u);
  EXPECT_FALSE(plan.constants[0].channels_last);  // kernels of 1x1 lie the same either way
  EXPECT_TRUE(plan.constants[1].channels_last);
}

TEST_F(Layouts, GoBackWhereRowsAreWanted) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[2, 3, 4, 4]
  input %w: f32[4, 3, 1, 1]
  constant %shape: i64[2] = [2, 64]
  %a: f32[2, 4, 4, 4] = Conv(%x, %w) @conv
  %b: f32[2, 64] = Reshape(%a, %shape) @flat
  %c: f32[2, 64] = Softmax(%b) @softmax
  output c = %c
  output a = %a
}
)");
  EXPECT_EQ(operators(plan), (Steps{"layout", "Conv", "layout", "Softmax"}));
}

// One that varies along the channels and a spatial axis lies in rows, and so does what reads it.
TEST_F(Layouts, FitOperandsOfFewerAxes) {
  const std::pair<const char*, bool> operands[] = {{"4, 1, 3", true},
                                                   {"4, 3, 1", true},
                                                   {"1, 3, 3", false},
                                                   {"3, 3", false},
                                                   {"4, 1, 1", false}};
  for (const auto& [dims, is_in_rows] : operands) {
    SCOPED_TRACE(dims);
    Plan plan = plan_of(cat(R"(graph {
  input %x: f32[2, 3, 3, 3]
  input %w: f32[4, 3, 1, 1]
  input %m: f32[)",
                            dims, R"(]
  %c: f32[2, 4, 3, 3] = Conv(%x, %w) @conv
  %y: f32[2, 4, 3, 3] = Mul(%c, %m) @scale
  output y = %y
}
)"));
    EXPECT_EQ(operators(plan), is_in_rows ? (Steps{"layout", "Conv", "layout", "Mul"})
                                          : (Steps{"layout", "Conv", "Mul", "layout"}));
    check(plan);
  }
}

TEST_F(Layouts, OfWeightsAreTheirStates) {
  Plan plan = plan_of(R"(graph {
  input %w: f32[4, 3, 3, 3]
  input %x: f32[2, 3, 4, 4]
  input %dy: f32[2, 4, 2, 2]
  input %rate: f32[]
  constant %shape: i64[4] = [4, 3, 3, 3]
  %dw: f32[4, 3, 3, 3] = tenon:ConvWeightGrad(%x, %dy, %shape) @grad
  %d: f32[4, 3, 3, 3] = Mul(%dw, %rate) @scale
  %n: f32[4, 3, 3, 3] = Sub(%w, %d) @update
  output n = %n
  state %w -> %n
}
)");
  // The gradient is transposed, not the weight and its update.
  EXPECT_EQ(operators(plan), (Steps{"layout", "layout", "tenon.ConvWeightGrad", "layout", "Sub"}));
}

TEST_F(Layouts, OfConstantsAreTransposedWhenTheyAreLoaded) {
  auto tensor = Tensor::of<float>(ctx_, TN_F32, std::vector<int64_t>{1, 2, 3},
                                  std::vector<float>{0, 1, 2, 3, 4, 5});
  ASSERT_TRUE(tensor.ok());

  std::vector<unsigned char> bytes = channels_last_bytes(*tensor);

  std::vector<float> numbers(6);
  ASSERT_EQ(bytes.size(), 24u);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<unsigned char*>(numbers.data()));
  EXPECT_EQ(numbers, (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

}  // namespace
}  // namespace tenon::cuda
