// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 that train, with and without minimal filtering: how far they are from the
// reference, and which of them take it.

#include "both_backends.hpp"
#include "cpu_has.hpp"

namespace tenon::test {
namespace {

struct Case {
  const char* name;
  int64_t images, in, out, height, width, pad;
  int64_t groups = 1;
  int taken = 3;  // of the convolution and its two gradients
};

std::string dims(const std::vector<int64_t>& all) {
  std::string text;
  for (int64_t each : all)
    text += (text.empty() ? "" : ", ") + std::to_string(each);
  return "[" + text + "]";
}

// A block of a residual network and its gradients. Results go through one more node, as those that
// leave the graph are kept in f32.
std::string block_of(const Case& c) {
  const int64_t shrunk = 2 - 2 * c.pad;
  const std::string x = "f32" + dims({c.images, c.in, c.height, c.width});
  const std::string y = "f32" + dims({c.images, c.out, c.height - shrunk, c.width - shrunk});
  const std::string w = "f32" + dims({c.out, c.in / c.groups, 3, 3});
  const std::string window = " {pads = ints " + dims({c.pad, c.pad, c.pad, c.pad}) +
                             ", group = " + std::to_string(c.groups) + "}";
  return "graph {\n  input %x: " + x + "\n  input %r: " + y + "\n  input %d: " + y +
         "\n  input %w: " + w + "\n  constant %half: f32[] = [0.5]\n  constant %xs: i64[4] = " +
         dims({c.images, c.in, c.height, c.width}) +
         "\n  constant %ws: i64[4] = " + dims({c.out, c.in / c.groups, 3, 3}) + "\n  %y: " + y +
         " = Conv(%x, %w)" + window + " @conv\n  %a: " + y + " = Add(%y, %r) @add\n  %z: " + y +
         " = Relu(%a) @relu\n  %zh: " + y + " = Mul(%z, %half) @zh\n  %dx: " + x +
         " = tenon:ConvInputGrad(%d, %w, %xs)" + window + " @dx\n  %dxh: " + x +
         " = Mul(%dx, %half) @dxh\n  %dw: " + w + " = tenon:ConvWeightGrad(%x, %d, %ws)" + window +
         " @dw\n  output z = %zh\n  output dx = %dxh\n  output dw = %dw\n}";
}

class WinogradPlan : public BothBackends, public testing::WithParamInterface<Case> {
 protected:
  static int taken(const Outcome& outcome) {
    int count = 0;
    for (const json& part : outcome.plan["partitions"]) {
      for (const auto& [kernel, n] : part["kernels"].items()) {
        const bool is_ours = kernel == "tenon:winograd" || kernel == "tenon:winograd gradient";
        count += is_ours ? n.get<int>() : 0;
      }
    }
    return count;
  }
  // The error of the whole, as a share of its size.
  static double apart(const std::vector<double>& got, const std::vector<double>& want) {
    double error = 0, size = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error += std::pow(got[i] - want[i], 2);
      size += want[i] * want[i];
    }
    return std::sqrt(error / size);
  }
  static bool takes_bf16() { return has_bf16_products() && !has_tiles(); }
};

TEST_P(WinogradPlan, IsOffByLittleMoreThanTheSumInBf16) {
  OwnedGraph graph = parse(block_of(GetParam()));
  const json sum = {
      {"backend", "onednn"}, {"threads", 2}, {"precision", "bf16"}, {"winograd", "off"}};
  json filtered = sum;
  filtered.erase("winograd");
  const Outcome want = run(graph, {{"backend", "reference"}});
  const Outcome direct = run(graph, sum);
  const Outcome got = run(graph, filtered);
  ASSERT_EQ(want.error + direct.error + got.error, "");
  EXPECT_EQ(got.plan["fallback_nodes"], json::array());
  EXPECT_EQ(taken(direct), 0);
  EXPECT_EQ(taken(got), takes_bf16() ? GetParam().taken : 0) << got.plan;
  for (size_t k = 0; k < want.outputs.size(); ++k) {
    ASSERT_EQ(got.outputs[k].size(), want.outputs[k].size());
    const double error = apart(direct.outputs[k], want.outputs[k]);
    EXPECT_LT(apart(got.outputs[k], want.outputs[k]), 2.5 * error) << "output " << k;
    EXPECT_LT(error, 0.01) << "output " << k;
  }
}

TEST_P(WinogradPlan, IsTakenInF32WhereItIsAskedFor) {
  OwnedGraph graph = parse(block_of(GetParam()));
  const Outcome want = run(graph, {{"backend", "reference"}});
  const Outcome direct = run(graph, {{"backend", "onednn"}, {"threads", 2}});
  const Outcome got = run(graph, {{"backend", "onednn"}, {"threads", 2}, {"winograd", "all"}});
  ASSERT_EQ(want.error + direct.error + got.error, "");
  EXPECT_EQ(taken(direct), 0);
  EXPECT_EQ(taken(got), has_avx512() ? GetParam().taken : 0) << got.plan;
  for (size_t k = 0; k < want.outputs.size(); ++k)
    expect_near(got.outputs[k], want.outputs[k], 2e-5);
}

constexpr Case kCases[] = {
    {.name = "Padded", .images = 4, .in = 64, .out = 64, .height = 16, .width = 16, .pad = 1},
    {.name = "OddAndUnpadded",
     .images = 7,
     .in = 64,
     .out = 80,
     .height = 13,
     .width = 17,
     .pad = 0},
    {.name = "WidelyPadded", .images = 7, .in = 80, .out = 64, .height = 12, .width = 13, .pad = 2},
    {.name = "ChannelsOfNoWholeRegisters",
     .images = 4,
     .in = 72,
     .out = 72,
     .height = 16,
     .width = 16,
     .pad = 1,
     .taken = 0},
    {.name = "Groups",
     .images = 4,
     .in = 128,
     .out = 128,
     .height = 16,
     .width = 16,
     .pad = 1,
     .groups = 2,
     .taken = 0},
    {.name = "FewTiles",
     .images = 1,
     .in = 64,
     .out = 64,
     .height = 8,
     .width = 8,
     .pad = 1,
     .taken = 0},
};

INSTANTIATE_TEST_SUITE_P(Cases, WinogradPlan, testing::ValuesIn(kCases), [](const auto& each) {
  return std::string(each.param.name);
});

}  // namespace
}  // namespace tenon::test
