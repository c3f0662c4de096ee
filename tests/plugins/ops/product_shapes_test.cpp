// SPDX-License-Identifier: Apache-2.0
// The operators that multiply matrices agree on which shapes go together.

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

struct Product {
  const char* op;
  const char* type;       // of the operands
  const char* arguments;  // around %a and %b
  const char* result;
};

class ProductShapes : public PluginTest, public testing::WithParamInterface<Product> {
 protected:
  // What is wrong with the shapes; empty: nothing. `out` must be what is inferred.
  std::string check(const char* a, const char* b, const char* out) {
    EXPECT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
    const Product& product = GetParam();
    std::string text =
        cat("graph {\n  input %a: ", product.type, a, "\n  input %b: ", product.type, b,
            "\n  constant %s: f32[] = [0.5]\n  constant %z: u8[] = [7]\n  %y: ", product.result,
            out, " = ", product.op, product.arguments, " @product\n  output y = %y\n}\n");
    tn_graph* raw = nullptr;
    std::string why = text_of(Status(services.graph->parse(ctx_, str(text), &raw)));
    OwnedGraph owned = OwnedGraph::take(raw);
    return why;
  }
};

TEST_P(ProductShapes, BroadcastBatchesOfMatrices) {
  EXPECT_EQ(check("[4, 1, 2, 3]", "[5, 3, 6]", "[4, 5, 2, 6]"), "");
  EXPECT_EQ(check("[n, 2, 3]", "[3, 6]", "[n, 2, 6]"), "");
}

TEST_P(ProductShapes, NameTheSizesThatDiffer) {
  std::string inner = check("[2, 3]", "[4, 6]", "[2, 6]");
  EXPECT_NE(inner.find("inner dimensions: expected equal ones, got 3 and 4"), std::string::npos)
      << inner;
  std::string batch = check("[4, 2, 3]", "[5, 3, 6]", "[4, 2, 6]");
  EXPECT_NE(batch.find("batch axis 0: expected 4 or 1, got 5"), std::string::npos) << batch;
}

INSTANTIATE_TEST_SUITE_P(Operators,
                         ProductShapes,
                         testing::Values(Product{"MatMul", "f32", "(%a, %b)", "f32"},
                                         Product{"MatMulInteger", "u8", "(%a, %b, %z, %z)", "i32"},
                                         Product{"QLinearMatMul", "u8",
                                                 "(%a, %s, %z, %b, %s, %z, %s, %z)", "u8"}),
                         [](const auto& tested) { return std::string(tested.param.op); });

}  // namespace
}  // namespace tenon::test
