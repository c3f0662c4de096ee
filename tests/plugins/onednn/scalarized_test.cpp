// SPDX-License-Identifier: Apache-2.0
// Groups of nodes over small tensors that run as one step, beside the reference: what moves numbers
// between pointwise nodes, what is read outside, and what stays as it was.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class Scalarized : public BothBackends {
 protected:
  // The kernels of the plan, by their names without how they are made.
  std::map<std::string, int> kernels_of(const std::string& text) {
    const Outcome got = run(parse(text), {{"backend", "onednn"}, {"threads", 1}});
    EXPECT_EQ(got.error, "");
    std::map<std::string, int> kernels;
    for (const json& partition : got.plan["partitions"])
      for (const auto& [name, count] : partition["kernels"].items())
        kernels[name.substr(0, name.find(' '))] += count.get<int>();
    return kernels;
  }
  // In one step, where there is machine code.
  void expect_one_step(const std::string& text) {
    expect_same(text);
    const std::map<std::string, int> kernels = kernels_of(text);
    if (__builtin_cpu_supports("avx2") == 0) return;  // no machine code
    EXPECT_EQ(kernels, (std::map<std::string, int>{{"tenon:scalars", 1}})) << text;
  }
};

TEST_F(Scalarized, StacksNumbersThatWereCutFromRows) {
  expect_one_step(R"(graph {
    input %x: f32[3]
    constant %c0: i64[1] = [0]
    constant %c1: i64[1] = [1]
    constant %c2: i64[1] = [2]
    constant %c3: i64[1] = [3]
    constant %ten: f32[] = [10]
    %s0: f32[1] = Slice(%x, %c0, %c1, %c0) @n1
    %a: f32[] = Squeeze(%s0, %c0) @n2
    %s2: f32[1] = Slice(%x, %c2, %c3, %c0) @n3
    %b: f32[] = Squeeze(%s2, %c0) @n4
    %p: f32[] = Mul(%a, %ten) @n5
    %q: f32[] = Sub(%a, %b) @n6
    %u: f32[1] = Unsqueeze(%p, %c0) @n7
    %v: f32[1] = Unsqueeze(%q, %c0) @n8
    %w: f32[1] = Unsqueeze(%b, %c0) @n9
    %y: f32[3] = Concat(%u, %v, %w) {axis = 0} @n10
    %z: f32[3] = Add(%y, %x) @n11
    output result = %z
  })");
}

TEST_F(Scalarized, MovesNumbersInEveryWay) {
  expect_one_step(R"(graph {
    input %x: f32[2, 3]
    constant %axis: i64[1] = [1]
    constant %rows: i64[1] = [0]
    constant %last: i64[1] = [-1]
    constant %before: i64[1] = [-9]
    constant %pads: i64[4] = [1, 0, 0, 1]
    constant %half: f32[] = [0.5]
    constant %parts: i64[2] = [1, 2]
    constant %shape: i64[2] = [3, 3]
    %d: f32[2, 3] = Mul(%x, %x) @n12
    %back: f32[2, 3] = Slice(%d, %last, %before, %axis, %last) @n13
    %t: f32[3, 2] = Transpose(%back) {perm = ints [1, 0]} @n14
    %one: f32[1, 2], %two: f32[2, 2] = Split(%t, %parts) {axis = 0} @n15
    %p: f32[3, 3] = Pad(%two, %pads, %half) @n16
    %sum: f32[1, 3] = ReduceMean(%p, %rows) {keepdims = 1} @n17
    %wide: f32[3, 3] = Expand(%sum, %shape) @n18
    %z: f32[3, 3] = Sub(%wide, %p) @n19
    %joined: f32[3, 2] = Concat(%one, %two) {axis = 0} @n20
    %y: f32[3, 2] = Tanh(%joined) @n21
    output a = %z
    output b = %y
  })");
}

