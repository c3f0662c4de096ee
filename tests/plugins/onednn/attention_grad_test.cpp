// SPDX-License-Identifier: Apache-2.0
// The gradient of attention as one node, which computes the weights again, against the reference:
// which graphs it is found in, by one kernel and in parts.

#include <gtest/gtest.h>

#include "both_backends.hpp"
#include "cpu_has.hpp"

namespace tenon::test {
namespace {

constexpr const char* kOperands = R"(  input %q: f32[$B, 40, 32]
  input %keys: f32[$B, 72, 32]
  input %v: f32[$B, 72, 32]
  input %dy: f32[$B, 40, 32]
  constant %f: f32[] = [0.17677669]
  constant %g: f32[] = [5.656854]
  constant %last: i64[1] = [-1]
  %k: f32[$B, 32, 72] = Transpose(%keys) {perm = ints[$P]} @k
  %scores: f32[$B, 40, 72] = MatMul(%q, %k) @scores
)";
constexpr const char* kScaled = "  %s: f32[$B, 40, 72] = Mul(%scores, %f) @scaled\n";
constexpr const char* kWeights = "  %w: f32[$B, 40, 72] = Softmax(%s) {axis = -1} @weights\n";
constexpr const char* kContext = "  %y: f32[$B, 40, 32] = MatMul(%w, %v) @y\n  output y = %y\n";
// As autodiff writes it; ds is the gradient of the scaled scores.
constexpr const char* kOfWeights = R"(  %vt: f32[$B, 32, 72] = Transpose(%v) {perm = ints[$P]} @vt
  %dw: f32[$B, 40, 72] = MatMul(%dy, %vt) @dw
  %wt: f32[$B, 72, 40] = Transpose(%w) {perm = ints[$P]} @wt
  %dv: f32[$B, 72, 32] = MatMul(%wt, %dy) @dv
  %p: f32[$B, 40, 72] = Mul(%dw, %w) @p
  %sum: f32[$B, 40, 1] = ReduceSum(%p, %last) {keepdims = 1} @sum
  %r: f32[$B, 40, 72] = Sub(%dw, %sum) @r
  %ds: f32[$B, 40, 72] = Mul(%w, %r) @ds
  output dv = %dv
)";
constexpr const char* kUnscaled = "  %d: f32[$B, 40, 72] = Mul(%ds, %f) @unscaled\n";
constexpr const char* kOfQueries = R"(  %kt: f32[$B, 72, 32] = Transpose(%k) {perm = ints[$P]} @kt
  %dq: f32[$B, 40, 32] = MatMul(%d, %kt) @dq
  output dq = %dq
)";
constexpr const char* kOfKeys = R"(  %qt: f32[$B, 32, 40] = Transpose(%q) {perm = ints[$P]} @qt
  %dkt: f32[$B, 32, 72] = MatMul(%qt, %d) @dkt
  %dk: f32[$B, 72, 32] = Transpose(%dkt) {perm = ints[$P]} @dk
  output dk = %dk
)";

std::string graph_of(std::initializer_list<const char*> pieces,
                     const std::string& batch = "2, 3",
                     const std::string& swapped = "0, 1, 3, 2") {
  std::string text = "graph {\n";
  for (const char* piece : pieces)
    text += piece;
  for (const auto& [word, by] : {std::pair("$B", batch), std::pair("$P", swapped)})
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
      text.replace(at, 2, by);
  return text + "}";
}

class AttentionGrad : public BothBackends {
 protected:
  // How many steps differentiate a Softmax within one, after comparing with the reference.
  int count(const std::string& text, const char* precision = "fp32", double tolerance = 3e-5) {
    OwnedGraph graph = parse(text);
    Outcome expected = run(graph, {{"backend", "reference"}});
    Outcome got = run(
        graph,
        {{"backend", "onednn"}, {"precision", precision}, {"threads", 2}, {"without", without_}});
    EXPECT_EQ(expected.error + got.error, "");
    if (!expected.error.empty() || !got.error.empty()) return -1;
    EXPECT_EQ(got.plan["fallback_nodes"], json::array());
    for (size_t k = 0; k < expected.outputs.size(); ++k)
      expect_near(got.outputs[k], expected.outputs[k], tolerance);
    kernels_ = got.plan["partitions"][0]["kernels"];
    return steps("tenon:softmax_grad") + steps("tenon:attention_grad") +
           steps("tenon:amx_attention_grad");
  }
  int steps(const char* kernel) const { return kernels_.value(kernel, 0); }

  json without_ = json::array();

 private:
  json kernels_;
};

TEST_F(AttentionGrad, IsOneNode) {
  const auto text = [](const std::string& batch, const std::string& swapped) {
    return graph_of(
        {kOperands, kScaled, kWeights, kContext, kOfWeights, kUnscaled, kOfQueries, kOfKeys}, batch,
        swapped);
  };
  EXPECT_EQ(count(text("6", "0, 2, 1")), 1);
  EXPECT_EQ(count(text("2, 3", "0, 1, 3, 2")), 1);
  EXPECT_EQ(steps("tenon:attention"), 1);  // the forward pass, which nothing else reads
  EXPECT_EQ(count(text("2, 3", "0, 1, 3, 2"), "bf16", 0.05), 1);
  EXPECT_EQ(steps("tenon:amx_attention_grad"), has_tiles() ? 1 : 0);
}

