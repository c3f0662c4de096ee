// SPDX-License-Identifier: Apache-2.0
// Every pointwise row and every intrinsic, its value and its slope in closed form (slopes.hpp): at
// 0 and -0, at kinks and beside them, at infinities, denormals and the largest numbers, in every
// float type, on every backend of the CPU. A row without a closed form fails.
#include "plugins/autodiff/slopes.hpp"

#include <cfloat>
#include <set>

#include "plugins/autodiff/row_samples.hpp"

namespace tenon::test {
namespace {

struct FloatType {
  uint32_t dtype;
  const char* name;
  double epsilon, least, least_normal, most;
  double roundings;  // that a slope may be off by: nodes round to the type one after the other
};
constexpr FloatType kTypes[] = {
    {TN_F64, "f64", 0x1p-52, 0x1p-1074, 0x1p-1022, DBL_MAX, 64},
    {TN_F32, "f32", 0x1p-23, 0x1p-149, 0x1p-126, double{FLT_MAX}, 16},
    {TN_F16, "f16", 0x1p-10, 0x1p-24, 0x1p-14, 65504, 8},
    {TN_BF16, "bf16", 0x1p-7, 0x1p-133, 0x1p-126, 0x1.fep127, 8},
};

float bf16_of(double x) {
  auto narrow = static_cast<float>(x);
  uint32_t bits = std::bit_cast<uint32_t>(narrow);
  if (std::isnan(narrow)) return narrow;
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U);
}
double rounded(double x, const FloatType& type) {
  if (type.dtype == TN_F32) return double{static_cast<float>(x)};
  if (type.dtype == TN_F16) return static_cast<double>(static_cast<_Float16>(x));
  return type.dtype == TN_BF16 ? double{bf16_of(x)} : x;
}

class Slope : public RowSamples {
 protected:
  void SetUp() override {
    RowSamples::SetUp();
    std::string rows = cat(kTestPluginFolder, "/slopes/intrinsics.so");
    ASSERT_EQ(text_of(Status(tenon_plugin_load(session_, str(rows)))), "");
    backends_ = {"reference"};
    for (const char* plugin : {"fusion", "onednn"})
      has_onednn_ = Status(tenon_plugin_load(session_, str(plugin))).ok();
    if (has_onednn_) backends_.emplace_back("onednn");
  }

  static std::vector<double> points(const FloatType& type, const std::vector<double>& more) {
    std::vector<double> out = {0};
    for (double at : {0.5, 1.0, 2.0, 3.0})  // where rows have kinks, and a step beside them
      for (double x : {at * (1 - 4 * type.epsilon), at, at * (1 + 4 * type.epsilon)})
        out.push_back(x);
    for (double x : {type.least, type.least_normal, 1e-3, 0.1, 0.3, 6.0, 20.0, 1e3, type.most,
                     static_cast<double>(INFINITY)})
      out.push_back(x);
    for (size_t i = 0, n = out.size(); i < n; ++i)
      out.push_back(-out[i]);
    out.insert(out.end(), more.begin(), more.end());
    out.push_back(NAN);
    for (double& x : out)
      x = rounded(x, type);
    return out;
  }
  // Of two inputs each with each, and without the ends of the range, where a power's neighbours
  // overflow.
  static std::vector<double> few_points(const FloatType& type) {
    std::vector<double> out = {0, -0.0, NAN, INFINITY, -INFINITY};
    for (double x : {0.1, 0.5, 1.0, 1 + type.epsilon, 2.0, 3.0, 20.0})
      out.insert(out.end(), {rounded(x, type), rounded(-x, type)});
    return out;
  }

  static Result<Tensor> tensor(tn_ctx* ctx, const FloatType& type, const Numbers& numbers) {
    TN_TRY(made, Tensor::zeros(ctx, type.dtype, std::vector{int64_t(numbers.size())}));
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (type.dtype == TN_F64) made.data<double>()[i] = numbers[i];
      if (type.dtype == TN_F32) made.data<float>()[i] = static_cast<float>(numbers[i]);
      if (type.dtype == TN_F16) made.data<_Float16>()[i] = static_cast<_Float16>(numbers[i]);
      if (type.dtype == TN_BF16)
        made.data<uint16_t>()[i] =
            static_cast<uint16_t>(std::bit_cast<uint32_t>(bf16_of(numbers[i])) >> 16);
    }
    return Result<Tensor>(std::move(made));
  }
  static double number(const Tensor& from, const FloatType& type, size_t i) {
    if (type.dtype == TN_F64) return from.data<double>()[i];
    if (type.dtype == TN_F32) return double{from.data<float>()[i]};
    if (type.dtype == TN_F16) return static_cast<double>(from.data<_Float16>()[i]);
    uint32_t bits = uint32_t{from.data<uint16_t>()[i]} << 16;
    return double{std::bit_cast<float>(bits)};
  }

  OwnedGraph graph(const Slopes& row, const FloatType& type, size_t n) {
    std::string text = "graph {\n";
    for (const char* name : {"%x", "%y"})
      if (is_read(row, name)) text += cat("  input ", name, ": ", type.name, "[", n, "]\n");
    struct Number {
      const char *name, *type;
      int value;
    };
    for (auto [name, of, value] :
         {Number{"one", type.name, 1}, {"low", type.name, -1}, {"flag", "bool", 1}}) {
      if (!is_read(row, cat("%", name).c_str())) continue;
      text += cat("  constant %", name, "64: f64[] = [", value, "]\n");
      text += cat("  %", name, ": ", of, "[] = Cast(%", name, "64) {to = dtype ", of, "} @", name,
                  "\n");
    }
    text += cat("  %r: ", type.name, "[", n, "] = ", row.call, " @r\n  output r = %r\n}");
    return parse(text);
  }
  static bool is_read(const Slopes& row, const char* name) {
    return std::string_view(row.call).find(name) != std::string_view::npos;
  }

  // The value, then the slopes.
  Status evaluate(const std::string& backend,
                  const OwnedGraph& graph,
                  const std::vector<Tensor>& inputs,
                  std::vector<Tensor>& out) {
    std::string options = json{{"backend", backend}}.dump();
    tn_plan* plan = nullptr;
    TN_CHECK(tenon_compile(session_, graph.get(), str(options), &plan));
    std::vector<DLTensor> views;
    for (const Tensor& input : inputs)
      views.push_back(input.dl());
    std::vector<const DLTensor*> pointers;
    for (const DLTensor& view : views)
      pointers.push_back(&view);
    Collected results(ctx_);
    Status ran(tenon_run(plan, pointers.data(), pointers.size(), &results.raw, nullptr));
    services.eval->release(plan);
    out = std::move(results.tensors);
    return ran;
  }

  static bool is_near(double got, double expected, const FloatType& type) {
    double want = rounded(expected, type);
    if (got == want || (std::isnan(got) && std::isnan(want))) return true;
    if (!std::isfinite(got) || !std::isfinite(want)) {
      // What the type just cannot hold, or just can.
      double most = type.most / 2, seen = std::isfinite(got) ? got : want;
      return std::fabs(seen) > most && got * want > 0;
    }
    return std::fabs(got - want) <= type.roundings * type.epsilon * std::fmax(1, std::fabs(want));
  }

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

  // Whether the row has values that are real numbers: others are steps, bits or truth values.
  bool has_slopes(const tn_op* row) {
    Result<OwnedGraph> made = sample(row, 1);
    if (!made.ok()) return false;
    std::vector<Value> outputs = made->view().outputs();
    return !outputs.empty() && is_float(outputs[0].dtype());
  }

  std::vector<std::string> backends_;
  bool has_onednn_ = false;
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
