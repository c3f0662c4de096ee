// SPDX-License-Identifier: Apache-2.0
// What becomes of products and convolutions for which cuBLASLt and cuDNN have no plan.

#include "plan_fixture.hpp"

namespace tenon::cuda {
namespace {

using test::Plans;

std::string without(bool has_it) {
  return has_it ? "no plan for that" : "";
}

// What cuDNN has no plan for is done behind the convolution; where it has none at all, the node is
// another backend's.
TEST_F(Plans, AskWhetherThereIsAConvolution) {
  plan_of(R"(graph {
  input %x: f32[2, 4, 4, 4]
  input %v: f32[4, 4, 3, 3]
  input %b: f32[4]
  %s: f32[2, 4, 4, 4] = Conv(%x, %v, %b) {pads = ints [1, 1, 1, 1]} @conv
  %r: f32[2, 4, 4, 4] = Add(%s, %x) @sum
  %y: f32[2, 4, 4, 4] = Relu(%r) @relu
  output y = %y
}
)");
  auto only = [&](std::function<std::string(const Convolution&)> check) {
    Target target{ctx_};
    target.why_no_convolution = std::move(check);
    Plan plan = plan_for(target);
    this->check(plan);
    for (const Step& step : plan.steps)
      if (const Convolution* c = std::get_if<Convolution>(&step.work)) return *c;
    return Convolution();
  };

  Convolution all = only([](const Convolution&) { return without(false); });
  EXPECT_TRUE(all.z >= 0 && all.bias >= 0 && all.relu);
  Convolution no_residual = only([](const Convolution& c) { return without(c.z >= 0); });
  EXPECT_TRUE(no_residual.z < 0 && no_residual.bias >= 0 && !no_residual.relu);
  Convolution bare = only([](const Convolution& c) { return without(c.bias >= 0); });
  EXPECT_TRUE(bare.z < 0 && bare.bias < 0 && !bare.relu);

  Target none{ctx_};
  none.why_no_convolution = [](const Convolution&) { return without(true); };
  EXPECT_EQ(why_not(*import_graph(graph_.get()), 0, none), "no plan for that");
  EXPECT_EQ(why_not(*import_graph(graph_.get()), 1, none), "");
  Result<Plan> refused = lower(*import_graph(graph_.get()), none);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), TN_UNIMPLEMENTED);
}

// The same of products.
TEST_F(Plans, AskWhetherThereIsAProduct) {
  plan_of(R"(graph {
  input %x: f32[2, 5, 4]
  input %w: f32[4, 4]
  input %b: f32[4]
  %h: f32[2, 5, 4] = MatMul(%x, %w) @matmul
  %s: f32[2, 5, 4] = Add(%h, %b) @bias
  %r: f32[2, 5, 4] = Add(%s, %x) @residual
  %y: f32[2, 5, 4] = Relu(%r) @relu
  output y = %y
}
)");
  auto only = [&](std::function<std::string(const Product&)> check) {
    Target target{ctx_};
    target.why_no_product = std::move(check);
    Plan plan = plan_for(target);
    this->check(plan);
    for (const Step& step : plan.steps)
      if (const Product* p = std::get_if<Product>(&step.work)) return *p;
    return Product();
  };

  Product all = only([](const Product& p) { return without(p.m != 10 || p.dtype != TN_F32); });
  EXPECT_TRUE(all.c >= 0 && all.bias >= 0 && all.activation == Activation::kRelu);
  Product no_residual = only([](const Product& p) { return without(p.c >= 0); });
  EXPECT_TRUE(no_residual.c < 0 && no_residual.bias >= 0);
  Product bare = only([](const Product& p) { return without(p.bias >= 0); });
  EXPECT_TRUE(bare.c < 0 && bare.bias < 0 && bare.activation == Activation::kIdentity);
}

// Of one form there is no algorithm: that node alone is another backend's.
TEST_F(Plans, LeaveAProductToOthersWhereThereIsNone) {
  graph_ = parse(R"(graph {
  input %x: f32[2, 4]
  input %w: f32[4, 4]
  input %c: f32[2, 4]
  %h: f32[2, 4] = MatMul(%x, %w) @matmul
  %g: f32[2, 4] = Gemm(%h, %w) {transB = 1} @transposed
  %y: f32[2, 4] = Gemm(%h, %w, %c) {beta = 2.0} @added
  output g = %g
  output y = %y
}
)");
  Imported graph = *import_graph(graph_.get());
  Target target{ctx_};
  target.why_no_product = [](const Product& p) { return without(p.transpose_b || p.beta == 2); };

  EXPECT_EQ(why_not(graph, 0, target), "");
  EXPECT_EQ(why_not(graph, 1, target), "no plan for that");
  EXPECT_EQ(why_not(graph, 2, target), "no plan for that");
  Status refused = lower(graph, target).status();
  EXPECT_EQ(refused.code(), TN_UNIMPLEMENTED);
  EXPECT_EQ(refused.message(), "cuda: node transposed: no plan for that");
}

}  // namespace
}  // namespace tenon::cuda
