// SPDX-License-Identifier: Apache-2.0
// Rules that take nodes away, and how rules are run.
#include "fusion_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FoldTest : public FusionTest {
 protected:
  OwnedGraph apply_with(const OwnedGraph& graph, const std::string& pass, const json& options) {
    OwnedGraph out;
    EXPECT_EQ(message_of(graph, pass, options, &out), "");
    return out;
  }
  // Empty: it was applied.
  std::string message_of(const OwnedGraph& graph,
                         const std::string& pass,
                         const json& options,
                         OwnedGraph* out) {
    tn_options* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.options->create(ctx_, &raw))), "");
    EXPECT_EQ(text_of(Status(services.options->parse(raw, str(options.dump())))), "");
    tn_graph* made = nullptr;
    std::string message = text_of(
        Status(tenon_apply(session_, graph.get(), str(pass), raw, nullptr, nullptr, &made)));
    services.options->release(raw);
    *out = OwnedGraph::take(made);
    return message;
  }
};

TEST_F(FoldTest, ConstantsKeepTheNamesOfWhatTheyReplace) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2]
  constant %a: f32[2] = [1, 2]
  constant %b: f32[2] = [3, 5]
  %c: f32[2] = Mul(%a, %b) @mul
  %y: f32[2] = Add(%x, %c) @add
  output y = %y
})");

  EXPECT_EQ(text(apply(graph, "fusion.constants")), R"(graph {
  input %x: f32[2]
  constant %c: f32[2] = [3.0, 10.0]
  %y: f32[2] = Add(%x, %c) @add
  output y = %y
}
)");
}

// No constant of the full size is made where the reader broadcasts.
TEST_F(FoldTest, AnExpandOfAConstantGoesWhereItsReaderBroadcasts) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[64, 64]
  constant %three: f32[1] = [3]
  constant %shape: i64[2] = [64, 64]
  %e: f32[64, 64] = Expand(%three, %shape) @expand
  %y: f32[64, 64] = Mul(%x, %e) @mul
  output y = %y
})");
  EXPECT_EQ(text(apply(graph, "fusion.fold")), R"(graph {
  input %x: f32[64, 64]
  constant %three: f32[1] = [3.0]
  %y: f32[64, 64] = Mul(%x, %three) @mul
  output y = %y
}
)");
}

const char* kGrowing = R"(graph {
  input %x: f32[64, 64]
  constant %one: f32[1] = [1]
  constant %shape: i64[2] = [64, 64]
  %e: f32[64, 64] = Expand(%one, %shape) @expand
  %y: f32[64, 64] = Add(%x, %e) @add
  output y = %y
})";

TEST_F(FoldTest, AConstantThatWouldGrowTooMuchStaysComputed) {
  OwnedGraph small = apply_with(parse(kGrowing), "fusion.constants", {{"max_bytes", 16000}});
  OwnedGraph large = apply_with(parse(kGrowing), "fusion.constants", {{"max_bytes", 17000}});

  EXPECT_THAT(operators(small), ElementsAre("Expand", "Add"));
  EXPECT_THAT(operators(large), ElementsAre("Add"));
}

// A table of which rows are looked up and that makes the scores, too: folded, it would be there
// twice.
TEST_F(FoldTest, ATiedTableIsNotStoredTwice) {
  OwnedGraph graph = parse(R"(graph {
  input %i: i64[3]
  constant %table: f32[4,2] = [1, 2, 3, 4, 5, 6, 7, 8]
  constant %own: f32[4,2] = [1, 2, 3, 4, 5, 6, 7, 8]
  %rows: f32[3,2] = Gather(%table, %i) @rows
  %across: f32[2,4] = Transpose(%table) {perm = ints [1, 0]} @across
  %others: f32[2,4] = Transpose(%own) {perm = ints [1, 0]} @others
  %scores: f32[3,4] = MatMul(%rows, %across) @scores
  %more: f32[3,4] = MatMul(%rows, %others) @more
  %y: f32[3,4] = Add(%scores, %more) @y
  output y = %y
})");
  const json tight{{"max_bytes", 0}}, keeping{{"max_bytes", 0}, {"shared", "keep"}};

  EXPECT_THAT(operators(apply_with(graph, "fusion.constants", tight)),
              ElementsAre("Gather", "MatMul", "MatMul", "Add"));
  EXPECT_THAT(operators(apply_with(graph, "fusion.constants", keeping)),
              ElementsAre("Gather", "Transpose", "MatMul", "MatMul", "Add"));
}

