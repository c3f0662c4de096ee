// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel, and in parts where a head's keys and values outgrow the cache, against
// the reference.

#include <gtest/gtest.h>

#include "both_backends.hpp"
#include "cpu_has.hpp"

namespace tenon::test {
namespace {

// $D in a body: the size of a head; $W: of four of them.
std::string with_heads(std::string body, int depth) {
  auto replace = [&](const std::string& word, int number) {
    for (size_t at = 0; (at = body.find(word, at)) != std::string::npos;)
      body.replace(at, word.size(), std::to_string(number));
  };
  replace("$D", depth);
  replace("$W", 4 * depth);
  return body;
}

class AttentionSteps : public BothBackends {
 protected:
  // How many of the plan's steps are kernels of that name, after comparing with the reference.
  int count(const std::string& kernel,
            const std::string& body,
            const char* precision = "fp32",
            double tolerance = 2e-5) {
    OwnedGraph graph = parse("graph {\n" + body + "\n}");
    Outcome expected = run(graph, {{"backend", "reference"}});
    Outcome got = run(graph, {{"backend", "onednn"}, {"precision", precision}, {"threads", 2}});
    EXPECT_EQ(expected.error + got.error, "");
    if (!expected.error.empty() || !got.error.empty()) return -1;
    EXPECT_EQ(got.outputs.size(), expected.outputs.size());
    for (size_t k = 0; k < expected.outputs.size(); ++k)
      expect_near(got.outputs[k], expected.outputs[k], tolerance);
    int n = 0;
    for (const auto& [name, steps] : got.plan["partitions"][0]["kernels"].items())
      if (name.find(kernel) != std::string::npos) n += steps.get<int>();
    return n;
  }

  // One step where keys and values of small heads stay in cache; of large ones so many in parts.
  void expect_steps(const std::string& body, int large, int parts, double tolerance = 2e-5) {
    EXPECT_EQ(count("tenon:attention", with_heads(body, 16), "fp32", tolerance), 1);
    EXPECT_EQ(count("(in parts)", with_heads(body, large), "fp32", tolerance), parts);
  }
};

// Two threads keep 1 MiB of scores. Queries, keys and values as attention has them: cut out of
// [batch, rows, heads * width], heads in front by a Transpose.
constexpr const char* kHeads = R"(input %xq: f32[6, 128, $W]
  input %xk: f32[6, 128, $W]
  constant %s: i64[4] = [0, 0, 4, $D]
  %rq: f32[6, 128, 4, $D] = Reshape(%xq, %s) @rq
  %rk: f32[6, 128, 4, $D] = Reshape(%xk, %s) @rk
  %q: f32[6, 4, 128, $D] = Transpose(%rq) {perm = ints [0, 2, 1, 3]} @q
  %k: f32[6, 4, $D, 128] = Transpose(%rk) {perm = ints [0, 2, 3, 1]} @k
)";

TEST_F(AttentionSteps, BatchByBatchWithAMask) {
  // The values are made after the scores: those wait for them.
  const std::string body = std::string(kHeads) + R"(input %mask: f32[6, 1, 1, 128]
  input %xv: f32[6, 128, $W]
  constant %f: f32[] = [0.05]
  %scores: f32[6, 4, 128, 128] = MatMul(%q, %k) @scores
  %scaled: f32[6, 4, 128, 128] = Mul(%scores, %f) @scaled
  %masked: f32[6, 4, 128, 128] = Add(%scaled, %mask) @masked
  %weights: f32[6, 4, 128, 128] = Softmax(%masked) {axis = -1} @weights
  %tv: f32[6, 128, $W] = Tanh(%xv) @tv
  %rv: f32[6, 128, 4, $D] = Reshape(%tv, %s) @rv
  %v: f32[6, 4, 128, $D] = Transpose(%rv) {perm = ints [0, 2, 1, 3]} @v
  %context: f32[6, 4, 128, $D] = MatMul(%weights, %v) @context
  %merged: f32[6, 128, 4, $D] = Transpose(%context) {perm = ints [0, 2, 1, 3]} @merged
  output y = %merged)";
  expect_steps(body, 544, 4);  // three batches at a time, two products
  EXPECT_GT(count("", with_heads(body, 16), "bf16", 0.05), -1);
}

TEST_F(AttentionSteps, CodesAreMadePartByPart) {
  // The QuantizeLinear stands behind Transpose and Reshape and moves in front of them.
  expect_steps(std::string(kHeads) + R"(input %v: f32[6, 4, 128, $D]
  constant %scale: f32[] = [0.02]
  constant %zero: u8[] = [120]
  constant %flat: i64[3] = [0, 0, $W]
  %scores: f32[6, 4, 128, 128] = MatMul(%q, %k) @scores
  %weights: f32[6, 4, 128, 128] = Softmax(%scores) {axis = -1} @weights
  %context: f32[6, 4, 128, $D] = MatMul(%weights, %v) @context
  %merged: f32[6, 128, 4, $D] = Transpose(%context) {perm = ints [0, 2, 1, 3]} @merged
  %rows: f32[6, 128, $W] = Reshape(%merged, %flat) @rows
  %quantized: u8[6, 128, $W] = QuantizeLinear(%rows, %scale, %zero) @quantized
  %y: f32[6, 128, $W] = DequantizeLinear(%quantized, %scale, %zero) @y
  output y = %y)",
               544, 4, 0.0201);
}

