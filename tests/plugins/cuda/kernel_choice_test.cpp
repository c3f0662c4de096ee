// SPDX-License-Identifier: Apache-2.0
// Which kernels a shape decides for, each against the reference; operands that are read as they
// lie, and launches that become one.

#include "plan_fixture.hpp"

namespace tenon::cuda {
namespace {

using test::Plans;

class Kernels : public Plans {
 protected:
  static std::vector<std::string> names(const Plan& plan) {
    std::vector<std::string> out;
    for (const Step& step : plan.steps) {
      bool is_generated = step.kernel.starts_with("pointwise");
      size_t jobs = step.kernel.find("_x");
      out.push_back(!is_generated               ? step.kernel
                    : jobs == std::string::npos ? "pointwise"
                                                : "pointwise" + step.kernel.substr(jobs));
    }
    return out;
  }
  static std::string replaced(std::string text, const std::string& what, const std::string& by) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
      text.replace(at, what.size(), by);
    return text;
  }
};

using Names = std::vector<std::string>;

// Everything of a value with channels last is reduced: in which order makes no difference, so it is
// read as it lies.
TEST_F(Kernels, ReduceAllOfAValueAsItLies) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[2, 8, 6, 6]
  input %w: f32[8, 8, 3, 3]
  %c: f32[2, 8, 4, 4] = Conv(%x, %w) @conv
  %a: f32[2, 8, 4, 4] = Abs(%c) @abs
  %y: f32[1, 1, 1, 1] = ReduceMax(%a) @most
  output y = %y
}
)");
  EXPECT_EQ(plan.steps.back().kernel, "reduce_warps_max_f32");
  check(plan, 1, 1e-4);
}

TEST_F(Kernels, ReduceFewByWarpsManyInPieces) {
  for (const char* op : {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceL1",
                         "ReduceL2", "ReduceSumSquare"}) {
    for (const char* cols : {"7", "100", "512", "1003", "20011"}) {
      SCOPED_TRACE(cat(op, " of ", cols));
      Plan plan = plan_of(replaced(cat("graph {\n  input %x: f32[3, COLS]\n  constant %axis: "
                                       "i64[1] = [1]\n  %y: f32[3, 1] = ",
                                       op, "(%x, %axis) @node\n  output y = %y\n}\n"),
                                   "COLS", cols));
      std::string first = plan.steps[0].kernel;
      bool is_short = std::string_view(cols).size() < 4,
           is_long = std::string_view(cols) == "20011";
      EXPECT_TRUE(first.starts_with(is_long    ? "reduce_pieces_"
                                    : is_short ? "reduce_warps_"
                                               : "reduce_rows_"))
          << first;
      EXPECT_EQ(plan.steps.size(), is_long ? 2u : 1u);
      check(plan, 1, 1e-5);
    }
  }
}

TEST_F(Kernels, NormalizeRowsOfEveryLength) {
  for (const char* cols : {"4", "7", "128", "130", "384", "516", "1023", "1024", "1030"}) {
    SCOPED_TRACE(cols);
    Plan plan = plan_of(replaced(R"(graph {
  input %x: f32[5, COLS]
  input %dy: f32[5, COLS]
  input %scale: f32[COLS]
  input %bias: f32[COLS]
  %n: f32[5, COLS] = LayerNormalization(%x, %scale, %bias) @norm
  %r: f32[5, COLS] = RMSNormalization(%x, %scale) @rms
  %s: f32[5, COLS] = Softmax(%x) @softmax
  %l: f32[5, COLS] = LogSoftmax(%x) @log
  %dx: f32[5, COLS], %ds: f32[COLS], %db: f32[COLS] = tenon:LayerNormGrad(%dy, %x, %scale) @grad
  output n = %n
  output r = %r
  output s = %s
  output l = %l
  output dx = %dx
  output ds = %ds
  output db = %db
}
)",
                                 "COLS", cols));
    bool by_warps = std::string_view(cols) != "1030";
    EXPECT_EQ(plan.steps[0].kernel, by_warps ? "norm_warps_f32" : "norm_f32");
    check(plan, 1, 2e-5);
  }
}