TEST_F(FoldTest, ANodeThatCannotRunDoesNotKeepOthersFromFolding) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2]
  constant %a: f32[2] = [1, 2]
  constant %far: i64[1] = [9]
  constant %near: i64[1] = [1]
  %bad: f32[1] = Gather(%a, %far) @bad
  %good: f32[1] = Gather(%a, %near) @good
  %u: f32[2] = Add(%x, %bad) @u
  %y: f32[2] = Add(%u, %good) @y
  output y = %y
})");

  EXPECT_THAT(operators(apply(graph, "fusion.constants")), ElementsAre("Gather", "Add", "Add"));
}

// Sizes that a file computes become numbers; weights keep their names, also those made from others.
TEST_F(FoldTest, ShapesFoldsIntegersAndLeavesWeights) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 4]
  constant %w: f32[1, 4] = [1, 2, 3, 4]
  constant %two: i64[] = [2]
  constant %axis: i64[] = [1]
  %shape: i64[2] = Shape(%x) @shape
  %size: i64[] = Gather(%shape, %axis) @size
  %half: i64[] = Div(%size, %two) @half
  constant %one: i64[1] = [1]
  %end: i64[1] = Reshape(%half, %one) @end
  constant %begin: i64[1] = [0]
  %twice: f32[1, 4] = Add(%w, %w) @twice
  %sum: f32[2, 4] = Add(%x, %twice) @sum
  %y: f32[2, ?] = Slice(%sum, %begin, %end, %one) @cut
  output y = %y
})");

  OwnedGraph folded = apply(graph, "fusion.shapes");

  EXPECT_THAT(operators(folded), ElementsAre("Add", "Add", "Slice"));
  EXPECT_EQ(folded.view().find("end").constant().data<int64_t>()[0], 2);
  EXPECT_TRUE(folded.view().find("w").is_constant());
}

TEST_F(FoldTest, WhatAWeightDecidesIsNoShape) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[4]
  constant %w: f32[4] = [1, -2, 3, -4]
  constant %zero: f32[] = [0]
  constant %one: f32[] = [1]
  %test: bool[4] = GreaterOrEqual(%w, %zero) @test
  %sign: f32[4] = Where(%test, %one, %zero) @sign
  %size: i64[1] = Shape(%w) @shape
  %flat: f32[4] = Reshape(%x, %size) @flat
  %y: f32[4] = Mul(%flat, %sign) @y
  output y = %y
})");

  EXPECT_THAT(operators(apply(graph, "fusion.shapes")),
              ElementsAre("GreaterOrEqual", "Where", "Reshape", "Mul"));
}

TEST_F(FoldTest, RandomNumbersAreNoConstants) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2]
  %r: f32[2] = RandomNormal() {shape = ints [2]} @r
  %y: f32[2] = Add(%x, %r) @y
  output y = %y
})");

  EXPECT_THAT(operators(apply(graph, "fusion.default")), ElementsAre("RandomNormal", "Add"));
}

