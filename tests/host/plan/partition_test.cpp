// SPDX-License-Identifier: Apache-2.0
// Which of several backends gets a node, whole or in pieces, and what counts as a fallback.
#include "plan/partition.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "host/graph/graph_fixture.hpp"

namespace tenon::host::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A backend that claims the operators it is given, node by node, and refuses the others.
struct Picky {
  std::vector<std::string> takes;
  int n_asked = 0;
  static tn_status* claim(void* self, const tn_graph* graph, int32_t, const tn_claims* claims) {
    const auto& all = static_cast<Picky*>(self)->takes;
    ++static_cast<Picky*>(self)->n_asked;
    for (uint64_t i = 0; i < graphs.count(graph, TN_LIST_NODES); ++i) {
      tn_node_id id = graphs.node_at(graph, i);
      tn_str domain{}, type{};
      Status ignored(graphs.node_op(graph, id, &domain, &type));
      if (std::find(all.begin(), all.end(), view(type)) != all.end())
        claims->take(claims->ctx, &id, 1);
      else
        claims->refuse(claims->ctx, id, str("no kernel"));
    }
    return nullptr;
  }
};

// y = Relu(Double(x)); Double is an Add of x and itself.
class Partition : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    begin();
    TypeOf type(TN_F32, {3});
    tn_value_id twice = node("Double", {input("x", type)}, "twice").value;
    output("y", node("Relu", {twice}, "relu").value);
    ASSERT_EQ(commit(), "");
    table_.struct_size = sizeof table_;
    table_.claim = Picky::claim;
  }
  // Backends in order; the last is the one that nobody asked for. "node on backend" for each node,
  // and nodes that fell back. lost: names of nodes that the first claimed and could not compile.
  void divide(std::vector<Picky> backends, const std::vector<std::string>& lost = {}) {
    Lost taken;
    for (const std::string& name : lost)
      taken[{name, 0}] = "compile failed";
    std::vector<std::unique_ptr<BackendUse>> uses;
    for (size_t i = 0; i < backends.size(); ++i) {
      uses.push_back(std::make_unique<BackendUse>());
      uses.back()->id = cat("b", i);
      uses.back()->table = &table_;
      uses.back()->self = &backends[i];
      uses.back()->last_resort = i + 1 == backends.size();
    }
    std::vector<Fallback> fallbacks;
    Result<std::vector<host::Partition>> partitions =
        partition(graph_, uses, taken, LateSizes::kHeavy, &fallbacks);
    ASSERT_TRUE(partitions.ok()) << partitions.status().text();
    for (const host::Partition& part : *partitions) {
      sizes_.push_back(part.nodes.size());
      for (tn_node_id id : part.nodes) {
        tn_str domain{}, type{};
        Status ignored(graphs.node_op(graph_, id, &domain, &type));
        runs_.push_back(cat(view(type), " on ", part.backend));
      }
    }
    for (const Fallback& one : fallbacks)
      fallbacks_.push_back(cat(one.node, ": ", one.why));
    n_asked_ = backends[0].n_asked;
  }

  tn_backend table_{};
  std::vector<std::string> runs_, fallbacks_;
  std::vector<size_t> sizes_;  // of partitions
  int n_asked_ = 0;            // the first, about the graph or what came of it
};

TEST_F(Partition, GivesANodeWholeToTheFirstThatTakesIt) {
  divide({{{"Double", "Relu"}}, {{"Double", "Add"}}, {{"Double", "Relu", "Add"}}});

  EXPECT_THAT(runs_, ElementsAre("Double on 0", "Relu on 0"));
  EXPECT_THAT(fallbacks_, IsEmpty());
}

TEST_F(Partition, GivesPiecesToTheFirstBackendBeforeTheWholeToTheSecond) {
  divide({{{"Add", "Relu"}}, {{"Double"}}, {{"Double", "Relu", "Add"}}});

  EXPECT_THAT(runs_, ElementsAre("Add on 0", "Relu on 0"));
  EXPECT_THAT(fallbacks_, IsEmpty());
}

