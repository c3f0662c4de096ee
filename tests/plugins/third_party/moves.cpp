// SPDX-License-Identifier: Apache-2.0
// What channels go through: coupled by the column coupling, and by axes with a number in them.
#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/op.hpp"

namespace {

using tenon::Builder;
using tenon::EditView;
using tenon::Node;
using tenon::Result;
using tenon::Status;
using tenon::Value;
using Values = std::vector<Value>;

// All inputs doubled, one after the other along the axis `along`.
Result<Values> join(EditView edit, Node node) {
  Builder b(edit);
  Value all = b.op("Concat", node.inputs(), {{"axis", node.attr_int("along")}});
  Value y = b.add(all, all);
  TN_CHECK(b.status());
  return Values{y};
}
Status join_shape(EditView edit, Node node) {
  tenon::Type type = node.input(0).type();
  auto axis = static_cast<size_t>(node.attr_int("along"));
  for (uint64_t i = 1; i < node.n_inputs(); ++i)
    type.dims[axis] += node.input(i).type().dims[axis];
  return edit.set_type(node.output(), type);
}

// The first half of the channels times the sigmoid of the second.
Result<Values> halves(EditView edit, Node node) {
  Builder b(edit);
  Node parts = b.node({.type = "Split",
                       .inputs = {node.input(0)},
                       .attrs = {{"axis", 1}, {"num_outputs", 2}},
                       .n_outputs = 2});
  TN_CHECK(b.status());
  Value y = b.mul(parts.output(0), b.op("Sigmoid", {parts.output(1)}));
  TN_CHECK(b.status());
  return Values{y};
}

constexpr tn_op kJoin = tenon::op_row({.type = "Join",
                                       .domain = "acme",
                                       .attributes = R"([{"name": "along", "type": "int"}])",
                                       .shape = tenon::shape<join_shape>,
                                       .decompose = tenon::decompose<join>,
                                       .coupling = "concat axis=along"});
// The same, but its row says nothing.
constexpr tn_op kOpaqueJoin = tenon::op_row({.type = "OpaqueJoin",
                                             .domain = "acme",
                                             .attributes = R"([{"name": "along", "type": "int"}])",
                                             .shape = tenon::shape<join_shape>,
                                             .decompose = tenon::decompose<join>});
constexpr tn_op kHalves = tenon::op_row({.type = "Halves",
                                         .domain = "acme",
                                         .axes = "n (2 c) s.. -> n c s..",
                                         .decompose = tenon::decompose<halves>});

}  // namespace

TENON_OPS(moves, &kJoin, &kOpaqueJoin, &kHalves)
