// SPDX-License-Identifier: Apache-2.0
// Long filters over one signal in int8: what they give, and which of them are taken.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct Filter {
  const char* name;
  int64_t length, taps, stride;
  std::string quantized = "u8";
  int zero = 130;
  bool stays_real = false;  // the result is not quantized
  std::string pads = "0, 0, 0, 0";
  bool is_taken = true;
};

std::string row(int64_t length) {
  return "[1, 1, 1, " + std::to_string(length) + "]";
}

std::string graph_of(const Filter& f) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int> digits(0, 15);
  std::string taps;  // in hexadecimal, as long constants are
  for (int64_t i = 0; i < 2 * f.taps; ++i)
    taps += "0123456789abcdef"[digits(random)];
  const int64_t padding = f.pads == "0, 0, 0, 0" ? 0 : 6;
  const std::string out = row((f.length + padding - f.taps) / f.stride + 1);
  std::string text = "graph {\n  input %x: f32" + row(f.length) +
                     "\n  constant %s: f32[] = [0.016]\n  constant %z: " + f.quantized + "[] = [" +
                     std::to_string(f.zero) + "]\n  constant %ws: f32[1] = [0.002]" +
                     "\n  constant %wz: i8[1] = [0]\n  constant %b: f32[1] = [0.3]" +
                     "\n  constant %wq: i8" + row(f.taps) + " = x'" + taps + "'" +
                     "\n  %q: " + f.quantized + row(f.length) + " = QuantizeLinear(%x, %s, %z) @q" +
                     "\n  %d: f32" + row(f.length) + " = DequantizeLinear(%q, %s, %z) @d" +
                     "\n  %w: f32" + row(f.taps) +
                     " = DequantizeLinear(%wq, %ws, %wz) {axis = 0} @w" + "\n  %y: f32" + out +
                     " = Conv(%d, %w, %b) {strides = ints [1, " + std::to_string(f.stride) +
                     "], pads = ints [" + f.pads + "]} @y";
  if (f.stays_real) return text + "\n  output y = %y\n}";
  return text + "\n  constant %os: f32[] = [0.04]\n  constant %oz: u8[] = [120]\n  %c: u8" + out +
         " = QuantizeLinear(%y, %os, %oz) @c\n  %r: f32" + out +
         " = DequantizeLinear(%c, %os, %oz) @r\n  output y = %r\n}";
}

class FilterPlan : public BothBackends, public testing::WithParamInterface<Filter> {
 protected:
  static int taken(const Outcome& outcome) {
    int count = 0;
    for (const json& part : outcome.plan["partitions"])
      for (const auto& [kernel, n] : part["kernels"].items())
        count += kernel.starts_with("filter by") ? n.get<int>() : 0;
    return count;
  }
};

TEST_P(FilterPlan, AgreesWithTheReference) {
  OwnedGraph graph = parse(graph_of(GetParam()));
  const Outcome want = run(graph, {{"backend", "reference"}});
  const Outcome got = run(graph, {{"backend", "onednn"}, {"threads", 2}});

  ASSERT_EQ(want.error + got.error, "");
  EXPECT_EQ(got.plan["fallback_nodes"], json::array());
  ASSERT_EQ(got.outputs[0].size(), want.outputs[0].size());
  // A sum next to a half may be rounded to the next code.
  const double step = GetParam().stays_real ? 1e-4 : 0.0401;
  for (size_t i = 0; i < want.outputs[0].size(); ++i)
    ASSERT_NEAR(got.outputs[0][i], want.outputs[0][i], step) << i;
  const bool has_kernel = __builtin_cpu_supports("avx512vnni") != 0;
  if (has_kernel || !GetParam().is_taken) {
    EXPECT_EQ(taken(got), GetParam().is_taken) << got.plan;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Filters,
    FilterPlan,
    testing::Values(
        Filter{.name = "Halves", .length = 600, .taps = 256, .stride = 2},
        Filter{.name = "Smooths",
               .length = 301,
               .taps = 33,
               .stride = 1,
               .quantized = "i8",
               .zero = -3},
        Filter{.name = "EveryFifth", .length = 500, .taps = 40, .stride = 5},
        Filter{.name = "StaysReal", .length = 333, .taps = 64, .stride = 2, .stays_real = true},
        Filter{.name = "Padded",
               .length = 300,
               .taps = 64,
               .stride = 2,
               .pads = "0, 3, 0, 3",
               .is_taken = false},
        Filter{.name = "Short", .length = 100, .taps = 9, .stride = 2, .is_taken = false}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tenon::test
