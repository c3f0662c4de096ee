// SPDX-License-Identifier: Apache-2.0
// One meaning of an expression: every intrinsic over every element type, as backends compute it
// (loops of `reference`, machine code of `onednn`), against the host's own evaluator.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>

#include <gtest/gtest.h>

#include "tenon/sdk/number.hpp"
#undef TN_CHECK  // the host has its own
#undef TN_TRY

#include "folders.hpp"
#include "graph/op_table.hpp"
#include "host/graph/graph_fixture.hpp"
#include "languages/expr_intrinsics.hpp"
#include "plan/partition.hpp"
#include "registry/registry.hpp"

namespace tenon::host::test {
namespace {

struct Kind {
  const char* backend;
  const char* name;
  uint32_t dtype;
  double tolerance;  // relative; 0: the nearest number of the type
};

// As operators see them: the row of an intrinsic is itself over its inputs.
std::string expr_of(const Intrinsic& row) {
  std::string args = row.arity == 1 ? "x" : row.arity == 2 ? "x, y" : "x, y, z";
  return cat(row.name, "(", args, ")");
}

const std::vector<double> kReals{-INFINITY, -40,  -2.5, -2,   -1.5, -1,       -0.75,
                                 -1e-3,     -0.0, 0,    1e-3, 0.5,  0.75,     1,
                                 1.5,       2,    2.5,  3,    40,   INFINITY, NAN};

template <class Number>
Number oracle(const tn_expr_program& program, const std::vector<Number>& inputs) {
  std::vector<const void*> arrays;
  for (const Number& input : inputs)
    arrays.push_back(&input);
  Number out{};
  EXPECT_EQ(text_of(op_service()->evaluate(&program, arrays.data(), arrays.size(), 1, &out)), "");
  return out;
}

std::vector<int64_t> integers(uint32_t dtype) {
  bool is_signed = TN_DTYPE_CODE(dtype) == kDLInt;
  uint32_t bits = TN_DTYPE_BITS(dtype);
  if (dtype == TN_BOOL) return {0, 1};
  uint64_t top = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  std::vector<int64_t> out{0, 1, 2, 3, 5, 7, 31, 63, 100};
  if (!is_signed) {
    out.insert(out.end(), {static_cast<int64_t>(top), static_cast<int64_t>(top - 1)});
    return out;
  }
  auto most = static_cast<int64_t>(top >> 1);
  out.insert(out.end(), {-1, -2, -3, -7, -100, most, most - 1, -most, -most - 1});
  return out;
}

class Expression : public testing::TestWithParam<Kind> {
 protected:
  struct Case {  // one graph of one node
    Ref<tn_graph> graph;
    const tn_expr_program* program = nullptr;
    uint32_t out_dtype = TN_DTYPE_NONE;
  };

  void SetUp() override {
    session_ =
        std::make_unique<Session>(RegistryConfig{{tenon::test::kPluginFolder}, false, false});
    if (!has_backend()) GTEST_SKIP() << "the backend " << GetParam().backend << " is not built";
  }
  bool has_backend() {
    auto all = session_->registry->described("tenon.backend/1");
    return std::ranges::count(all, GetParam().backend, &ComponentText::id) > 0;
  }
  tn_ctx* ctx() { return session_->own; }

  // Falsy graph: the type has no such operator.
  Case make(const Intrinsic& row) {
    const std::string& type = texts_.emplace_back(cat("Sweep_", row.name));
    const std::string& expr = texts_.emplace_back(expr_of(row));
    tn_op op = op_row(type, TN_OP_POINTWISE, "", expr);
    EXPECT_EQ(session_->ops->add(&op, ctx()).text(), "");
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(graphs.create(ctx(), &raw)), "");
    Case made{Ref<tn_graph>::take(raw)};
    tn_edit* edit = nullptr;
    EXPECT_EQ(text_of(edits.begin(raw, &edit)), "");
    tn_value_id in[3], out = 0;
    for (uint32_t i = 0; i < row.arity; ++i) {
      EXPECT_EQ(text_of(edits.add_input(edit, str(cat("x", i)),
                                        TypeOf(GetParam().dtype, {-1}, {"n"}), &in[i])),
                "");
    }
    tn_node_desc desc{};
    desc.struct_size = sizeof desc;
    desc.type = str(type);
    desc.inputs = in;
    desc.n_inputs = row.arity;
    desc.n_outputs = 1;
    tn_node_id node = 0;
    std::string refused = text_of(edits.add_node(edit, &desc, &node, &out));
    if (refused.empty()) {
      EXPECT_EQ(text_of(edits.add_output(edit, str("y"), out)), "");
    }
    if (!refused.empty() || !text_of(edits.commit(edit)).empty()) {
      if (!refused.empty()) edits.rollback(edit);
      return {};
    }
    if (!text_of(op_service()->expr(raw, node, &made.program)).empty()) return {};
    tn_type type_out{};
    type_out.struct_size = sizeof type_out;
    EXPECT_EQ(text_of(graphs.value_type(raw, out, &type_out)), "");
    made.out_dtype = type_out.dtype;
    return made;
  }