// What came of a trial stays where all of it is wanted.
TEST_F(Partition, AsksAboutTheWholeAndThePiecesOnceEach) {
  divide({{{"Add", "Relu"}}, {{"Double"}}, {{"Double", "Relu", "Add"}}});

  EXPECT_EQ(n_asked_, 2);
}

TEST_F(Partition, AsksAboutAnOperatorWithoutPiecesOnce) {
  divide({{{"Double", "Relu"}}, {{"Double", "Relu", "Add"}}});

  EXPECT_EQ(n_asked_, 1);
}

TEST_F(Partition, OffersPiecesToEveryBackendThatIsNamed) {
  divide({{{"Relu"}}, {{"Add"}}, {{"Double", "Relu", "Add"}}});

  EXPECT_THAT(runs_, ElementsAre("Add on 1", "Relu on 0"));
  EXPECT_THAT(fallbacks_, IsEmpty()) << "the second backend was asked for";
}

TEST_F(Partition, LeavesANodeWholeWhereAPieceWouldFallBackAnyway) {
  divide({{{"Relu"}}, {{"Double"}}, {{"Double", "Relu", "Add"}}});

  EXPECT_THAT(runs_, ElementsAre("Double on 1", "Relu on 0"));
  EXPECT_THAT(fallbacks_, IsEmpty());
}

TEST_F(Partition, ListsWhatFellBackAndNothingElse) {
  divide({{{"Relu"}}, {{"MatMul"}}, {{"Double", "Relu", "Add"}}});

  EXPECT_THAT(runs_, ElementsAre("Double on 2", "Relu on 0"));
  EXPECT_THAT(fallbacks_, ElementsAre("twice: b0: no kernel; b1: no kernel"));
}

TEST_F(Partition, GivesALostNodeToTheNextBackendAndListsIt) {
  divide({{{"Double", "Relu"}}, {{"Relu"}}, {{"Double", "Relu", "Add"}}}, {"relu"});

  EXPECT_THAT(runs_, ElementsAre("Double on 0", "Relu on 1"));
  EXPECT_THAT(fallbacks_, ElementsAre("relu: b0: compile failed"));
}

TEST_F(Partition, OpensALostNodeWhereItsPiecesRunBefore) {
  divide({{{"Double", "Relu", "Add"}}, {{"Double"}}}, {"twice"});

  EXPECT_THAT(runs_, ElementsAre("Add on 0", "Relu on 0"));
  EXPECT_THAT(fallbacks_, IsEmpty());
}

// Adds on the first backend, Relus on the second.
class Depths : public Partition {
 protected:
  void SetUp() override {
    Partition::SetUp();
    begin();
    key_ = graphs.value_at(graph_, TN_LIST_INPUTS, 0, 0);
    x_ = input("data", TypeOf(TN_F32, {3}));
  }
  tn_value_id add(tn_value_id a, tn_value_id b) { return node("Add", {a, b}).value; }
  void divide_adds() {
    ASSERT_EQ(commit(), "");
    divide({{{"Add", "Double"}}, {{"Relu"}}});
  }
  tn_value_id key_ = 0, x_ = 0;
};

// As where a training step draws random numbers on another backend.
TEST_F(Depths, DoNotCutAChainThatWaitsForAnotherBackendAtItsEnd) {
  tn_value_id deep = add(add(add(x_, x_), x_), x_);
  output("sum", add(deep, node("Relu", {add(key_, key_)}, "draw").value));
  divide_adds();

  // What the Relus wait for, the Relus, and all the others.
  EXPECT_THAT(sizes_, ElementsAre(2, 2, 4));
}

TEST_F(Depths, DoNotCutAChainOfWhichAnotherBackendReadsTheBeginning) {
  tn_value_id first = add(x_, x_);
  output("end", node("Relu", {first}, "end").value);
  output("sum", add(add(first, x_), x_));
  divide_adds();

  EXPECT_THAT(sizes_, ElementsAre(4, 2));
}

}  // namespace
}  // namespace tenon::host::test
