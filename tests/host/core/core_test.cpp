// SPDX-License-Identifier: Apache-2.0
// The core of the host by itself: values, services, graphs and the registry, without the runtime
// and the text form. That this links is half of the test.
#include <gmock/gmock.h>

#include "host/graph/graph_fixture.hpp"
#include "registry/registry.hpp"
#include "services/rooms.hpp"

namespace tenon::host {

const Rooms& rooms() {
  static const Rooms none;
  return none;
}

namespace test {
namespace {

using testing::HasSubstr;

class Core : public GraphTest {
 protected:
  // y = F(x), a function of the graph with a gradient of its own.
  void call(const tn_graph* body, const tn_graph* vjp) {
    begin();
    tn_value_id x = input("x", TypeOf(TN_F32, {2}));
    ASSERT_EQ(text_of(edits.add_function(edit_, str("d"), str("F"), body, vjp)), "");
    tn_node_desc desc{};
    desc.struct_size = sizeof desc;
    desc.domain = str("d");
    desc.type = str("F");
    desc.inputs = &x;
    desc.n_inputs = desc.n_outputs = 1;
    tn_value_id y = 0;
    ASSERT_EQ(text_of(edits.add_node(edit_, &desc, nullptr, &y)), "");
    output("y", y);
    ASSERT_EQ(commit(), "");
  }
  // A graph of `n` inputs whose one output is the sum of the first and the last.
  Ref<tn_graph> sum_of(int n) {
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(graphs.create(ctx(), &raw)), "");
    auto made = Ref<tn_graph>::take(raw);
    std::swap(graph_, raw);
    begin();
    std::vector<tn_value_id> in;
    for (int i = 0; i < n; ++i)
      in.push_back(input(cat("a", i), TypeOf(TN_F32, {2})));
    output("sum", node("Add", {in.front(), in.back()}).value);
    EXPECT_EQ(commit(), "");
    std::swap(graph_, raw);
    return made;
  }
};

TEST_F(Core, EditsVerifiesClonesAndExtracts) {
  begin();
  tn_value_id x = input("x", TypeOf(TN_F32, {2, 3}));
  Made product = node("MatMul", {x, constant("w", TN_F32, {3, 4})}, "product");
  output("y", node("Relu", {product.value}, "relu").value);
  ASSERT_EQ(commit(), "");
  tn_graph *copy = nullptr, *part = nullptr;

  EXPECT_EQ(text_of(graphs.verify(graph_)), "");
  EXPECT_EQ(type_of(product.value), "f32[2, 4]");
  ASSERT_EQ(text_of(graphs.clone(graph_, &copy)), "");
  ASSERT_EQ(text_of(graphs.extract(graph_, &product.node, 1, &part)), "");
  EXPECT_EQ(graphs.count(copy, TN_LIST_NODES), 2u);
  EXPECT_EQ(graphs.count(part, TN_LIST_NODES), 1u);
  graphs.release(copy);
  graphs.release(part);
}

TEST_F(Core, SaysWhichRoomsAreMissing) {
  tn_graph* parsed = nullptr;

  EXPECT_EQ(find_service("tenon.host.eval/1"), nullptr);
  EXPECT_NE(find_service("tenon.host.graph/1"), nullptr);
  EXPECT_THAT(text_of(graphs.parse(ctx(), str("graph {}"), &parsed)),
              HasSubstr("built without the text form of graphs"));
  EXPECT_EQ(parsed, nullptr);
  EXPECT_TRUE(session_.registry->described("tenon.nobody/1").empty());
}

TEST_F(Core, FunctionsGoAlongWithTheirGradients) {
  Ref<tn_graph> body = sum_of(1), vjp = sum_of(2), other = sum_of(2);
  call(body.get(), vjp.get());
  tn_node_id node = graphs.node_at(graph_, 0);
  tn_graph *copy = nullptr, *part = nullptr;
  ASSERT_EQ(text_of(graphs.clone(graph_, &copy)), "");
  ASSERT_EQ(text_of(graphs.extract(graph_, &node, 1, &part)), "");

  for (const tn_graph* each :
       {static_cast<const tn_graph*>(copy), static_cast<const tn_graph*>(part)}) {
    tn_str domain{}, type{};
    const tn_graph *kept_body = nullptr, *kept_vjp = nullptr;
    ASSERT_EQ(text_of(graphs.function_at(each, 0, &domain, &type, &kept_body, &kept_vjp)), "");
    EXPECT_EQ(graphs.count(kept_body, TN_LIST_INPUTS), 1u);
    ASSERT_NE(kept_vjp, nullptr);
    EXPECT_EQ(graphs.count(kept_vjp, TN_LIST_INPUTS), 2u);
  }
  graphs.release(copy);
  graphs.release(part);
}

// Two functions of one name are one only where their gradients are, too.
TEST_F(Core, FunctionsWithOtherGradientsDoNotMix) {
  Ref<tn_graph> body = sum_of(1), vjp = sum_of(2);
  call(body.get(), vjp.get());
  tn_graph *theirs = nullptr, *mine = nullptr;
  ASSERT_EQ(text_of(graphs.create(ctx(), &theirs)), "");
  std::swap(graph_, theirs);
  call(body.get(), nullptr);
  std::swap(graph_, theirs);
  mine = graph_;
  begin();
  tn_value_id map[] = {graphs.value_at(theirs, TN_LIST_INPUTS, 0, 0),
                       graphs.value_at(mine, TN_LIST_INPUTS, 0, 0)};

  EXPECT_THAT(text_of(edits.splice(edit_, theirs, str(""), map, 1)),
              HasSubstr("both graphs have a function d:F, and they differ"));
  rollback();
  graphs.release(theirs);
}

}  // namespace
}  // namespace test
}  // namespace tenon::host
