// SPDX-License-Identifier: Apache-2.0
#include "bodies.hpp"

#include <algorithm>

namespace tenon::ops {
namespace {

// Results of one run of a body.
struct Results {
  tn_ctx* ctx;
  std::vector<Tensor> tensors;
  tn_outputs raw{this, [](void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
                   auto& results = *static_cast<Results*>(self);
                   return guard([&]() -> Status {
                     if (results.tensors.size() <= i) results.tensors.resize(i + 1);
                     TN_TRY(made, Tensor::zeros(results.ctx, dtype_of(*proto), shape_of(*proto)));
                     *out = made.dl();
                     results.tensors[i] = made;
                     return {};
                   });
                 }};
  explicit Results(tn_ctx* owner) : ctx(owner) {}
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
};

}  // namespace

Result<std::vector<Tensor>> run_body(const Call& call,
                                     const tn_body& body,
                                     const std::vector<DLTensor>& in,
                                     size_t n_out) {
  std::vector<const DLTensor*> pointers;
  for (const DLTensor& tensor : in)
    pointers.push_back(&tensor);
  Results results(call.ctx());
  TN_CHECK(body.run(body.ctx, pointers.data(), pointers.size(), &results.raw));
  if (results.tensors.size() < n_out)
    return invalid(cat("body: expected ", n_out, " outputs, got ", results.tensors.size()));
  return std::move(results.tensors);
}

Result<const tn_body*> body_of(const Call& call, std::string_view name) {
  const tn_body* body = call.body(name);
  if (!body) return invalid(cat("attribute ", name, ": expected a graph, got none"));
  return body;
}

Graph graph_of(Node node, std::string_view name) {
  tn_any any = node.attr(name);
  return {any.tag == TN_ANY_GRAPH ? static_cast<const tn_graph*>(any.v.p) : nullptr};
}

Status copy_out(const Call& call, uint64_t i, const DLTensor& from) {
  TN_TRY(out, call.out(i, dtype_of(from), shape_of(from)));
  uint64_t bytes = bytes_of(dtype_of(from), element_count(from));
  if (bytes > 0) std::memcpy(data_of<char>(out), data_of<char>(from), bytes);
  return {};
}

Result<uint64_t> captures_of(Node node) {
  const int64_t n = node.attr_int("captures");
  if (n < 0 || static_cast<uint64_t>(n) > node.n_inputs())
    return invalid(cat("captures: expected a number from 0 to ", node.n_inputs(), ", got ", n));
  return static_cast<uint64_t>(n);
}

std::vector<Type> types_of(const std::vector<Value>& values) {
  std::vector<Type> out;
  for (Value v : values)
    out.push_back(v.type());
  return out;
}

std::vector<Type> output_types(Graph body, const std::vector<Type>& given) {
  const std::vector<Type> own = types_of(body.outputs());
  const auto is_known = [](const Type& type) { return type.is_static(); };
  const size_t n = body.inputs().size();
  if (std::ranges::all_of(own, is_known) || !std::ranges::all_of(given, is_known) ||
      given.size() > n)
    return own;
  std::vector<std::unique_ptr<TypeView>> views;
  std::vector<const tn_type*> types(n - given.size(), nullptr);
  for (const Type& type : given) {
    views.push_back(std::make_unique<TypeView>(type));
    types.push_back(views.back()->get());
  }
  tn_graph* raw = nullptr;
  if (!Status(services.graph->bind(body.raw, types.data(), types.size(), &raw)).ok()) return own;
  OwnedGraph bound = OwnedGraph::take(raw);
  return types_of(bound.view().outputs());
}

std::vector<Type> repeated_types(Graph body,
                                 const std::vector<Type>& given,
                                 uint64_t first,
                                 uint64_t n_states) {
  std::vector<Type> out = output_types(body, given);
  for (size_t i = 0; i < n_states; ++i)
    if (first + i >= out.size() || out[first + i].dims != given[i].dims ||
        out[first + i].dtype != given[i].dtype)
      return types_of(body.outputs());
  return out;
}

Type common(const Type& a, const Type& b) {
  Type out = unranked(a.dtype == TN_DTYPE_NONE ? b.dtype : a.dtype);
  if (a.ranked && b.ranked && a.rank() == b.rank()) {
    Dims left = dims_of(a), right = dims_of(b);
    for (size_t i = 0; i < left.size(); ++i)
      if (!(left[i] == right[i])) left[i] = Dim();
    out = type_of(out.dtype, left);
  }
  out.kind = b.kind;
  return out;
}

Type type_of(const DLTensor& tensor) {
  return {dtype_of(tensor), to_vector(shape_of(tensor))};
}

Status join(const Call& call,
            uint64_t i,
            const std::vector<Tensor>& items,
            int64_t stated_axis,
            bool reverse,
            const Type& one) {
  if (items.empty()) {
    std::vector<int64_t> shape;
    for (int64_t dim : one.dims)
      shape.push_back(std::max<int64_t>(dim, 0));
    TN_TRY(axis, axis_in(stated_axis, shape.size() + 1, "scan_output_axes"));
    shape.insert(shape.begin() + axis, 0);
    return call.out(i, one.dtype, shape).status();
  }
  DLTensor first = items[0].dl();
  TN_TRY(axis, axis_in(stated_axis, static_cast<size_t>(first.ndim) + 1, "scan_output_axes"));
  std::vector<int64_t> shape = to_vector(shape_of(first));
  shape.insert(shape.begin() + axis, static_cast<int64_t>(items.size()));
  TN_TRY(out, call.out(i, dtype_of(first), shape));
  AxisSplit split(shape, axis);
  Cells to(out);
  for (size_t k = 0; k < items.size(); ++k) {
    DLTensor item = items[reverse ? items.size() - 1 - k : k].dl();
    if (to_vector(shape_of(item)) != to_vector(shape_of(first)))
      return invalid("scan outputs: expected one shape in all iterations");
    Cells from(item);
    for (int64_t o = 0; o < split.outer; ++o)
      to.copy((o * split.size + int64_t(k)) * split.inner, from, o * split.inner, split.inner);
  }
  to.flush();
  return {};
}

}  // namespace tenon::ops
