// SPDX-License-Identifier: Apache-2.0
// Long filters over one signal, in 8 bits and in floating point: what they give, and which of them
// are taken.

#include "both_backends.hpp"
#include "cpu_has.hpp"

namespace tenon::test {
namespace {

struct Filter {
  const char* name;
  int64_t length, taps, stride;
  int64_t filters = 1;
  std::string precision = "int8";
  std::string quantized = "u8";
  int zero = 130;
  bool stays_real = false;  // the result is not quantized
  std::string pads = "0, 0, 0, 0";
  int64_t padding = 0;  // of both ends
  int64_t signals = 1;
  int64_t dilation = 1;
  bool is_column = false;
  bool is_taken = true;

  bool is_int8() const { return precision == "int8"; }
  std::string channels() const { return std::to_string(filters); }
  int64_t results() const { return (length + padding - dilation * (taps - 1) - 1) / stride + 1; }
};

std::string row(const Filter& f, int64_t rows, int64_t channels, int64_t length) {
  std::string text = "[" + std::to_string(rows) + ", " + std::to_string(channels) + ", ";
  const std::string n = std::to_string(length);
  return text + (f.is_column ? n + ", 1]" : "1, " + n + "]");
}

std::string conv(const Filter& f, const std::string& operands) {
  auto along = [&](int64_t number) {
    const std::string n = std::to_string(number);
    return f.is_column ? "ints [" + n + ", 1]" : "ints [1, " + n + "]";
  };
  return "\n  %y: f32" + row(f, f.signals, f.filters, f.results()) + " = Conv(" + operands +
         ") {strides = " + along(f.stride) + ", pads = ints [" + f.pads +
         "], dilations = " + along(f.dilation) + "} @y";
}

// A constant of as many equal numbers, given by the bytes of one.
std::string repeated(const std::string& bytes, int64_t times) {
  std::string all = "x'";
  for (int64_t i = 0; i < times; ++i)
    all += bytes;
  return all + "'";
}

std::string graph_of(const Filter& f) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int> digits(0, 15);
  std::string taps;  // in hexadecimal, as long constants are
  for (int64_t i = 0; i < 2 * f.taps * f.filters; ++i)
    taps += "0123456789abcdef"[digits(random)];
  const std::string n = f.channels(), weights = row(f, f.filters, 1, f.taps);
  std::string text = "graph {\n  input %x: f32" + row(f, f.signals, 1, f.length) +
                     "\n  constant %ws: f32[" + n + "] = " + repeated("6f12033b", f.filters) +
                     "\n  constant %wz: i8[" + n + "] = " + repeated("00", f.filters) +
                     "\n  constant %b: f32[" + n + "] = " + repeated("9a99993e", f.filters) +
                     "\n  constant %wq: i8" + weights + " = x'" + taps + "'\n  %w: f32" + weights +
                     " = DequantizeLinear(%wq, %ws, %wz) {axis = 0} @w";
  if (!f.is_int8()) {
    return text + conv(f, "%x, %w, %b") + "\n  %r: f32" +
           row(f, f.signals, f.filters, f.results()) + " = Relu(%y) @r\n  output r = %r\n}";
  }
  text += "\n  constant %s: f32[] = [0.016]\n  constant %z: " + f.quantized + "[] = [" +
          std::to_string(f.zero) + "]\n  %q: " + f.quantized + row(f, f.signals, 1, f.length) +
          " = QuantizeLinear(%x, %s, %z) @q\n  %d: f32" + row(f, f.signals, 1, f.length) +
          " = DequantizeLinear(%q, %s, %z) @d" + conv(f, "%d, %w, %b");
  if (f.stays_real) return text + "\n  output y = %y\n}";
  const std::string out = row(f, f.signals, f.filters, f.results());
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
  const bool is_bf16 = GetParam().precision == "bf16";
  json options = {{"backend", "onednn"}, {"threads", 2}};
  if (!GetParam().is_int8()) options["precision"] = GetParam().precision;
  const Outcome got = run(graph, options);

