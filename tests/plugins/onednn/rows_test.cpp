// SPDX-License-Identifier: Apache-2.0
// Pointwise nodes with the reductions of what they make, as one step that stores nothing between,
// beside the reference.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class Rows : public BothBackends {
 protected:
  // How many steps of the plan go by rows, and how many others there are.
  struct Steps {
    int rows = 0, others = 0;
  };
  Steps steps_of(const std::string& text) {
    const Outcome got = run(parse(text), {{"backend", "onednn"}, {"threads", 2}});
    EXPECT_EQ(got.error, "") << text;
    Steps steps;
    for (const json& partition : got.plan["partitions"])
      for (const auto& [name, count] : partition["kernels"].items())
        (name.rfind("tenon:rows", 0) == 0 ? steps.rows : steps.others) += count.get<int>();
    return steps;
  }
  void expect_one_step(const std::string& text) {
    expect_same(text);
    const Steps steps = steps_of(text);
    EXPECT_EQ(steps.rows, 1) << text;
    EXPECT_EQ(steps.others, 0) << text;
  }
};

struct Form {
  const char* dims;
  const char* axes;  // of a constant, behind its name
  const char* kept;
  const char* dropped;
};
constexpr Form kForms[] = {
    {"50, 96", "i64[1] = [1]", "50, 1", "50"},                   // rows of one block
    {"5, 1000", "i64[1] = [-1]", "5, 1", "5"},                   // few rows
    {"17, 5, 8, 9", "i64[2] = [2, 3]", "17, 5, 1, 1", "17, 5"},  // of two axes
    {"4096", "i64[1] = [0]", "1", ""},                           // one row
    {"10, 1000", "i64[2] = [0, 1]", "1, 1", ""},                 // one row of parts
    {"3, 9, 1024", "i64[2] = [1, 2]", "3, 1, 1", "3"},           // some rows of parts
    {"600, 700", "i64[2] = [0, 1]", "1, 1", ""},                 // for several threads
    {"17, 4096", "i64[1] = [1]", "17, 1", "17"},                 // the longest row that is whole
};

TEST_F(Rows, AreReducedWithoutBeingStored) {
  for (const Form& form : kForms) {
    for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"}) {
      for (int keepdims : {0, 1}) {
        expect_one_step(cat("graph {\n  input %x: f32[", form.dims, "]\n  input %y: f32[",
                            form.dims, "]\n  constant %axes: ", form.axes, "\n  %d: f32[",
                            form.dims, "] = Sub(%x, %y) @sub\n  %q: f32[", form.dims,
                            "] = Mul(%d, %d) @mul\n  %r: f32[", keepdims ? form.kept : form.dropped,
                            "] = ", op, "(%q, %axes) {keepdims = ", keepdims,
                            "} @reduce\n  output r = %r\n}"));
      }
    }
  }
}

TEST_F(Rows, GiveSeveralReductionsAndWhatIsReadElsewhere) {
  expect_one_step(R"(graph {
    input %x: f32[40, 300]
    input %w: f32[300]
    constant %axes: i64[1] = [1]
    %e: f32[40, 300] = Exp(%x) @exp
    %p: f32[40, 300] = Mul(%e, %w) @mul
    %s: f32[40] = ReduceSum(%e, %axes) {keepdims = 0} @sum
    %m: f32[40, 1] = ReduceMax(%p, %axes) {keepdims = 1} @max
    output e = %e
    output s = %s
    output m = %m
  })");
}