TEST_F(FoldTest, NodesThatChangeNothingVanish) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 3]
  constant %one: f32[] = [1]
  constant %zero: f32[1, 1] = [0]
  constant %pads: i64[4] = [0, 0, 0, 0]
  %a: f32[2, 3] = Mul(%one, %x) @a
  %b: f32[2, 3] = Sub(%a, %zero) @b
  %c: f32[2, 3] = Pad(%b, %pads) @c
  %d: f32[2, 3] = Concat(%c) {axis = 0} @d
  %e: f32[2, 3] = Identity(%d) @e
  %y: f32[2, 3] = Relu(%e) @y
  output y = %y
})");

  EXPECT_THAT(operators(apply(graph, "fusion.identity")), ElementsAre("Relu"));
}

TEST_F(FoldTest, AnAdditionThatBroadcastsStays) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[3]
  constant %zero: f32[2, 1] = [0, 0]
  %y: f32[2, 3] = Add(%x, %zero) @a
  output y = %y
})");

  EXPECT_EQ(text(apply(graph, "fusion.identity")), text(graph));
}

TEST_F(FoldTest, ReshapesOneAfterAnotherAreOne) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[n, 6]
  constant %s: i64[3] = [-1, 2, 3]
  constant %t: i64[2] = [-1, 3]
  constant %copy: i64[2] = [0, -1]
  %a: f32[n, 2, 3] = Reshape(%x, %s) @a
  %y: f32[*] = Reshape(%a, %t) @y
  %z: f32[*] = Reshape(%y, %copy) @z
  output z = %z
})");

  OwnedGraph simple = apply_with(graph, "fusion.chains", json::object());

  // The last says "as many rows as its input", so the one before must stay.
  EXPECT_THAT(operators(simple), ElementsAre("Reshape", "Reshape"));
}

const char* kTwice = R"(graph {
  input %x: f32[2]
  constant %a: f32[] = [2]
  constant %b: f32[] = [2]
  %p: f32[2] = Mul(%x, %a) @p
  %q: f32[2] = Mul(%b, %x) @q
  %y: f32[2] = Div(%p, %q) @y
  output y = %y
})";

TEST_F(FoldTest, WhatIsComputedTwiceIsComputedOnce) {
  EXPECT_EQ(text(apply(parse(kTwice), "fusion.cse")), R"(graph {
  input %x: f32[2]
  constant %a: f32[] = [2.0]
  %p: f32[2] = Mul(%x, %a) @p
  %y: f32[2] = Div(%p, %p) @y
  output y = %y
}
)");
}

TEST_F(FoldTest, OtherAttributesAreAnotherComputation) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2]
  %p: f32[2] = Elu(%x) {alpha = 0.5} @p
  %q: f32[2] = Elu(%x) @q
  %y: f32[2] = Div(%p, %q) @y
  output y = %y
})");

  EXPECT_EQ(text(apply(graph, "fusion.cse")), text(graph));
}

TEST_F(FoldTest, TheScopeSaysWhereRulesApply) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2]
  %a: f32[2] = Identity(%x) @a in "teacher/one"
  %b: f32[2] = Identity(%a) @b in "teachers"
  %y: f32[2] = Relu(%b) @y
  output y = %y
})");

  OwnedGraph inside = apply_with(graph, "fusion.default", {{"scope", "teacher"}});

  ASSERT_THAT(operators(inside), ElementsAre("Identity", "Relu"));
  EXPECT_EQ(inside.view().node(0).name(), "b");

  OwnedGraph none;
  for (const char* pass : {"fusion.default", "fusion.identity"})
    EXPECT_NE(message_of(graph, pass, {{"scope", "teachr"}}, &none)
                  .find("scope: expected the scope of a node, got 'teachr' (did you mean "
                        "'teachers'?)"),
              std::string::npos);
}

TEST_F(FoldTest, RulesCanBeLeftOut) {
  OwnedGraph skipped = apply_with(parse(kTwice), "fusion.default", {{"skip", {"cse"}}});
  OwnedGraph only = apply_with(parse(kTwice), "fusion.default", {{"only", {"dead_code"}}});

  EXPECT_EQ(operators(skipped).size(), 3u);
  EXPECT_EQ(operators(only).size(), 3u);
  EXPECT_EQ(operators(apply(parse(kTwice), "fusion.default")).size(), 2u);
}