  ASSERT_EQ(want.error + got.error, "");
  EXPECT_EQ(got.plan["fallback_nodes"], json::array());
  ASSERT_EQ(got.outputs[0].size(), want.outputs[0].size());
  // A sum next to a half may be rounded to the next integer.
  const bool is_rounded = GetParam().is_int8() && !GetParam().stays_real;
  const double step = is_rounded ? 0.0401 : is_bf16 ? 0.05 : 1e-4;
  for (size_t i = 0; i < want.outputs[0].size(); ++i)
    ASSERT_NEAR(got.outputs[0][i], want.outputs[0][i], step) << i;
  const bool has_kernel = !GetParam().is_int8() || has_vnni();
  if (has_kernel || !GetParam().is_taken) {
    EXPECT_EQ(taken(got), GetParam().is_taken) << got.plan;
  }
}

// Results side by side share a window: a number that is not finite reaches the others of its pixel,
// and no further.
class FilterSpread : public BothBackends {
 protected:
  // What the filter gives where number 200 of its signal has had this added, four bytes in
  // hexadecimal.
  std::vector<double> results(const std::string& added) {
    const Filter filter{.name = "", .length = 400, .taps = 64, .stride = 2, .precision = "fp32"};
    std::string text = graph_of(filter), zeros = repeated("00000000", 400);
    const std::string shape = row(filter, 1, 1, 400), read = "Conv(%x,";
    zeros.replace(2 + 8 * 200, 8, added);
    text.replace(text.find(read), read.size(), "Conv(%sum,");
    const std::string sum = "\n  constant %a: f32" + shape + " = " + zeros + "\n  %sum: f32" +
                            shape + " = Add(%x, %a) @sum\n  %y:";
    text.replace(text.find("\n  %y:"), 6, sum);
    return run(parse(text), {{"backend", "onednn"}}).outputs.at(0);
  }
};

TEST_F(FilterSpread, WhatIsNotFiniteReachesItsPixelsAlone) {
  const std::vector<double> finite = results("00000000"), infinite = results("0000807f");
  int n_changed = 0;
  for (int i = 0; i < static_cast<int>(finite.size()); ++i) {
    const int first = i / 16 * 16;  // of the pixel
    const bool is_near = 2 * first <= 200 && 200 < 2 * (first + 16) + 64;
    EXPECT_TRUE(is_near || infinite[i] == finite[i]) << i;
    n_changed += infinite[i] == finite[i] ? 0 : 1;
  }
  EXPECT_GT(n_changed, 0);
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
        Filter{.name = "Bank", .length = 900, .taps = 64, .stride = 16, .filters = 20},
        Filter{.name = "SmallBank", .length = 400, .taps = 40, .stride = 3, .filters = 3},
        Filter{.name = "F32", .length = 601, .taps = 256, .stride = 2, .precision = "fp32"},
        Filter{.name = "F32Bank",
               .length = 903,
               .taps = 64,
               .stride = 16,
               .filters = 18,
               .precision = "fp32"},
        Filter{.name = "Bf16", .length = 601, .taps = 256, .stride = 2, .precision = "bf16"},
        Filter{.name = "Bf16Bank",
               .length = 450,
               .taps = 64,
               .stride = 4,
               .filters = 33,
               .precision = "bf16"},
        Filter{.name = "F32ManyFilters",
               .length = 300,
               .taps = 64,
               .stride = 2,
               .filters = 64,
               .precision = "fp32",
               .is_taken = false},
        Filter{.name = "F32FewTaps",
               .length = 300,
               .taps = 32,
               .stride = 2,
               .filters = 16,
               .precision = "fp32",
               .is_taken = false},
        Filter{.name = "StaysReal", .length = 333, .taps = 64, .stride = 2, .stays_real = true},
        Filter{.name = "Padded",
               .length = 300,
               .taps = 64,
               .stride = 2,
               .zero = 130,
               .pads = "0, 5, 0, 1",
               .padding = 6},
        Filter{.name = "Signals",
               .length = 256,
               .taps = 40,
               .stride = 4,
               .filters = 20,
               .pads = "0, 18, 0, 18",
               .padding = 36,
               .signals = 3},
        Filter{.name = "Columns",
               .length = 256,
               .taps = 40,
               .stride = 4,
               .filters = 20,
               .pads = "18, 0, 18, 0",
               .padding = 36,
               .signals = 2,
               .is_column = true},
        Filter{.name = "Bf16Signals",
               .length = 256,
               .taps = 64,
               .stride = 4,
               .filters = 20,
               .precision = "bf16",
               .pads = "0, 30, 0, 30",
               .padding = 60,
               .signals = 3},
        Filter{.name = "SignalsThatLieThere",
               .length = 80,
               .taps = 64,
               .stride = 16,
               .filters = 16,
               .precision = "fp32",
               .signals = 5},
        Filter{.name = "ResultsDoNotDivide",
               .length = 100,
               .taps = 64,
               .stride = 4,
               .filters = 2,
               .precision = "fp32",
               .signals = 2,
               .is_taken = false},
        Filter{.name = "Dilated",
               .length = 300,
               .taps = 64,
               .stride = 2,
               .dilation = 2,
               .is_taken = false},
        Filter{.name = "Short", .length = 100, .taps = 9, .stride = 2, .is_taken = false}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tenon::test