// Operands of the rows of some outer axes alone: the distances of two sets of points.
TEST_F(Rows, ReadWhatIsBroadcastAlongOuterAxes) {
  struct Sets {
    const char *x, *y, *all, *result;
  };
  for (const Sets& sets : {Sets{"40, 1, 16", "70, 16", "40, 70, 16", "40, 70"},
                           Sets{"40, 1, 16", "1, 700, 16", "40, 700, 16", "40, 700"},
                           Sets{"3, 1, 90, 16", "5, 1, 16", "3, 5, 90, 16", "3, 5, 90"},
                           Sets{"3, 5, 1, 16", "90, 1", "3, 5, 90, 16", "3, 5, 90"},
                           Sets{"3, 5, 90, 1", "3, 1, 90, 16", "3, 5, 90, 16", "3, 5, 90"}}) {
    expect_one_step(cat("graph {\n  input %x: f32[", sets.x, "]\n  input %y: f32[", sets.y,
                        "]\n  constant %axes: i64[1] = [-1]\n  %d: f32[", sets.all,
                        "] = Sub(%x, %y) @sub\n  %q: f32[", sets.all,
                        "] = Mul(%d, %d) @mul\n  %r: f32[", sets.result,
                        "] = ReduceSum(%q, %axes) {keepdims = 0} @sum\n  output r = %r\n}"));
  }
}

// Without its axis, the result of a square matrix is one number for each column.
TEST_F(Rows, AreNotReadWithWhatBelongsToColumns) {
  expect_same(R"(graph {
    input %x: f32[80, 80]
    constant %axes: i64[1] = [1]
    %e: f32[80, 80] = Exp(%x) @exp
    %r: f32[80] = ReduceMax(%e, %axes) {keepdims = 0} @max
    %y: f32[80, 80] = Sub(%e, %r) @sub
    output y = %y
  })");
}

TEST_F(Rows, OfFewElementsAreReducedFromMemory) {
  const std::string text = R"(graph {
    input %x: f32[10, 40]
    constant %axes: i64[1] = [1]
    %e: f32[10, 40] = Exp(%x) @exp
    %r: f32[10] = ReduceSum(%e, %axes) {keepdims = 0} @sum
    output r = %r
  })";
  expect_same(text);
  EXPECT_EQ(steps_of(text).rows, 0);
}

// Twice: behind a mean, with what is left of each element.
TEST_F(Rows, OfAVarianceAgree) {
  expect_same(R"(graph {
    input %x: f32[50, 200]
    constant %axes: i64[1] = [1]
    %m: f32[50, 1] = ReduceMean(%x, %axes) {keepdims = 1} @mean
    %d: f32[50, 200] = Sub(%x, %m) @sub
    %q: f32[50, 200] = Mul(%d, %d) @mul
    %v: f32[50] = ReduceMean(%q, %axes) {keepdims = 0} @variance
    output v = %v
  })");
}

// Eleven products in memory of a block at once would have no room.
TEST_F(Rows, ThatAreTooManyAreLeftAlone) {
  std::string text = "graph {\n  input %x: f32[20, 4096]\n  constant %axes: i64[1] = [1]\n";
  for (int i = 0; i < 11; ++i)
    text += cat("  constant %c", i, ": f32[] = [0.", i + 1, "]\n  %p", i,
                ": f32[20, 4096] = Mul(%x, %c", i, ") @p", i, "\n  %q", i,
                ": f32[20, 4096] = Sin(%p", i, ") @q", i, "\n  %r", i, ": f32[20] = ReduceSum(%q",
                i, ", %axes) {keepdims = 0} @r", i, "\n");
  for (int i = 0; i < 11; ++i)
    text += cat("  output r", i, " = %r", i, "\n");
  expect_same(text + "}");
}

// A prime number of elements, so that no part is as long as another.
TEST_F(Rows, ThatCannotBeCutAreReducedFromMemory) {
  const std::string text = R"(graph {
    input %x: f32[10007]
    constant %axes: i64[1] = [0]
    %e: f32[10007] = Exp(%x) @exp
    %r: f32[] = ReduceSum(%e, %axes) {keepdims = 0} @sum
    output r = %r
  })";
  expect_same(text);
  EXPECT_EQ(steps_of(text).rows, 0);
}

}  // namespace
}  // namespace tenon::test