// Statistics lose no digits where a channel lies far from zero.
TEST_F(Kernels, NormalizeABatchFarFromZero) {
  for (std::string shape :
       {"6, 3, 5, 5", "6, 8, 5, 5", "150, 3", "150, 4", "150, 40", "4000, 96"}) {
    SCOPED_TRACE(shape);
    size_t first = shape.find(", ") + 2;
    std::string channels = shape.substr(first, shape.find(',', first) - first);
    Plan plan = plan_of(replaced(replaced(R"(graph {
  input %x: f32[SHAPE]
  input %dy: f32[SHAPE]
  input %scale: f32[N]
  input %bias: f32[N]
  input %mean: f32[N]
  input %variance: f32[N]
  constant %far: f32[] = [1000]
  %f: f32[SHAPE] = Add(%x, %far) @far
  %y: f32[SHAPE], %m: f32[N], %v: f32[N] = BatchNormalization(%f, %scale, %bias, %mean, %variance) {training_mode = 1} @norm
  %r: f32[SHAPE] = Relu(%y) @relu
  %dx: f32[SHAPE], %ds: f32[N], %db: f32[N] = tenon:BatchNormGrad(%dy, %f, %scale) @grad
  output r = %r
  output m = %m
  output v = %v
  output dx = %dx
  output ds = %ds
  output db = %db
}
)",
                                          "SHAPE", shape),
                                 "[N]", cat("[", channels, "]")));
    EXPECT_EQ(names(plan),
              (Names{"pointwise", "channel_distances_f32", "channel_statistics_f32", "pointwise",
                     "channel_gradients_f32", "channel_totals_f32", "pointwise"}));
    check(plan, 1, 2e-4);
  }
}

TEST_F(Kernels, ReadTransposedOperandsAsTheyLie) {
  Plan plan = plan_of(R"(graph {
  input %a: f32[2, 5, 4]
  input %b: f32[2, 3, 5]
  input %w: f32[5, 6]
  input %v: f32[6, 5]
  input %m: f32[7, 5]
  %at: f32[2, 4, 5] = Transpose(%a) {perm = ints [0, 2, 1]} @at
  %bt: f32[2, 5, 3] = Transpose(%b) {perm = ints [0, 2, 1]} @bt
  %vt: f32[5, 6] = Transpose(%v) @vt
  %mt: f32[5, 7] = Transpose(%m) @mt
  %p: f32[2, 4, 3] = MatMul(%at, %bt) @both
  %q: f32[2, 4, 6] = MatMul(%at, %w) @batch
  %r: f32[2, 4, 6] = MatMul(%at, %vt) @batch_and_matrix
  %s: f32[5, 5] = Gemm(%mt, %mt) {transB = 1} @gemm
  output p = %p
  output q = %q
  output r = %r
  output s = %s
}
)");
  EXPECT_EQ(names(plan), (Names{"cublaslt", "cublaslt", "cublaslt", "cublaslt"}));
  check(plan);
}

TEST_F(Kernels, KeepATransposeThatOthersReadOrThatNoProductTakes) {
  const char* text = R"(graph {
  input %a: f32[5, 4]
  input %w: f32[5, 6]
  %t: f32[4, 5] = Transpose(%a) @transpose
  %p: f32[4, 6] = MatMul(%t, %w) @product
  output t = %t
  output p = %p
}
)";
  Plan plan = plan_of(text);
  EXPECT_EQ(names(plan), (Names{"copy_4", "cublaslt"}));
  EXPECT_TRUE(std::get<Product>(plan.steps[1].work).transpose_a);
  check(plan);

  Target target{ctx_};
  target.why_no_product = [](const Product& p) { return p.transpose_a ? "no such plan" : ""; };
  plan = plan_for(target);
  EXPECT_FALSE(std::get<Product>(plan.steps[1].work).transpose_a);
  check(plan);
}

// Updates of states in place, of sizes that give one text.
TEST_F(Kernels, JoinUpdatesOfOneText) {
  std::string inputs, nodes, ends;
  for (int i = 0; i < 5; ++i) {
    std::string dims = cat("[", 16 * (i + 1), "]");
    inputs += cat("  input %w", i, ": f32", dims, "\n  input %g", i, ": f32", dims, "\n");
    nodes += cat("  %d", i, ": f32", dims, " = Mul(%g", i, ", %rate) @scale", i, "\n  %n", i,
                 ": f32", dims, " = Sub(%w", i, ", %d", i, ") @update", i, "\n");
    ends += cat("  output n", i, " = %n", i, "\n");
  }
  for (int i = 0; i < 5; ++i)
    ends += cat("  state %w", i, " -> %n", i, "\n");
  Plan plan = plan_of("graph {\n" + inputs + "  input %rate: f32[]\n" + nodes + ends + "}\n");
  EXPECT_EQ(names(plan), (Names{"pointwise_x5"}));
  check(plan, 3);
}

// What needs another's result, or writes what another reads, stays behind it.
TEST_F(Kernels, DoNotJoinWhatNeedsAnother) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[32]
  input %a: f32[32]
  input %b: f32[32]
  %e: f32[32] = Exp(%x) @first
  %f: f32[32] = Exp(%e) @second
  %m: f32[32] = Add(%a, %b) @update_a
  %n: f32[32] = Add(%m, %b) @update_b
  output e = %e
  output f = %f
  output m = %m
  output n = %n
  state %a -> %m
  state %b -> %n
}
)");
  for (const std::string& name : names(plan))
    EXPECT_EQ(name.find("pointwise_x"), std::string::npos) << name;
  check(plan, 3);
}

}  // namespace
}  // namespace tenon::cuda