TEST_F(AttentionGrad, RunsInParts) {
  without_ = {"attention gradient", "amx attention gradient"};
  const std::string text =
      graph_of({kOperands, kScaled, kWeights, kContext, kOfWeights, kUnscaled, kOfQueries, kOfKeys},
               "40, 30");  // 14 MB of scores
  const int parts = count(text);
  EXPECT_GT(parts, 1);
  EXPECT_EQ(steps("tenon:softmax_grad"), parts);
  EXPECT_GT(count(text, "bf16", 0.05), 1);
}

TEST_F(AttentionGrad, TakesMasksAlong) {
  for (const char* mask : {"$B, 40, 72", "2, 1, 1, 72", "40, 72", "72", "2, 3, 40, 1"}) {
    const std::string masked = std::string("  input %mask: f32[") + mask +
                               "]\n  %m: f32[$B, 40, 72] = Mul(%scores, %f) @scaled\n"
                               "  %s: f32[$B, 40, 72] = Add(%m, %mask) @masked\n";
    const std::string text = graph_of({kOperands, masked.c_str(), kWeights, kContext, kOfWeights,
                                       kUnscaled, kOfQueries, kOfKeys});
    EXPECT_EQ(count(text), 1) << mask;
    EXPECT_EQ(count(text, "bf16", 0.05), 1) << mask;
  }
}

TEST_F(AttentionGrad, TakesMasksThatLieInAnotherOrder) {
  const char* const masked = R"(  input %columns: f32[72, 40]
  %mask: f32[40, 72] = Transpose(%columns) {perm = ints[1, 0]} @mask
  %m: f32[$B, 40, 72] = Mul(%scores, %f) @scaled
  %s: f32[$B, 40, 72] = Add(%m, %mask) @masked
)";
  const std::string text =
      graph_of({kOperands, masked, kWeights, kContext, kOfWeights, kUnscaled, kOfQueries, kOfKeys});
  EXPECT_EQ(count(text), 1);
  EXPECT_EQ(count(text, "bf16", 0.05), 1);
  without_ = {"attention gradient", "amx attention gradient"};
  EXPECT_EQ(count(text), 1);
}

TEST_F(AttentionGrad, TakesEveryFormOfTheFactor) {
  const char* const divided = "  %s: f32[$B, 40, 72] = Div(%scores, %g) @scaled\n";
  const char* const by_quotient = "  %d: f32[$B, 40, 72] = Div(%ds, %g) @unscaled\n";
  EXPECT_EQ(count(graph_of({kOperands, divided, kWeights, kContext, kOfWeights, by_quotient,
                            kOfQueries, kOfKeys})),
            1);
  const char* const none = "  %w: f32[$B, 40, 72] = Softmax(%scores) {axis = -1} @weights\n";
  std::string back = std::string(kOfQueries) + kOfKeys;
  for (size_t at = 0; (at = back.find("%d,", at)) != std::string::npos;)
    back.replace(at, 3, "%ds,");
  for (size_t at = 0; (at = back.find("%d)", at)) != std::string::npos;)
    back.replace(at, 3, "%ds)");
  EXPECT_EQ(count(graph_of({kOperands, none, kContext, kOfWeights, back.c_str()})), 1);
}

TEST_F(AttentionGrad, LeavesOutWhatNobodyAsksFor) {
  EXPECT_EQ(
      count(graph_of({kOperands, kScaled, kWeights, kContext, kOfWeights, kUnscaled, kOfKeys})), 1);
  EXPECT_EQ(
      count(graph_of({kOperands, kScaled, kWeights, kContext, kOfWeights, kUnscaled, kOfQueries}),
            "bf16", 0.05),
      1);
}

// The backward pass has weights of its own: nothing of the forward pass is kept.
TEST_F(AttentionGrad, TakesWeightsThatWereRecomputed) {
  const char* const forward = R"(  %s0: f32[$B, 40, 72] = Mul(%scores, %f) @scaled0
  %w0: f32[$B, 40, 72] = Softmax(%s0) {axis = -1} @weights0
  %y: f32[$B, 40, 32] = MatMul(%w0, %v) @y
  %again: f32[$B, 40, 72] = MatMul(%q, %k) @scores1
  %s: f32[$B, 40, 72] = Mul(%again, %f) @scaled
  output y = %y
)";
  EXPECT_EQ(
      count(graph_of({kOperands, forward, kWeights, kOfWeights, kUnscaled, kOfQueries, kOfKeys})),
      1);
  EXPECT_EQ(steps("tenon:attention"), 1);
}

TEST_F(AttentionGrad, KeepsWeightsThatOthersRead) {
  const char* const shown = "  output w = %w\n";
  EXPECT_EQ(count(graph_of({kOperands, kScaled, kWeights, kContext, kOfWeights, kUnscaled,
                            kOfQueries, kOfKeys, shown})),
            0);
  const char* const gradient = "  output ds = %ds\n";  // as that of a mask
  EXPECT_EQ(count(graph_of({kOperands, kScaled, kWeights, kContext, kOfWeights, kUnscaled,
                            kOfQueries, kOfKeys, gradient})),
            0);
  const char* const other = "  %d: f32[$B, 40, 72] = Mul(%ds, %g) @unscaled\n";
  EXPECT_EQ(count(graph_of(
                {kOperands, kScaled, kWeights, kContext, kOfWeights, other, kOfQueries, kOfKeys})),
            0);
}

}  // namespace
}  // namespace tenon::test