  // Every combination of the values as `arity` columns.
  template <class T>
  static std::vector<std::vector<T>> combined(std::vector<T> values, uint32_t arity) {
    if (arity == 3 && values.size() > 8) values = {values[0], values[4], values[5], values[8]};
    std::vector<std::vector<T>> columns(arity);
    size_t n = 1;
    for (uint32_t i = 0; i < arity; ++i)
      n *= values.size();
    for (size_t at = 0; at < n; ++at)
      for (size_t i = 0, rest = at; i < arity; ++i, rest /= values.size())
        columns[i].push_back(values[rest % values.size()]);
    return columns;
  }

  static tn_status* give(void* self, uint64_t, const DLTensor* proto, DLTensor* out) {
    auto& test = *static_cast<Expression*>(self);
    auto made = alloc_tensor(test.ctx(), dtype_of(proto->dtype), {proto->shape, 1});
    if (!made.ok()) return made.status().release();
    test.result_ = *made;
    *out = test.result_->dl;
    return nullptr;
  }

  // Runs the node on the backend alone; false where it is left to another one.
  bool run(const Case& one, const std::vector<Ref<tn_tensor>>& in) {
    std::string options = cat(R"({"backend": ")", GetParam().backend, "\"}");
    auto plan = make_plan(ctx(), one.graph.get(), {}, options);
    EXPECT_TRUE(plan.ok()) << plan.status().text();
    std::vector<const DLTensor*> views;
    for (const auto& tensor : in)
      views.push_back(&tensor->dl);
    tn_outputs outputs{this, give};
    Status ran = run_plan(plan->get(), {views, &outputs});
    EXPECT_TRUE(ran.ok()) << ran.text();
    return ran.ok() && fallbacks_of(plan->get()).empty();
  }

  template <class T>
  Ref<tn_tensor> tensor(uint32_t dtype, const std::vector<T>& numbers) {
    auto made = alloc_tensor(ctx(), dtype, std::vector<int64_t>{int64_t(numbers.size())});
    EXPECT_TRUE(made.ok());
    std::memcpy((*made)->dl.data, numbers.data(), numbers.size() * sizeof(T));
    return *made;
  }
  // Numbers of any type, from what holds them all.
  template <class From>
  Ref<tn_tensor> tensor_of(const std::vector<From>& from) {
    uint32_t dtype = GetParam().dtype;
    auto as = [&](auto zero) {
      std::vector<decltype(zero)> out;
      for (From one : from)
        out.push_back(static_cast<decltype(zero)>(one));
      return tensor(dtype, out);
    };
    if (dtype == TN_F32) return as(float{});
    if (dtype == TN_F64) return as(double{});
    switch (TN_DTYPE_BITS(dtype)) {  // the same bits, signed or not
      case 16:
        return as(uint16_t{});
      case 32:
        return as(uint32_t{});
      case 64:
        return as(uint64_t{});
      default:
        return as(uint8_t{});
    }
  }

