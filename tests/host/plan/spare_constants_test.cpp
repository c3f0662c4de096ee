// SPDX-License-Identifier: Apache-2.0
// Constants that a backend may discard once it has packed them: those that nothing but its
// partition and the graph of one compile has.
#include <gmock/gmock.h>

#include "host/graph/graph_fixture.hpp"
#include "plan/partition.hpp"

namespace tenon::host::test {
namespace {

// Claims all nodes and, when it compiles, says of all constants that it has read them.
struct Packing {
  static tn_status* claim(void*, const tn_graph* graph, int32_t, const tn_claims* claims) {
    for (uint64_t i = 0; i < graphs.count(graph, TN_LIST_NODES); ++i) {
      tn_node_id id = graphs.node_at(graph, i);
      claims->take(claims->ctx, &id, 1);
    }
    return nullptr;
  }
  static tn_status* compile(
      void* self, const tn_graph* graph, int32_t, const tn_options*, void** out_exe) {
    for (tn_value_id id : graph->tables->constants)
      tensor_service()->unneeded(graphs.constant(graph, id));
    *out_exe = self;
    return nullptr;
  }
  static void exe_free(void*, void*) {}
};

class SpareConstants : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    begin();
    TypeOf type(TN_F32, {3});
    weight_ = constant("w", TN_F32, {3});
    shown_ = constant("shown", TN_F32, {3});
    tn_value_id sum = node("Add", {input("x", type), weight_}, "first").value;
    output("y", node("Add", {sum, shown_}, "second").value);
    output("shown", shown_);
    ASSERT_EQ(commit(), "");
    table_.struct_size = sizeof table_;
    table_.claim = Packing::claim;
    table_.compile = Packing::compile;
    table_.exe_free = Packing::exe_free;
  }
  void compile(bool spares_constants) {
    tn_plan plan;
    plan.ctx = ctx();
    plan.backends.push_back(std::make_unique<BackendUse>());
    plan.backends[0]->id = "packing";
    plan.backends[0]->table = &table_;
    plan.backends[0]->self = this;
    Compiled bound;
    bound.plan = &plan;
    bound.graph = Ref<tn_graph>::take(std::exchange(graph_, nullptr));
    auto made = compile_partitions(&bound, spares_constants);
    graph_ = bound.graph.release();
    bound.plan = nullptr;
    ASSERT_TRUE(made.ok()) << made.status().text();
    ASSERT_EQ(made->size(), 1U);
  }
  bool is_discarded(tn_value_id id) const { return graphs.constant(graph_, id)->is_discarded(); }

  tn_backend table_{};
  tn_value_id weight_ = 0, shown_ = 0;
};

TEST_F(SpareConstants, GoWhenTheirOnlyPartitionHasReadThem) {
  compile(true);

  EXPECT_TRUE(is_discarded(weight_));
  EXPECT_EQ(graphs.constant(graph_, weight_)->data(), nullptr);
  EXPECT_TRUE(has_discarded_constants(*graph_));
}

TEST_F(SpareConstants, StayWhereTheGraphHandsThemOut) {
  compile(true);

  EXPECT_FALSE(is_discarded(shown_));
}

TEST_F(SpareConstants, StayWhereAnotherGraphHasThem) {
  auto other = Ref<tn_graph>::take(clone(*graph_));
  compile(true);

  EXPECT_FALSE(has_discarded_constants(*graph_));
}

TEST_F(SpareConstants, StayWhereSomebodyHoldsTheTensor) {
  auto held = Ref<tn_tensor>::share(graphs.constant(graph_, weight_));
  compile(true);

  EXPECT_FALSE(is_discarded(weight_));
}

TEST_F(SpareConstants, StayWhereTheCompileKeepsThem) {
  compile(false);

  EXPECT_FALSE(has_discarded_constants(*graph_));
}

}  // namespace
}  // namespace tenon::host::test
