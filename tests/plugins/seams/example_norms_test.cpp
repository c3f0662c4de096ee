// SPDX-License-Identifier: Apache-2.0
// A row's own column example_norms, in a plugin of others.
#include <gmock/gmock.h>

#include "seams_test.hpp"

namespace tenon::test {
namespace {

constexpr std::string_view kModel = R"(graph {
  input %x: f64[n, 3, 2]
  input %w: f64[2]
  constant %axes: i64[2] = [1, 2]
  %s: f64[n, 3, 2] = seams:Scaled(%x, %w) @scaled
  %t: f64[n, 3, 2] = Tanh(%s) @tanh
  %l: f64[n] = ReduceSum(%t, %axes) {keepdims = 0} @loss
  output losses = %l
}
)";

class ExampleNorms : public SeamsTest {
 protected:
  std::vector<double> norms(const json& options, json* report) {
    auto made = apply(parse(kModel), "autodiff.example_norms", options, {}, report);
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    if (!made.ok()) return {};
    auto plan = Plan::compile(ctx_, made->view(), {}, R"({"backend": "reference"})");
    EXPECT_TRUE(plan.ok()) << text_of(plan.status());
    if (!plan.ok()) return {};
    std::vector<double> numbers;
    for (int i = 0; i < 24; ++i)
      numbers.push_back(std::sin(i));
    Tensor x = tensor<double>(TN_F64, {4, 3, 2}, numbers);
    Tensor w = tensor<double>(TN_F64, {2}, {0.5, -1.5});
    EXPECT_EQ(text_of(plan->run(std::vector{x.dl(), w.dl()})), "");
    return this->numbers<double>((*plan)[1]);
  }
};

TEST_F(ExampleNorms, OfARowOfOthersAreThoseOfItsGradients) {
  json by_rule, by_vmap;
  std::vector<double> fast = norms({{"wrt", json::array({"w"})}}, &by_rule);
  std::vector<double> slow = norms({{"wrt", json::array({"w"})}, {"by", "vmap"}}, &by_vmap);
  EXPECT_EQ(by_rule["by_rules"], 1) << by_rule.dump();
  EXPECT_EQ(by_vmap["by_rules"], 0);
  ASSERT_EQ(fast.size(), 4u);
  // Example 0 by hand: the gradient of sum tanh(x w) by w.
  double gradient[2] = {0, 0};
  const double w[2] = {0.5, -1.5};
  for (int i = 0; i < 6; ++i) {
    double x = std::sin(i), t = std::tanh(x * w[i % 2]);
    gradient[i % 2] += (1 - t * t) * x;
  }
  EXPECT_NEAR(fast[0], std::hypot(gradient[0], gradient[1]), 1e-12);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(fast[i], slow[i], 1e-12);
}

}  // namespace
}  // namespace tenon::test