TEST_F(FoldTest, BodiesOfControlFlowAreSimplifiedToo) {
  OwnedGraph graph = parse(R"(graph {
  input %go: bool[]
  input %x: f32[2]
  %y: f32[2] = If(%go, %x) {captures = 1, else_branch = graph {
      input %x: f32[2]
      %a: f32[2] = Neg(%x) @a
      output a = %a
    }, then_branch = graph {
      input %x: f32[2]
      %i: f32[2] = Identity(%x) @i
      %b: f32[2] = Relu(%i) @b
      output b = %b
    }} @if
  output y = %y
})");

  EXPECT_THAT(text(apply(graph, "fusion.default")), testing::Not(HasSubstr("Identity")));
}

TEST_F(FoldTest, TheBranchOfAKnownConditionTakesThePlaceOfItsIf) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[1, 2]
  constant %go: bool[] = x'01'
  constant %first: i64[1] = [0]
  %y: f32[*] = If(%go, %x, %first) {captures = 2, else_branch = graph {
      input %x: f32[1, 2]
      input %first: i64[1]
      output x = %x
    }, then_branch = graph {
      input %x: f32[1, 2]
      input %first: i64[1]
      %a: f32[1, 2] = Neg(%x) @a
      %y: f32[2] = Squeeze(%a, %first) @squeeze
      output y = %y
    }} @if
  %z: f32[*] = Relu(%y) @relu
  output y = %y
  output z = %z
})");

  OwnedGraph flat = apply(graph, "fusion.default");

  EXPECT_EQ(operators(flat), (std::vector<std::string>{"Neg", "Squeeze", "Relu"}));
  EXPECT_EQ(flat.view().find("y").type().dims, (std::vector<int64_t>{2}));
  EXPECT_EQ(run(flat), run(graph));
}

// As PyTorch's exporter writes an LSTM: what the first If gives decides the next one.
TEST_F(FoldTest, ABranchIsFoldedWithTheShapesOfItsPlace) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[1, 2]
  constant %go: bool[] = x'01'
  %h: f32[*] = If(%go, %x) {captures = 1, else_branch = graph {
      input %x: f32[*]
      output x = %x
    }, then_branch = graph {
      input %x: f32[*]
      %a: f32[*] = Neg(%x) @a
      output a = %a
    }} @first
  %y: f32[*] = If(%go, %h) {captures = 1, else_branch = graph {
      input %h: f32[*]
      output h = %h
    }, then_branch = graph {
      input %h: f32[*]
      constant %two: i64[] = [2]
      %shape: i64[?] = Shape(%h) @shape
      %rank: i64[] = Size(%shape) @rank
      %flat: bool[] = Equal(%rank, %two) @flat
      %z: f32[*] = If(%flat, %h) {captures = 1, else_branch = graph {
          input %h: f32[*]
          output h = %h
        }, then_branch = graph {
          input %h: f32[*]
          %r: f32[*] = Relu(%h) @r
          output r = %r
        }} @third
      output z = %z
    }} @second
  output y = %y
})");

  OwnedGraph flat = apply(graph, "fusion.default");

  EXPECT_EQ(operators(flat), (std::vector<std::string>{"Neg", "Relu"}));
  EXPECT_EQ(run(flat), run(graph));
}

TEST_F(FoldTest, AGraphThatIsItsInputStaysOne) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[4]
  %y: f32[4] = Identity(%x) @y
  output result = %y
})");

  OwnedGraph empty = apply(graph, "fusion.default");

  EXPECT_THAT(operators(empty), IsEmpty());
  EXPECT_EQ(empty.view().output_name(0), "result");
  EXPECT_EQ(run(empty), run(graph));
}

}  // namespace
}  // namespace tenon::test
