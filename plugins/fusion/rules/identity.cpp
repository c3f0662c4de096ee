// SPDX-License-Identifier: Apache-2.0
// Before:  y = op(x) where op changes nothing: Identity, Dropout in inference, Cast to the same
// type,
//          Reshape, Flatten, Squeeze, Unsqueeze, Expand and Slice to the same shape, Transpose in
//          order, Pad by 0, Tile by 1, one operand of Concat, Sum, Max, Min or Mean, x+0, x-0, x*1,
//          x/1, x^1.
// After:   x.
// Needs:   what makes it change nothing is constant or follows from shapes: sizes that are data of
//          a run stay, for they may be others. Sizes are equal when their numbers or symbols are.
#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "rewriter.hpp"
#include "same_type.hpp"

namespace tenon::fusion {
namespace {

bool other_outputs_unused(Node node) {
  for (uint64_t i = 1; i < node.n_outputs(); ++i)
    if (node.output(i).is_used()) return false;
  return true;
}

bool always(Node) {
  return true;
}
bool keeps_type(Node node) {
  return same_type(node.input(0).type(), node.output().type());
}
// Whether constants and shapes alone say what the value is. Where a run's data do, they may say
// something else than the types, or nothing that is allowed, and the node is who finds out.
bool follows_from_shapes(Value value) {
  std::vector<Value> left{value};
  std::set<tn_value_id> seen;
  while (!left.empty()) {
    Value one = left.back();
    left.pop_back();
    if (!one || one.is_constant() || !seen.insert(one.id).second) continue;
    Node node = one.producer();
    const tn_op* row = node ? node.row() : nullptr;
    if (!row || (row->traits & TN_OP_CONTROL)) return false;
    if (row->traits & TN_OP_READS_SHAPE) continue;
    for (Value input : node.inputs())
      left.push_back(input);
  }
  return true;
}
bool keeps_shape(Node node) {
  if (!keeps_type(node)) return false;
  for (uint64_t i = 1; i < node.n_inputs(); ++i)
    if (!follows_from_shapes(node.input(i))) return false;
  return true;
}
bool same_dtype(Node node) {
  return node.output().dtype() != TN_DTYPE_NONE && node.input(0).dtype() == node.output().dtype();
}
bool inference(Node node) {
  Value training = node.input(2);
  if (!other_outputs_unused(node)) return false;
  if (!training) return true;
  Tensor tensor = training.constant();
  return tensor && services.tensor->bytes(tensor.get()) == 1 && *tensor.data<uint8_t>() == 0;
}
bool one_input(Node node) {
  return node.n_inputs() == 1;
}
// Weights are no neutral operand at their first element: they are not read for it as a whole.
bool may_equal(Value value, double wanted) {
  if (!value || !value.is_constant()) return false;
  const Tensor tensor = value.constant();
  DLTensor first = tensor.dl();
  if (first.device.device_type != kDLCPU || element_count(first) == 0) return true;
  int64_t one = 1;
  first.ndim = 1;
  first.shape = &one;
  first.strides = nullptr;
  bool equal = true;
  with_numbers(first, [&](const auto* x) { equal = static_cast<double>(x[0]) == wanted; });
  return equal;
}
bool all_equal(Value value, double wanted) {
  if (!may_equal(value, wanted)) return false;
  std::optional<std::vector<double>> all = numbers_of(value);
  return all && std::all_of(all->begin(), all->end(), [&](double x) { return x == wanted; });
}
template <int kNeutral>
bool right_is(Node node) {
  return all_equal(node.input(1), kNeutral) && keeps_type(node);
}
bool pads_nothing(Node node) {
  return all_equal(node.input(1), 0);
}
bool forward_slice(Node node) {
  Value steps = node.input(4);
  std::optional<std::vector<int64_t>> by = constant_ints(steps);
  bool forward =
      !steps || (by && std::all_of(by->begin(), by->end(), [](int64_t s) { return s > 0; }));
  return forward && keeps_shape(node);
}
bool in_order(Node node) {
  std::vector<int64_t> perm = node.attr_ints("perm");
  if (perm.empty()) return node.input(0).type().ranked && node.input(0).type().rank() < 2;
  return std::is_sorted(perm.begin(), perm.end());
}

struct Form {
  std::string_view type;
  bool (*changes_nothing)(Node);
};
constexpr Form kForms[] = {
    {"Identity", always},     {"Dropout", inference},     {"Cast", same_dtype},
    {"CastLike", same_dtype}, {"Reshape", keeps_shape},   {"Flatten", keeps_type},
    {"Squeeze", keeps_shape}, {"Unsqueeze", keeps_shape}, {"Expand", keeps_shape},
    {"Slice", forward_slice}, {"Transpose", in_order},    {"Pad", pads_nothing},
    {"Tile", right_is<1>},    {"Concat", one_input},      {"Sum", one_input},
    {"Max", one_input},       {"Min", one_input},         {"Mean", one_input},
    {"Add", right_is<0>},     {"Sub", right_is<0>},       {"Mul", right_is<1>},
    {"Div", right_is<1>},     {"Pow", right_is<1>},
};

Result<bool> rewrite(Rewriter& rewriter, Node node) {
  for (const Form& form : kForms) {
    if (!node.is(form.type) || !form.changes_nothing(node)) continue;
    return rewriter.replace(node, node.input(0));
  }
  // Constants of sums and products may stand on the left.
  bool add = node.is("Add"), mul = node.is("Mul");
  if ((add || mul) && all_equal(node.input(0), add ? 0 : 1) &&
      same_type(node.input(1).type(), node.output().type()))
    return rewriter.replace(node, node.input(1));
  return false;
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  return walk(
      graph, settings,
      {"Identity", "Dropout", "Cast",      "CastLike", "Reshape", "Flatten", "Squeeze", "Unsqueeze",
       "Expand",   "Slice",   "Transpose", "Pad",      "Tile",    "Concat",  "Sum",     "Max",
       "Min",      "Mean",    "Add",       "Sub",      "Mul",     "Div",     "Pow"},
      rewrite);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(identity, "fusion.identity", "removes nodes that change nothing", tenon::fusion::run)
