// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tests of slopes share: float types, the places where rows are looked at, graphs of one row
// and their values on every backend of the CPU.

#include <cfloat>

#include "plugins/autodiff/row_samples.hpp"
#include "plugins/autodiff/slopes.hpp"

namespace tenon::test {

struct FloatType {
  uint32_t dtype;
  const char* name;
  double epsilon, least, least_normal, most;
  double roundings;  // that a slope may be off by: nodes round to the type one after the other
};
inline constexpr FloatType kTypes[] = {
    {TN_F64, "f64", 0x1p-52, 0x1p-1074, 0x1p-1022, DBL_MAX, 64},
    {TN_F32, "f32", 0x1p-23, 0x1p-149, 0x1p-126, double{FLT_MAX}, 16},
    {TN_F16, "f16", 0x1p-10, 0x1p-24, 0x1p-14, 65504, 8},
    {TN_BF16, "bf16", 0x1p-7, 0x1p-133, 0x1p-126, 0x1.fep127, 8},
};

inline float bf16_of(double x) {
  auto narrow = static_cast<float>(x);
  uint32_t bits = std::bit_cast<uint32_t>(narrow);
  if (std::isnan(narrow)) return narrow;
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U);
}
inline double rounded(double x, const FloatType& type) {
  if (type.dtype == TN_F32) return double{static_cast<float>(x)};
  if (type.dtype == TN_F16) return static_cast<double>(static_cast<_Float16>(x));
  return type.dtype == TN_BF16 ? double{bf16_of(x)} : x;
}

class SlopeFixture : public RowSamples {
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

  std::vector<std::string> backends_;
  bool has_onednn_ = false;
};

}  // namespace tenon::test