TEST_F(Scalarized, ReducesAndMultiplies) {
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"}) {
    const std::string text = cat(R"(graph {
      input %a: f32[3, 2]
      input %b: f32[2, 3]
      constant %axes: i64[1] = [1]
      %s: f32[3, 2] = Sin(%a) @n22
      %y: f32[3, 3] = MatMul(%s, %b) @n23
      %r: f32[3, 1] = )",
                                 op, R"((%y, %axes) {keepdims = 1} @reduce
      %z: f32[3, 3] = Div(%y, %r) @n24
      output result = %z
    })");
    expect_one_step(text);
  }
}

TEST_F(Scalarized, KnowsTruthValuesAndChoices) {
  expect_one_step(R"(graph {
    input %x: f32[4]
    constant %half: f32[] = [0.5]
    %big: bool[4] = Greater(%x, %half) @n25
    %n: f32[4] = Cast(%big) {to = dtype f32} @n26
    %both: f32[8] = Concat(%n, %x) {axis = 0} @n27
    %e: f32[8] = Exp(%both) @n28
    %w: f32[4] = Where(%big, %x, %n) @n29
    output a = %e
    output b = %w
    output c = %big
  })");
}

// A number that stays infinite or NaN in one element is of no other element's concern.
TEST_F(Scalarized, KeepsElementsApart) {
  expect_one_step(R"(graph {
    input %x: f32[3]
    constant %zero: f32[3] = [0, 1, -1]
    constant %pads: i64[2] = [1, 0]
    %y: f32[3] = Div(%x, %zero) @n30
    %p: f32[4] = Pad(%y, %pads) @n31
    %z: f32[4] = Add(%p, %p) @n32
    output result = %z
  })");
}

TEST_F(Scalarized, RunsInALoop) {
  const std::string text = R"(graph {
    input %x: f32[3]
    constant %n: i64[] = [7]
    constant %true: bool[] = x'01'
    %y: f32[3] = Loop(%n, %true, %x) {body = graph {
      input %i: i64[]
      input %go: bool[]
      input %s: f32[3]
      constant %c0: i64[1] = [0]
      constant %c1: i64[1] = [1]
      constant %c3: i64[1] = [3]
      constant %most: f32[] = [0.25]
      %head: f32[1] = Slice(%s, %c0, %c1, %c0) @n33
      %tail: f32[2] = Slice(%s, %c1, %c3, %c0) @n34
      %h: f32[1] = Mul(%head, %most) @n35
      %rotated: f32[3] = Concat(%tail, %h) {axis = 0} @n36
      %next: f32[3] = Add(%rotated, %most) @n37
      output again = %go
      output next = %next
      }} @loop
    output result = %y
  })";
  expect_same(text);
}

// Where nothing would be a step of its own, and where values are larger.
TEST_F(Scalarized, LeavesOtherGroupsAlone) {
  const char* graphs[] = {R"(graph {
    input %x: f32[4]
    %a: f32[4] = Exp(%x) @n38
    %b: f32[4] = Mul(%a, %x) @n39
    output result = %b
  })",
                          R"(graph {
    input %x: f32[8]
    %a: f32[8] = Exp(%x) @n40
    %b: f32[16] = Concat(%a, %x) {axis = 0} @n41
    %c: f32[16] = Tanh(%b) @n42
    output result = %c
  })"};
  for (const char* text : graphs) {
    expect_same(text);
    EXPECT_EQ(kernels_of(text).count("tenon:scalars"), 0U);
  }
}

// The shape of a single number is a list without elements.
TEST_F(Scalarized, ReshapesToASingleNumber) {
  expect_same(R"(graph {
    input %x: f32[1, 1]
    constant %none: i64[0] = []
    %y: f32[] = Reshape(%x, %none) @n43
    %z: f32[] = Expand(%y, %none) @n44
    %w: f32[] = ReduceSum(%x, %none) {keepdims = 0} @n45
    %v: f32[] = Mul(%z, %w) @n46
    output result = %v
  })");
}

}  // namespace
}  // namespace tenon::test
