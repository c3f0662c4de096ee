// SPDX-License-Identifier: Apache-2.0
// ConvTranspose with windows side by side: what it gives, and which of them are taken.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct Upward {
  const char* name;
  std::string precision = "fp32";
  int images = 1, channels = 24, filters = 3, height = 5, width = 7;
  int kernel_height = 2, kernel_width = 2;
  std::string more = {};  // attributes
  int extra = 0;          // rows and columns behind the last window
  bool is_taken = true;
};

std::string dims(std::initializer_list<int> sizes) {
  std::string text = "[";
  for (int size : sizes)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

// Small multiples of a power of two: the products are exact in bf16 too.
std::string weights(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += "0123456789abcdef"[(i * 7 + i / 5) % 16] + std::string(1, "0369cf"[i % 6]);
  return "x'" + text + "'";
}

std::string graph_of(const Upward& u) {
  const std::string in = dims({u.images, u.channels, u.height, u.width});
  const std::string kernel = dims({u.channels, u.filters, u.kernel_height, u.kernel_width});
  const std::string out = dims({u.images, u.filters, u.height * u.kernel_height + u.extra,
                                u.width * u.kernel_width + u.extra});
  std::string bias;
  for (int i = 0; i < u.filters; ++i)
    bias += (i > 0 ? ", " : "") + std::to_string(i) + ".25";
  const int count = u.channels * u.filters * u.kernel_height * u.kernel_width;
  return "graph {\n  input %x: f32" + in + "\n  constant %q: i8" + kernel + " = " + weights(count) +
         "\n  constant %s: f32[] = [0.0078125]\n  constant %z: i8[] = [0]\n  constant %b: f32[" +
         std::to_string(u.filters) + "] = [" + bias + "]\n  %w: f32" + kernel +
         " = DequantizeLinear(%q, %s, %z) @w\n  %y: f32" + out +
         " = ConvTranspose(%x, %w, %b) {strides = ints " + dims({u.kernel_height, u.kernel_width}) +
         u.more + "} @y\n  %r: f32" + out + " = Relu(%y) @r\n  output r = %r\n}";
}

class PatchTranspose : public BothBackends, public testing::WithParamInterface<Upward> {};

TEST_P(PatchTranspose, AgreesWithTheReference) {
  const Upward& given = GetParam();
  OwnedGraph graph = parse(graph_of(given));
  const Outcome want = run(graph, {{"backend", "reference"}});
  json options = {{"backend", "onednn"}, {"threads", 2}, {"precision", given.precision}};
  const Outcome usual = run(graph, options);
  options["without"] = {"fold"};  // which few channels of rows take
  const Outcome got = run(graph, options);

  ASSERT_EQ(want.error + got.error + usual.error, "");
  EXPECT_EQ(got.plan["fallback_nodes"], json::array());
  ASSERT_EQ(got.outputs[0].size(), want.outputs[0].size());
  ASSERT_EQ(usual.outputs[0].size(), want.outputs[0].size());
  const double step = given.precision == "bf16" ? 0.05 : 1e-4;
  for (size_t i = 0; i < want.outputs[0].size(); ++i) {
    ASSERT_NEAR(got.outputs[0][i], want.outputs[0][i], step) << i;
    ASSERT_NEAR(usual.outputs[0][i], want.outputs[0][i], step) << i;
  }
  bool is_taken = false;
  for (const json& part : got.plan["partitions"])
    for (const auto& [kernel, n] : part["kernels"].items())
      is_taken = is_taken || kernel.starts_with("patches by");
  EXPECT_EQ(is_taken, given.is_taken) << got.plan;
}

INSTANTIATE_TEST_SUITE_P(
    Upwards,
    PatchTranspose,
    testing::Values(Upward{.name = "OneChannel", .filters = 1, .height = 9, .width = 33},
                    Upward{.name = "Images", .images = 3},
                    Upward{.name = "Oblong", .filters = 2, .kernel_height = 3, .kernel_width = 4},
                    Upward{.name = "Bf16", .precision = "bf16", .filters = 5},
                    Upward{.name = "Full", .filters = 16, .is_taken = false},
                    Upward{.name = "More",
                           .more = ", output_padding = ints [1, 1]",
                           .extra = 1,
                           .is_taken = false}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tenon::test