  void sweep_reals(const Intrinsic& row, const Case& one, int& ran) {
    auto columns = combined(kReals, row.arity);
    std::vector<Ref<tn_tensor>> in;
    for (const auto& column : columns)
      in.push_back(tensor_of(column));
    if (!run(one, in)) return;
    ++ran;
    with_numbers(result_->dl, [&](const auto* got) {
      for (size_t i = 0; i < columns[0].size(); ++i) {
        std::vector<double> given;
        for (const auto& tensor : in)
          with_numbers(tensor->dl,
                       [&](const auto* x) { given.push_back(static_cast<double>(x[i])); });
        double want = oracle(*one.program, given), is = static_cast<double>(got[i]);
        if (one.out_dtype == TN_F32) want = static_cast<float>(want);
        if (one.out_dtype == TN_BOOL) want = want != 0;
        bool same = std::isnan(want) ? std::isnan(is) : want == is;
        if (!same && std::isfinite(want))
          same = std::abs(is - want) <= GetParam().tolerance * std::max(std::abs(want), 1e-2);
        EXPECT_TRUE(same) << expr_of(row) << " of " << given[0] << ", " << given.back()
                          << ": expected " << want << ", got " << is;
      }
    });
  }

  void sweep_integers(const Intrinsic& row, const Case& one, int& ran) {
    auto columns = combined(integers(GetParam().dtype), row.arity);
    std::vector<Ref<tn_tensor>> in;
    for (const auto& column : columns)
      in.push_back(tensor_of(column));
    if (!run(one, in)) return;
    ++ran;
    with_numbers(result_->dl, [&](const auto* got) {
      for (size_t i = 0; i < columns[0].size(); ++i) {
        std::vector<int64_t> given;
        for (const auto& column : columns)
          given.push_back(column[i]);
        int64_t want = oracle(*one.program, given), is = static_cast<int64_t>(got[i]);
        if (one.out_dtype == TN_BOOL) want = want != 0;
        EXPECT_EQ(is, want) << expr_of(row) << " of " << given[0] << ", " << given.back();
      }
    });
  }

  std::deque<std::string> texts_;  // of rows, which the session reads
  std::unique_ptr<Session> session_;
  Ref<tn_tensor> result_;
};

TEST_P(Expression, IsWhatTheHostSaysForEveryIntrinsic) {
  bool is_real = TN_DTYPE_CODE(GetParam().dtype) == kDLFloat;
  int possible = 0, ran = 0;
  for (const Intrinsic& row : intrinsics()) {
    if (is_real ? !row.real : !row.integer) continue;
    Case one = make(row);
    if (!one.program) continue;
    ++possible;
    is_real ? sweep_reals(row, one, ran) : sweep_integers(row, one, ran);
    result_ = Ref<tn_tensor>();
  }
  RecordProperty("intrinsics", possible);
  RecordProperty("run_by_the_backend", ran);
  EXPECT_GE(possible, GetParam().dtype == TN_BOOL ? 8 : 30);
  bool runs_all = std::string_view(GetParam().backend) == "reference" || GetParam().dtype == TN_F32;
  if (runs_all) {
    EXPECT_EQ(ran, possible) << "the backend left some to another one";
  }
}

constexpr Kind kKinds[] = {
    {"reference", "f32", TN_F32, 0},   {"reference", "f64", TN_F64, 0},
    {"reference", "i8", TN_I8, 0},     {"reference", "i16", TN_I16, 0},
    {"reference", "i32", TN_I32, 0},   {"reference", "i64", TN_I64, 0},
    {"reference", "u8", TN_U8, 0},     {"reference", "u16", TN_U16, 0},
    {"reference", "u32", TN_U32, 0},   {"reference", "u64", TN_U64, 0},
    {"reference", "bool", TN_BOOL, 0}, {"onednn", "f32", TN_F32, 1e-5},
    {"onednn", "f64", TN_F64, 1e-12},  {"onednn", "i8", TN_I8, 0},
    {"onednn", "i16", TN_I16, 0},      {"onednn", "i32", TN_I32, 0},
    {"onednn", "i64", TN_I64, 0},      {"onednn", "u8", TN_U8, 0},
    {"onednn", "u16", TN_U16, 0},      {"onednn", "u32", TN_U32, 0},
    {"onednn", "u64", TN_U64, 0},      {"onednn", "bool", TN_BOOL, 0},
};
INSTANTIATE_TEST_SUITE_P(Types, Expression, testing::ValuesIn(kKinds), [](const auto& one) {
  return cat(one.param.backend, "_", one.param.name);
});

}  // namespace
}  // namespace tenon::host::test
