// SPDX-License-Identifier: Apache-2.0
// trainer.adafactor: weights of more than two axes as matrices, and parameters of 16 bits.
#include <cmath>

#include "stepped.hpp"

namespace tenon::test {
namespace {

class Adafactor : public Stepped {
 protected:
  // Parameters with gradients 2 x, stepped at rate 0.1.
  void start(const std::map<std::string, Type>& parameters, const json& options) {
    tn_graph* raw = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
    OwnedGraph graph = OwnedGraph::take(raw);
    Status built = [&]() -> Status {
      TN_TRY(edit, Edit::begin(raw));
      for (const auto& [name, type] : parameters) {
        TN_TRY(x, edit.input(name, type));
        TN_TRY(gradient, edit.op("Add", {x, x}));
        TN_CHECK(edit.output(cat("grad/", name), gradient));
      }
      return edit.commit();
    }();
    ASSERT_EQ(text_of(built), "");
    step_by(graph, "trainer.adafactor", options);
  }
  void run() { run_at(TN_F32, 0.1f); }
};

TEST_F(Adafactor, FlattenMakesMatricesOfWeights) {
  start({{"folded", Type(TN_F32, {2, 3, 2})}, {"flat", Type(TN_F32, {2, 6})}}, {{"flatten", true}});
  std::vector<float> x;
  for (int i = 0; i < 12; ++i)
    x.push_back(std::sin(static_cast<float>(3 * i + 1)));
  for (auto [name, dims] : {std::pair{"folded", std::vector<int64_t>{2, 3, 2}},
                            std::pair{"flat", std::vector<int64_t>{2, 6}}})
    set(name, *Tensor::of<float>(ctx_, TN_F32, dims, x));
  for (int i = 0; i < 3; ++i)
    run();
  EXPECT_EQ(step_.view().find("folded/row_var").type().dims, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(step_.view().find("folded/col_var").type().dims, (std::vector<int64_t>{1, 6}));
  EXPECT_EQ(state("folded"), state("flat"));
  EXPECT_NE(state("flat")[0], static_cast<double>(x[0]));
}

// A row whose gradients are 0: the smallest second moment keeps the quotient a number.
TEST_F(Adafactor, ParametersOf16BitsStayNumbers) {
  for (uint32_t dtype : {TN_F16, TN_BF16}) {
    start({{"w", Type(dtype, {2, 2})}, {"v", Type(dtype, {2})}}, json::object());
    auto bits = [&](bool is_one) -> uint16_t {
      return static_cast<uint16_t>(!is_one ? 0 : dtype == TN_F16 ? 0x3c00 : 0x3f80);
    };
    const std::vector<uint16_t> w{bits(true), bits(true), 0, 0}, v{bits(true), 0};
    set("w", *Tensor::of<uint16_t>(ctx_, dtype, std::vector<int64_t>{2, 2}, w));
    set("v", *Tensor::of<uint16_t>(ctx_, dtype, std::vector<int64_t>{2}, v));
    run();
    const std::vector<double> matrix = state("w"), vector = state("v");
    EXPECT_LT(matrix[0], 1);
    EXPECT_GT(matrix[0], 0.5);
    EXPECT_EQ(matrix[2], 0);
    EXPECT_LT(vector[0], 1);
    EXPECT_EQ(vector[1], 0);
  }
}

}  // namespace
}  // namespace tenon::test
