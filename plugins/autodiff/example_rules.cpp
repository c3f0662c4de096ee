// SPDX-License-Identifier: Apache-2.0
#include "example_rules.hpp"

#include <algorithm>
#include <numeric>

#include "reverse.hpp"
#include "rules.hpp"

namespace tenon::autodiff {
namespace {

// [n, ...] summed where the parameter was broadcast; the axis of examples stays.
Value summed_to(Builder& b, Value gradient, const Type& parameter, const Type& type) {
  std::vector<int64_t> axes;
  size_t extra = type.rank() - std::min(type.rank(), parameter.rank());
  for (size_t i = 1; i < type.rank(); ++i)
    if (i < extra || (parameter.dims[i - extra] == 1 && type.dims[i] != 1))
      axes.push_back(static_cast<int64_t>(i));
  return axes.empty() ? gradient : b.sum(gradient, axes);
}

// The row's column, or the gradient of a pointwise node before it is summed.
Status ask(const EditView& edit,
           const Examples& examples,
           const Reader& reader,
           const std::vector<Value>& cotangents,
           Squares* squares) {
  if (std::ranges::none_of(cotangents, [](Value v) { return bool(v); })) return {};
  const tn_op* row = reader.node.row();
  std::vector<tn_value_id> found(reader.node.n_inputs(), 0);
  if (row->example_norms) {
    std::vector<tn_value_id> given;
    for (Value cotangent : cotangents)
      given.push_back(cotangent.id);
    TN_CHECK(row->example_norms(row->self, edit.raw, reader.node.id, given.data(),
                                reader.wanted.data(), found.data()));
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i]) (*squares)[reader.node.input(i).id] = edit.value(found[i]);
    return {};
  }
  if (!(row->traits & TN_OP_POINTWISE)) return unsupported("the row has no example_norms");
  TN_CHECK(differentiate(edit, reader.node, cotangents, reader.wanted, found));
  Builder b(edit);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!reader.wanted[i] || !found[i]) continue;
    Value parameter = reader.node.input(i), gradient = edit.value(found[i]);
    if (!examples.leads(gradient.type())) return unsupported("its gradient has no examples");
    (*squares)[parameter.id] =
        sum_of_squares(b, summed_to(b, gradient, parameter.type(), gradient.type()));
  }
  return b.status();
}

}  // namespace

Value sum_of_squares(Builder& b, Value x) {
  std::vector<int64_t> axes(std::max<size_t>(b.ranked(x, "example_norms").rank(), 1) - 1);
  std::iota(axes.begin(), axes.end(), int64_t{1});
  const bool is_narrow = x.dtype() == TN_F16 || x.dtype() == TN_BF16;
  if (is_narrow) x = b.cast(x, TN_F32);
  return b.op("ReduceSumSquare", {x, b.ints(axes)}, {{"keepdims", 0}, {"noop_with_empty_axes", 1}});
}

Result<Squares> by_rules(const EditView& edit,
                         const Examples& examples,
                         const std::map<tn_node_id, Reader>& readers,
                         const std::map<tn_value_id, Named>& parameters,
                         const Cotangents& cotangents,
                         Reasons* reasons) {
  Squares found_by_value, squares;
  for (const auto& [id, reader] : readers) {
    std::vector<Value> given;
    for (Value output : reader.node.outputs()) {
      auto found = output ? cotangents.find(output.id) : cotangents.end();
      given.push_back(found == cotangents.end() ? Value{} : found->second);
    }
    Status done = ask(edit, examples, reader, given, &found_by_value);
    if (!done.ok() && done.code() != TN_UNIMPLEMENTED)
      return std::move(done).in(described(reader.node));
    for (uint64_t i = 0; i < reader.node.n_inputs() && !done.ok(); ++i)
      if (reader.wanted[i])
        reasons->emplace(parameters.at(reader.node.input(i).id).name,
                         cat(described(reader.node), ": ", done.text()));
  }
  for (const auto& [id, square] : found_by_value)
    squares[parameters.at(id).value.id] = square;
  return squares;
}

}  // namespace tenon::autodiff