TEST_F(AttentionSteps, ScoresOfQuantizedValues) {
  // As a quantizer leaves them: quantized values again behind Reshape and Transpose, unsigned on
  // both sides. Without VNNI they are numbers again, and the kernel takes them.
  EXPECT_EQ(count("(in parts)", R"(input %xq: f32[6, 128, 64]
  input %xk: f32[6, 128, 64]
  input %v: f32[6, 4, 128, 16]
  constant %s: i64[4] = [0, 0, 4, 16]
  constant %qs: f32[] = [0.016]
  constant %qz: u8[] = [126]
  constant %ks: f32[] = [0.017]
  constant %kz: u8[] = [134]
  %cq: u8[6, 128, 64] = QuantizeLinear(%xq, %qs, %qz) @cq
  %ck: u8[6, 128, 64] = QuantizeLinear(%xk, %ks, %kz) @ck
  %dq: f32[6, 128, 64] = DequantizeLinear(%cq, %qs, %qz) @dq
  %dk: f32[6, 128, 64] = DequantizeLinear(%ck, %ks, %kz) @dk
  %rq: f32[6, 128, 4, 16] = Reshape(%dq, %s) @rq
  %rk: f32[6, 128, 4, 16] = Reshape(%dk, %s) @rk
  %q: f32[6, 4, 128, 16] = Transpose(%rq) {perm = ints [0, 2, 1, 3]} @q
  %k: f32[6, 4, 16, 128] = Transpose(%rk) {perm = ints [0, 2, 3, 1]} @k
  %cq2: u8[6, 4, 128, 16] = QuantizeLinear(%q, %qs, %qz) @cq2
  %ck2: u8[6, 4, 16, 128] = QuantizeLinear(%k, %ks, %kz) @ck2
  %dq2: f32[6, 4, 128, 16] = DequantizeLinear(%cq2, %qs, %qz) @dq2
  %dk2: f32[6, 4, 16, 128] = DequantizeLinear(%ck2, %ks, %kz) @dk2
  %scores: f32[6, 4, 128, 128] = MatMul(%dq2, %dk2) @scores
  %weights: f32[6, 4, 128, 128] = Softmax(%scores) {axis = -1} @weights
  %context: f32[6, 4, 128, 16] = MatMul(%weights, %v) @context
  output y = %context)"),
            has_vnni() ? 4 : 0);
}

TEST_F(AttentionSteps, HeadByHeadWithAMaskOfEachHead) {
  expect_steps(R"(input %q: f32[1, 3, 400, $D]
  input %k: f32[1, 3, $D, 400]
  input %v: f32[1, 3, 400, $D]
  input %mask: f32[3, 400, 400]
  %scores: f32[1, 3, 400, 400] = MatMul(%q, %k) @scores
  %masked: f32[1, 3, 400, 400] = Add(%mask, %scores) @masked
  %weights: f32[1, 3, 400, 400] = Softmax(%masked) {axis = 3} @weights
  %context: f32[1, 3, 400, $D] = MatMul(%weights, %v) @context
  output y = %context)",
               208, 6, 1e-4);  // scores of hundreds, not scaled
}

TEST_F(AttentionSteps, OneKeyForAllBatches) {
  expect_steps(R"(input %q: f32[4, 300, $D]
  input %k: f32[1, $D, 300]
  input %v: f32[1, 300, $D]
  %scores: f32[4, 300, 300] = MatMul(%q, %k) @scores
  %weights: f32[4, 300, 300] = Softmax(%scores) {axis = -1} @weights
  %context: f32[4, 300, $D] = MatMul(%weights, %v) @context
  output y = %context)",
               256, 4, 1e-4);
}

TEST_F(AttentionSteps, WholeWhereItIsSmallOrReadElsewhere) {
  EXPECT_EQ(count("(in parts)", R"(input %q: f32[2, 3, 20, 8]
  input %k: f32[2, 3, 8, 20]
  input %v: f32[2, 3, 20, 8]
  %scores: f32[2, 3, 20, 20] = MatMul(%q, %k) @scores
  %weights: f32[2, 3, 20, 20] = Softmax(%scores) {axis = -1} @weights
  %context: f32[2, 3, 20, 8] = MatMul(%weights, %v) @context
  output y = %context)"),
            0);
  EXPECT_EQ(count("(in parts)", R"(input %q: f32[4, 300, 8]
  input %k: f32[4, 8, 300]
  input %v: f32[4, 300, 8]
  %scores: f32[4, 300, 300] = MatMul(%q, %k) @scores
  %weights: f32[4, 300, 300] = Softmax(%scores) {axis = -1} @weights
  %context: f32[4, 300, 8] = MatMul(%weights, %v) @context
  output y = %context
  output weights = %weights)"),
            0);
}

}  // namespace
}  // namespace tenon::test
