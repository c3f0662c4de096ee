// SPDX-License-Identifier: Apache-2.0
#include "host/graph/graph_fixture.hpp"

namespace tenon::host::test {
namespace {

using EditTest = GraphTest;

tn_value_id first_of(tn_edit* edit, tn_node_id node, uint32_t which) {
  return graphs.io_at(edits.graph(edit), node, which, 0);
}

// The note on the node's input, or -1.
int64_t noted_size(tn_edit* edit, tn_node_id node) {
  tn_any note{};
  EXPECT_EQ(text_of(graphs.note(edits.graph(edit), first_of(edit, node, TN_LIST_INPUTS),
                                str("acme.size"), &note)),
            "");
  return note.tag == TN_ANY_I64 ? note.v.i : -1;
}

tn_status* note_size(tn_edit* edit, tn_node_id node, int64_t size) {
  const tn_value_id out = first_of(edit, node, TN_LIST_OUTPUTS);
  EXPECT_EQ(text_of(edits.set_note(edit, out, str("acme.size"), any_i64(size))), "");
  return edits.set_type(edit, out, TypeOf(TN_I64, {1}));
}

// Size(x): the size of the first axis; Next(n) = n + 1; Fill(n): as many numbers.
tn_status* size_shape(void*, tn_edit* edit, tn_node_id node) {
  tn_type from;
  const tn_value_id x = first_of(edit, node, TN_LIST_INPUTS);
  if (tn_status* failed = graphs.value_type(edits.graph(edit), x, &from)) return failed;
  return note_size(edit, node, from.dims[0]);
}
tn_status* next_shape(void*, tn_edit* edit, tn_node_id node) {
  const int64_t size = noted_size(edit, node);
  return note_size(edit, node, size < 0 ? size : size + 1);
}
tn_status* fill_shape(void*, tn_edit* edit, tn_node_id node) {
  return edits.set_type(edit, first_of(edit, node, TN_LIST_OUTPUTS),
                        TypeOf(TN_F32, {noted_size(edit, node)}));
}

TEST_F(EditTest, BuildsReadsAndCommits) {
  build_mlp();

  EXPECT_EQ(graphs.count(graph_, TN_LIST_NODES), 2u);
  EXPECT_EQ(graphs.count(graph_, TN_LIST_CONSTANTS), 1u);
  EXPECT_EQ(type_of(find("fc")), "f32[batch, 3]");
  EXPECT_EQ(view(graphs.io_name(graph_, TN_LIST_OUTPUTS, 0)), "y");
  uint64_t index = 9;
  EXPECT_EQ(graphs.producer(graph_, find("fc"), &index), find_node("fc"));
  EXPECT_EQ(graphs.consumer_at(graph_, find("fc"), 0, &index), find_node("act"));
  EXPECT_EQ(index, 0u);
  EXPECT_EQ(graphs.is_output(graph_, find("act")), 1);
  EXPECT_EQ(text_of(graphs.verify(graph_)), "");
}

TEST_F(EditTest, SeesItsOwnChangesWhileTheGraphStaysAsItWas) {
  build_mlp();
  std::string before = print(graph_);

  begin();
  node("Relu", {find("act")}, "again");

  EXPECT_EQ(graphs.count(edits.graph(edit_), TN_LIST_NODES), 3u);
  EXPECT_EQ(print(graph_), before);
  rollback();
  EXPECT_EQ(print(graph_), before);
}

TEST_F(EditTest, TensorsThatAreNotDenseAreCopied) {
  int64_t numbers[] = {1, 2, 3, 4}, shape[] = {2, 2}, strides[] = {1, 2};
  DLManagedTensorVersioned managed{};
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.dl_tensor = {numbers, {kDLCPU, 0}, 2, dl_type(TN_I64), shape, strides, 0};
  Ref<tn_tensor> given = *import_tensor(ctx(), &managed);
  begin();

  tn_value_id c = 0;
  EXPECT_EQ(text_of(edits.add_constant(edit_, str("c"), given.get(), &c)), "");
  tn_any any{TN_ANY_TENSOR, 0, 1, {.p = given.get()}};
  EXPECT_EQ(text_of(edits.set_note(edit_, c, str("acme.note"), any)), "");

  tn_any note{};
  EXPECT_EQ(text_of(graphs.note(now(), c, str("acme.note"), &note)), "");
  for (const void* kept : {static_cast<const void*>(graphs.constant(now(), c)), note.v.p}) {
    const auto& tensor = *static_cast<const tn_tensor*>(kept);
    const auto* elements = reinterpret_cast<const int64_t*>(tensor.data());
    EXPECT_TRUE(tensor.dense);
    EXPECT_EQ(std::vector<int64_t>(elements, elements + 4), (std::vector<int64_t>{1, 3, 2, 4}));
  }
}

TEST_F(EditTest, RefusesASecondEdit) {
  begin();
  tn_edit* second = nullptr;

  EXPECT_EQ(code_of(edits.begin(graph_, &second)), TN_FAILED_PRECONDITION);
  EXPECT_EQ(second, nullptr);
}

TEST_F(EditTest, FailedCommitChangesNothing) {
  build_mlp();
  std::string before = print(graph_);

  begin();
  EXPECT_EQ(text_of(edits.erase_node(edit_, find_node("fc"))), "");

  EXPECT_NE(commit().find("V2"), std::string::npos);
  EXPECT_EQ(print(graph_), before);
}

TEST_F(EditTest, StaleIdsAreErrors) {
  build_mlp();
  tn_node_id old_node = find_node("act");
  tn_value_id old_value = find("act");

  begin();
  EXPECT_EQ(text_of(edits.set_output(edit_, 0, find("fc"))), "");
  EXPECT_EQ(text_of(edits.erase_node(edit_, old_node)), "");
  ASSERT_EQ(commit(), "");
  begin();
  node("Relu", {find("fc")}, "act");  // takes the same slots
  ASSERT_EQ(commit(), "");

  tn_str domain, type;
  std::string message = text_of(graphs.node_op(graph_, old_node, &domain, &type));
  EXPECT_NE(message.find("stale"), std::string::npos);
  EXPECT_EQ(view(graphs.value_name(graph_, old_value)), "");
  EXPECT_EQ(graphs.io_count(graph_, old_node, TN_LIST_INPUTS), 0u);
  begin();
  EXPECT_EQ(code_of(edits.erase_node(edit_, old_node)), TN_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(edits.replace_uses(edit_, old_value, find("fc"))), TN_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(edits.erase_node(edit_, 0xffffffffffffffffu)), TN_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(edits.erase_node(edit_, 0)), TN_INVALID_ARGUMENT);
}

TEST_F(EditTest, RolledBackIdsNeverComeBack) {
  build_mlp();
  begin();
  tn_node_id lost = node("Relu", {find("fc")}).node;
  rollback();

  begin();
  tn_node_id kept = node("Relu", {find("fc")}).node;

  EXPECT_NE(lost, kept);
  EXPECT_EQ(code_of(edits.erase_node(edit_, lost)), TN_INVALID_ARGUMENT);
}

TEST_F(EditTest, DropsConstantsThatNothingUses) {
  build_mlp();

  begin();
  tn_value_id w = constant("w", TN_F32, {4, 5});
  EXPECT_EQ(view(graphs.value_name(now(), w)), "w_1");
  EXPECT_EQ(text_of(edits.set_input(edit_, find_node("fc"), 1, w)), "");
  ASSERT_EQ(commit(), "");

  EXPECT_EQ(graphs.count(graph_, TN_LIST_CONSTANTS), 1u);
  EXPECT_EQ(find("w"), 0u);
  EXPECT_EQ(type_of(find("act")), "f32[batch, 5]");  // inferred again, all the way down
}

TEST_F(EditTest, SortsNodesThatWereAddedLate) {
  build_mlp();

  begin();
  tn_value_id late = node("Relu", {find("x")}, "late").value;
  EXPECT_EQ(text_of(edits.set_input(edit_, find_node("fc"), 0, late)), "");
  ASSERT_EQ(commit(), "");

  EXPECT_EQ(graphs.node_at(graph_, 0), find_node("late"));
  EXPECT_EQ(graphs.node_at(graph_, 1), find_node("fc"));
}

TEST_F(EditTest, RefusalOfARowAddsNothing) {
  build_mlp();
  begin();
  std::string before = print();

  Made made = try_node("MatMul", {find("fc"), find("w")}, "wrong");

  EXPECT_NE(made.failure.find("wrong (MatMul)"), std::string::npos) << made.failure;
  EXPECT_EQ(made.node, 0u);
  EXPECT_EQ(print(), before);
}

TEST_F(EditTest, ClonesKeepIdsAndShareWeights) {
  build_mlp();
  tn_graph* copy = nullptr;
  ASSERT_EQ(text_of(graphs.clone(graph_, &copy)), "");

  begin();
  EXPECT_EQ(text_of(edits.set_node_name(edit_, find_node("act"), str("other"))), "");
  ASSERT_EQ(commit(), "");

  EXPECT_EQ(view(graphs.node_name(copy, find_node("other"))), "act");
  EXPECT_EQ(graphs.constant(copy, find("w")), graphs.constant(graph_, find("w")));
  graphs.release(copy);
}

TEST_F(EditTest, BorrowedTextLivesToTheEndOfTheEdit) {
  build_mlp();
  begin();
  tn_node_id act = find_node("act");
  tn_str name = graphs.node_name(now(), act);
  EXPECT_EQ(text_of(edits.set_node_name(edit_, act, str("b"))), "");
  tn_str second = graphs.node_name(now(), act);
  EXPECT_EQ(text_of(edits.set_node_name(edit_, act, str("c"))), "");

  EXPECT_EQ(view(name), "act");
  EXPECT_EQ(view(second), "b");
}

TEST_F(EditTest, ReplacesUsesEverywhere) {
  begin();
  TypeOf type(TN_F32, {2});
  tn_value_id x = input("x", type);
  tn_value_id s = input("s", type);
  tn_value_id y = node("Relu", {x}, "y").value;
  tn_value_id z = node("Relu", {s}, "z").value;
  node("Add", {y, y}, "sum");
  output("next", y);
  EXPECT_EQ(text_of(edits.pair_state(edit_, s, y)), "");

  EXPECT_EQ(text_of(edits.replace_uses(edit_, y, z)), "");
  ASSERT_EQ(commit(), "");

  EXPECT_EQ(graphs.consumer_count(graph_, y), 0u);
  EXPECT_EQ(graphs.consumer_count(graph_, z), 2u);
  EXPECT_EQ(graphs.value_at(graph_, TN_LIST_OUTPUTS, 0, 0), z);
  EXPECT_EQ(graphs.value_at(graph_, TN_LIST_STATES, 0, 1), z);
}

TEST_F(EditTest, NotesAndAttributesRoundTrip) {
  build_mlp();
  begin();
  tn_node_id act = find_node("act");
  EXPECT_EQ(text_of(edits.set_note(edit_, act, str("k"), any_text("v"))), "");
  EXPECT_EQ(text_of(edits.set_note(edit_, 0, str("g"), any_i64(7))), "");
  Made scale = node("Scale", {find("x")}, "s");
  tn_any out;
  EXPECT_EQ(text_of(graphs.attr(now(), scale.node, str("alpha"), &out)), "");
  EXPECT_EQ(out.v.f, 2.0);  // the row's default
  EXPECT_EQ(text_of(edits.set_attr(edit_, scale.node, str("alpha"), any_i64(3))), "");
  ASSERT_EQ(commit(), "");

  EXPECT_EQ(text_of(graphs.attr(graph_, scale.node, str("alpha"), &out)), "");
  EXPECT_EQ(out.tag, TN_ANY_F64);
  EXPECT_EQ(out.v.f, 3.0);
  EXPECT_EQ(text_of(graphs.note(graph_, act, str("k"), &out)), "");
  EXPECT_EQ(std::string(static_cast<const char*>(out.v.p), out.len), "v");
  EXPECT_EQ(graphs.note_count(graph_, 0), 1u);
  EXPECT_EQ(text_of(graphs.note(graph_, act, str("none"), &out)), "");
  EXPECT_EQ(out.tag, TN_ANY_NONE);
}

TEST_F(EditTest, WhatInferenceNotesOfAValueReachesAllNodesBehindItInOneCommit) {
  for (auto [type, shape] :
       {std::pair{"Size", &size_shape}, {"Next", &next_shape}, {"Fill", &fill_shape}}) {
    tn_op row = op_row(type, 0, "", "");
    row.shape = shape;
    add_row(row);
  }
  begin();
  tn_value_id x = input("x", TypeOf(TN_F32, {-1}));
  tn_value_id next = node("Next", {node("Size", {x}).value}).value;
  output("y", node("Fill", {next}, "y").value);
  ASSERT_EQ(commit(), "");
  ASSERT_EQ(type_of(find("y")), "f32[?]");

  begin();
  EXPECT_EQ(text_of(edits.set_type(edit_, x, TypeOf(TN_F32, {3}))), "");
  ASSERT_EQ(commit(), "");

  EXPECT_EQ(type_of(find("y")), "f32[4]");
}

TEST_F(EditTest, SharesSmallConstantsOnRequest) {
  begin();
  tn_value_id before = constant("", TN_I64, {2}, 1);
  edit_->share();
  tn_value_id first = constant("", TN_I64, {2}, 1);

  EXPECT_EQ(constant("", TN_I64, {2}, 1), first);
  EXPECT_NE(before, first);
  EXPECT_NE(constant("", TN_I64, {2}, 2), first);
  EXPECT_NE(constant("", TN_I64, {1, 2}, 1), first) << "another shape";
  EXPECT_NE(constant("own", TN_I64, {2}, 1), first) << "a name of its own";
  const tn_value_id empty = constant("", TN_I64, {0});
  EXPECT_NE(empty, first);
  EXPECT_EQ(constant("", TN_I64, {0}), empty);
}

TEST_F(EditTest, SharesNodesThatComputeTheSameOnRequest) {
  build_mlp();
  begin();
  const tn_value_id fc = find("fc");
  const std::vector<Attr> two{{"alpha", {TN_ANY_F64, 0, 1, {.f = 2.0}}}},
      three{{"alpha", {TN_ANY_F64, 0, 1, {.f = 3.0}}}};
  const tn_node_id before = node("Scale", {fc}, "", two).node;
  edit_->share();
  const tn_node_id first = node("Scale", {fc}, "", two).node;

  EXPECT_NE(first, before) << "it may be changed by those who know it";
  EXPECT_EQ(node("Scale", {fc}, "", two).node, first);
  EXPECT_NE(node("Scale", {fc}, "", three).node, first);
  EXPECT_NE(node("Scale", {find("act")}, "", two).node, first);
  EXPECT_NE(node("Relu", {fc}).node, first);
  EXPECT_EQ(edit_->asked_for().size(), 5u);
  EXPECT_EQ(edit_->asked_for()[1], first);
}

}  // namespace
}  // namespace tenon::host::test
