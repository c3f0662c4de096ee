// SPDX-License-Identifier: Apache-2.0
// Products, normalizations, pools and recurrent operators of float16 and bfloat16, which a file
// states itself: onednn takes them all, and rounds each result as the reference does.
#include <algorithm>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct Case {
  const char* name;
  const char* body;  // $ stands for the type
};

class Halves : public BothBackends,
               public testing::WithParamInterface<std::tuple<const char*, Case>> {
 protected:
  static std::string text() {
    const auto& [type, of] = GetParam();
    std::string text = std::string("graph {\n") + of.body + "\n}";
    for (size_t at = 0; (at = text.find('$', at)) != std::string::npos;)
      text.replace(at, 1, type);
    return text;
  }
  // Where sums come out beside a tie, a result is one step of its type off.
  static double step() { return std::get<0>(GetParam()) == std::string("f16") ? 1e-3 : 8e-3; }
};

TEST_P(Halves, AgreeWithTheReference) {
  expect_same(text(), step());
}

constexpr Case kCases[] = {
    {"MatMul", R"(input %a: $[3, 8]
  input %b: $[8, 5]
  %y: $[3, 5] = MatMul(%a, %b) @n
  output y = %y)"},
    {"LinearAttention", R"(input %q: $[2, 5, 16]
  input %k: $[2, 5, 8]
  input %v: $[2, 5, 8]
  input %p: $[2, 1, 8, 8]
  input %d: $[2, 5, 1]
  %y: $[2, 5, 16], %s: $[2, 1, 8, 8] = LinearAttention(%q, %k, %v, %p, %d) {update_rule = "gated", q_num_heads = 2, kv_num_heads = 1} @n
  output y = %y
  output s = %s)"},
    {"RmsNormWhoseScaleIsWider", R"(input %x: $[3, 8]
  input %s: f32[8]
  %y: f32[3, 8] = RMSNormalization(%x, %s) @n
  output y = %y)"},
    {"RmsNormWhoseScaleIsNarrower", R"(input %x: f32[3, 8]
  input %s: $[8]
  %y: $[3, 8] = RMSNormalization(%x, %s) @n
  output y = %y)"},
    {"MatMulOfAWeightThatTwoRead", R"(input %a: $[2, 4]
  constant %w_f32: f32[4, 2] = [1, 2, 3, 4, 5, 6, 7, -8]
  %w: $[4, 2] = Cast(%w_f32) {to = dtype $} @w_cast
  %p: $[2, 2] = MatMul(%a, %w) @p
  %d: $[2, 2] = MatMul(%a, %w) @d
  %q: $[2, 2] = MatMul(%p, %d) @q
  output q = %q)"},
    {"Gemm", R"(input %a: $[3, 4]
  input %b: $[5, 4]
  input %c: $[5]
  %y: $[3, 5] = Gemm(%a, %b, %c) {transB = 1, alpha = 0.5} @n
  output y = %y)"},
    {"ConvThenClipThenConv", R"(input %x: $[2, 3, 6, 6]
  input %w: $[4, 3, 3, 3]
  input %v: $[4, 1, 3, 3]
  constant %low_f32: f32[] = [0]
  %low: $[] = Cast(%low_f32) {to = dtype $} @low_cast
  constant %high_f32: f32[] = [6]
  %high: $[] = Cast(%high_f32) {to = dtype $} @high_cast
  %c: $[2, 4, 4, 4] = Conv(%x, %w) @c
  %r: $[2, 4, 4, 4] = Clip(%c, %low, %high) @r
  %y: $[2, 4, 2, 2] = Conv(%r, %v) {group = 4} @d
  output c = %c
  output y = %y)"},
    {"ConvTranspose", R"(input %x: $[1, 2, 3, 3]
  input %w: $[2, 3, 2, 2]
  %y: $[1, 3, 6, 6] = ConvTranspose(%x, %w) {strides = ints [2, 2]} @n
  output y = %y)"},
    {"LayerNormalization", R"(input %x: $[3, 16]
  input %s: $[16]
  input %b: $[16]
  %y: $[3, 16], %m: f32[3, 1], %i: f32[3, 1] = LayerNormalization(%x, %s, %b) @n
  output y = %y)"},
    {"BatchNormalization", R"(input %x: $[2, 2, 3]
  constant %s_f32: f32[2] = [1.5, -0.5]
  %s: $[2] = Cast(%s_f32) {to = dtype $} @s_cast
  constant %b_f32: f32[2] = [0.25, 1]
  %b: $[2] = Cast(%b_f32) {to = dtype $} @b_cast
  constant %m_f32: f32[2] = [0.5, -1]
  %m: $[2] = Cast(%m_f32) {to = dtype $} @m_cast
  constant %v_f32: f32[2] = [2, 0.5]
  %v: $[2] = Cast(%v_f32) {to = dtype $} @v_cast
  %y: $[2, 2, 3] = BatchNormalization(%x, %s, %b, %m, %v) @n
  output y = %y)"},
    {"GroupNormalization", R"(input %x: $[2, 4, 5]
  input %s: $[4]
  input %b: $[4]
  %y: $[2, 4, 5] = GroupNormalization(%x, %s, %b) {num_groups = 2} @n
  output y = %y)"},
    {"Softmax", R"(input %x: $[3, 7]
  %y: $[3, 7] = Softmax(%x) @n
  %z: $[3, 7] = LogSoftmax(%x) @m
  output y = %y
  output z = %z)"},
    {"Pools", R"(input %x: $[1, 2, 6, 6]
  %a: $[1, 2, 3, 3] = AveragePool(%x) {kernel_shape = ints [2, 2], strides = ints [2, 2]} @a
  %m: $[1, 2, 3, 3] = MaxPool(%x) {kernel_shape = ints [2, 2], strides = ints [2, 2]} @m
  %g: $[1, 2, 1, 1] = GlobalAveragePool(%x) @g
  %h: $[1, 2, 1, 1] = GlobalMaxPool(%x) @h
  output a = %a
  output m = %m
  output g = %g
  output h = %h)"},
    {"LSTM", R"(input %x: $[3, 2, 4]
  input %w: $[1, 12, 4]
  input %r: $[1, 12, 3]
  %y: $[3, 1, 2, 3] = LSTM(%x, %w, %r) {hidden_size = 3} @n
  output y = %y)"},
    {"SumsThatAreMixed", R"(input %a: $[2, 4]
  input %b: $[4, 4]
  input %c: f32[2, 4]
  %p: $[2, 4] = MatMul(%a, %b) @p
  %w: f32[2, 4] = Cast(%p) {to = dtype f32} @w
  %y: f32[2, 4] = Add(%w, %c) @y
  output y = %y)"},
};

INSTANTIATE_TEST_SUITE_P(All,
                         Halves,
                         testing::Combine(testing::Values("f16", "bf16"),
                                          testing::ValuesIn(kCases)),
                         [](const auto& of) {
                           return std::string(std::get<1>(of.param).name) + "_" +
                                  std::get<0>(of.param);
                         });

}  // namespace
}  // namespace tenon::test
