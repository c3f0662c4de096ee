// SPDX-License-Identifier: Apache-2.0
// Operators whose plain kernels break what the ABI says of them, each in one way; and two that use
// what rows are given.
#include <atomic>

#include "tenon/sdk/role/op.hpp"

namespace {

using tenon::Call;
using tenon::EditView;
using tenon::Node;
using tenon::OpSelf;
using tenon::Result;
using tenon::Status;
using tenon::Value;

Status fill(const Call& call, uint32_t dtype, std::vector<int64_t> shape) {
  TN_TRY(out, call.out(0, dtype, shape));
  if (dtype == TN_F32)
    for (int64_t i = 0; i < tenon::element_count(out); ++i)
      tenon::data_of<float>(out)[i] = 2 * call.data<float>(0)[i];
  return {};
}

Status wrong_shape(const Call& call) {
  return fill(call, TN_F32, {1});
}
Status wrong_type(const Call& call) {
  return fill(call, TN_F64, {call.shape(0).begin(), call.shape(0).end()});
}
Status no_output(const Call&) {
  return {};
}
Status not_this(const Call&) {
  return tenon::unsupported("not on a Monday");
}
Result<std::vector<Value>> in_pieces(EditView edit, Node node) {
  TN_TRY(sum, edit.op("Add", {node.input(0), node.input(0)}));
  return std::vector<Value>{sum};
}

// Always both, however many the node has; its row says nothing of their number.
Status two_outputs(const Call& call) {
  TN_CHECK(fill(call, TN_F32, {call.shape(0).begin(), call.shape(0).end()}));
  return call.out(1, TN_F32, call.shape(0)).status();
}
Status like_the_input(EditView edit, Node node) {
  for (uint64_t i = 0; i < node.n_outputs(); ++i)
    TN_CHECK(edit.set_type(node.output(i), node.input(0).type()));
  return {};
}

// Counts its calls in the state that all rows of this plugin share.
struct Calls {
  std::atomic<int> n = 0;
};
Status counted(OpSelf& self, const Call& call) {
  if (!self.ctx()) return tenon::invalid("expected a context");
  TN_TRY(out, call.out(0, TN_F32, call.shape(0)));
  float n = static_cast<float>(++self.state<Calls>().n);
  for (int64_t i = 0; i < tenon::element_count(out); ++i)
    tenon::data_of<float>(out)[i] = n;
  return {};
}
tenon::OpCost counted_cost(OpSelf& self, Node) {
  return {static_cast<double>(self.state<Calls>().n), 0};
}

#define KERNEL(name, function)                                       \
  constexpr tn_op k##name = tenon::op_row({.type = #name,            \
                                           .domain = "test.kernels", \
                                           .axes = "s.. -> s..",     \
                                           .ref = tenon::ref<function>})
KERNEL(WrongShape, wrong_shape);
KERNEL(WrongType, wrong_type);
KERNEL(NoOutput, no_output);
constexpr tn_op kNotThis = tenon::op_row({.type = "NotThis",
                                          .domain = "test.kernels",
                                          .axes = "s.. -> s..",
                                          .decompose = tenon::decompose<in_pieces>,
                                          .ref = tenon::ref<not_this>});
constexpr tn_op kTwoOutputs = tenon::op_row({.type = "TwoOutputs",
                                             .domain = "test.kernels",
                                             .shape = tenon::shape<like_the_input>,
                                             .ref = tenon::ref<two_outputs>});
constexpr tn_op kCounted = tenon::op_row({.type = "Counted",
                                          .domain = "test.kernels",
                                          .axes = "s.. -> s..",
                                          .cost = tenon::cost<counted_cost>,
                                          .ref = tenon::ref<counted>});

}  // namespace

TENON_OPS(kernels, &kWrongShape, &kWrongType, &kNoOutput, &kNotThis, &kTwoOutputs, &kCounted)
