// SPDX-License-Identifier: Apache-2.0
// Every pointwise row and every intrinsic, its value and its slope in closed form (slopes.hpp): at
// 0 and -0, at kinks and beside them, at infinities, denormals and the largest numbers, in every
// float type, on every backend of the CPU. A row without a closed form fails.
#include "plugins/autodiff/slopes.hpp"

#include <set>

#include "plugins/autodiff/slope_fixture.hpp"

namespace tenon::test {
namespace {

class Slope : public SlopeFixture {
 protected:
  void check(const Slopes& row, const FloatType& type, const std::string& backend) {
    bool is_binary = row.dy != nullptr;
    std::vector<Numbers> at(is_binary ? 2 : 1);
    if (is_binary) {
      for (double x : few_points(type))
        for (double y : few_points(type)) {
          at[0].push_back(x);
          at[1].push_back(y);
        }
    } else {
      at[0] = points(type, row.at);
    }
    OwnedGraph f = graph(row, type, at[0].size()), g;
    ASSERT_NE(f.get(), nullptr);
    json argnums = is_binary ? json{0, 1} : json{0};
    ASSERT_EQ(apply(f.get(), "autodiff.vjp", {{"argnums", argnums}}, g), "");
    std::vector<Tensor> inputs, out;
    at.emplace_back(at[0].size(), 1.0);
    for (const Numbers& numbers : at) {
      Result<Tensor> made = tensor(ctx_, type, numbers);
      ASSERT_TRUE(made.ok());
      inputs.push_back(*made);
    }
    ASSERT_EQ(text_of(evaluate(backend, g, inputs, out)), "");
    ASSERT_EQ(out.size(), is_binary ? 3u : 2u);
    for (size_t i = 0; i < at[0].size(); ++i) {
      double x = at[0][i], y = is_binary ? at[1][i] : 0;
      double value = std::isnan(x) || std::isnan(y) ? NAN : row.value(x, y);
      if (!std::isnan(x) && !std::isnan(y)) {
        EXPECT_TRUE(is_near(number(out[0], type, i), value, type))
            << "value at " << x << ", " << y << ": got " << number(out[0], type, i) << ", expected "
            << value;
      }
      if (std::isnan(value)) continue;  // no slope where there is no value
      for (size_t k = 0; k < (is_binary ? 2 : 1); ++k) {
        double expected = (k == 0 ? row.dx : row.dy)(x, y), got = number(out[1 + k], type, i);
        if (std::isnan(expected)) continue;
        EXPECT_TRUE(is_near(got, expected, type)) << "slope " << k << " at " << x << ", " << y
                                                  << ": got " << got << ", expected " << expected;
      }
    }
  }

  void check_all(const std::vector<Slopes>& rows) {
    for (const Slopes& row : rows)
      for (const FloatType& type : kTypes)
        for (const std::string& backend : backends_) {
          SCOPED_TRACE(cat(row.call, " in ", type.name, " on ", backend));
          check(row, type, backend);
        }
  }

  // Whether the row has floating-point results: others are steps, bits or truth values.
  bool has_slopes(const tn_op* row) {
    Result<OwnedGraph> made = sample(row, 1);
    if (!made.ok()) return false;
    std::vector<Value> outputs = made->view().outputs();
    return !outputs.empty() && is_float(outputs[0].dtype());
  }
};

TEST_F(Slope, OfEveryRowIsItsClosedForm) {
  check_all(kSlopes);
}

TEST_F(Slope, OfEveryIntrinsicIsItsClosedForm) {
  check_all(kIntrinsicSlopes);
}

std::set<std::string> types_of(const std::vector<Slopes>& rows) {
  std::set<std::string> out;
  for (const Slopes& row : rows)
    out.insert(std::string(row.call, std::string_view(row.call).find('(')));
  return out;
}

TEST_F(Slope, NoRowIsWithoutAClosedForm) {
  std::set<std::string> known = types_of(kSlopes), intrinsics = types_of(kIntrinsicSlopes);
  for (uint64_t i = 0; i < services.op->count(ctx_); ++i) {
    const tn_op* row = services.op->at(ctx_, i);
    if (!(row->traits & TN_OP_POINTWISE)) continue;
    std::string type(view(row->type));
    if (view(row->domain) == "slope") {
      EXPECT_TRUE(intrinsics.contains(cat("slope:", type))) << type;
    } else if (has_slopes(row)) {
      EXPECT_TRUE(known.contains(type)) << type << ": expected a row in slopes.hpp";
    }
  }
}

// All of abi/expr.md that takes floats and is no truth value. Who adds one brings its slope.
TEST_F(Slope, NoIntrinsicIsWithoutAClosedForm) {
  static_assert(TN_EXPR_ISINF - TN_EXPR_NEG == 30 && TN_EXPR_BITNOT == 47 &&
                    TN_EXPR_ATAN2 - TN_EXPR_ADD == 9 && TN_EXPR_SHR == 87 && TN_EXPR_SELECT == 128,
                "a new intrinsic: a row in intrinsic_rows.cpp and in kIntrinsicSlopes");
  constexpr size_t kOfFloats =
      (TN_EXPR_TRUNC - TN_EXPR_NEG + 1) + (TN_EXPR_ATAN2 - TN_EXPR_ADD + 1) + 1;
  std::set<uint32_t> used;
  for (const Slopes& row : kIntrinsicSlopes) {
    OwnedGraph f = graph(row, kTypes[0], 2);
    Graph view = f.view();
    const tn_expr_program* program = nullptr;
    ASSERT_EQ(text_of(Status(services.op->expr(view.raw, view.nodes()[0].id, &program))), "");
    for (uint64_t i = 0; i < program->count; ++i) {
      uint32_t op = program->nodes[i].op;
      bool is_leaf = op < TN_EXPR_NEG, is_truth = op >= TN_EXPR_EQ && op <= TN_EXPR_XOR;
      if (!is_leaf && !is_truth) used.insert(op);
    }
  }
  EXPECT_EQ(used.size(), kOfFloats);
}

}  // namespace
}  // namespace tenon::test
