// SPDX-License-Identifier: Apache-2.0
#include "plan/result_checks.hpp"

#include <algorithm>
#include <span>

#include "values/dtype.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

std::span<const int64_t> inferred_dims(const Slot& slot) {
  return {slot.dims.data(), slot.dims.size() / 2};  // strides follow
}

std::string type_text(const DLTensor& tensor) {
  return dtype_name(dtype_of(tensor.dtype)) + shape_text(dims_of(tensor));
}

// Row-major, or by the strides that were asked for.
bool lies_as(const DLTensor& proto, const DLTensor& given) {
  if (is_dense(proto)) return is_dense(given);
  for (int32_t axis = 0; axis < proto.ndim; ++axis)
    if (proto.shape[axis] > 1 && (!given.strides || given.strides[axis] != proto.strides[axis]))
      return false;
  return true;
}

bool is_there(DLDevice wanted, DLDevice given) {
  if (is_on_cpu(wanted)) return is_on_cpu(given);
  return given.device_type == wanted.device_type && given.device_id == wanted.device_id;
}

Status misfit(std::string_view expected) {
  return {TN_FAILED_PRECONDITION, cat("expected the function for outputs to ", expected)};
}

}  // namespace

std::string maker_of(const tn_graph* graph, const std::string& value) {
  const tn_host_graph& g = *graph_service();
  tn_value_id id = g.find_value(graph, str(value));
  tn_node_id node = id ? g.producer(graph, id, nullptr) : 0;
  return node ? cat("node ", view(g.node_name(graph, node)), ": ") : std::string();
}

bool is_inferred(const Slot& slot, const DLTensor& proto) {
  if (slot.dtype != TN_DTYPE_NONE && dtype_of(proto.dtype) != slot.dtype) return false;
  return !slot.is_static || std::ranges::equal(dims_of(proto), inferred_dims(slot));
}

Status not_inferred(const Slot& slot, const DLTensor& proto, std::string_view maker) {
  std::string expected = dtype_name(slot.dtype);
  if (slot.is_static) expected += shape_text(inferred_dims(slot));
  return {TN_INTERNAL, cat(maker, "value ", slot.name, ": inferred ", expected,
                           ", the kernel made ", type_text(proto))};
}

Status check_given(const DLTensor& proto, const DLTensor& given) {
  bool has_shape = given.ndim == proto.ndim && (given.ndim == 0 || given.shape);
  if (!has_shape || dtype_of(given.dtype) != dtype_of(proto.dtype) ||
      !std::ranges::equal(dims_of(given), dims_of(proto)))
    return misfit(cat("give a tensor of ", type_text(proto), ", got another type or shape"));
  TN_TRY(bytes, dense_bytes(dtype_of(proto.dtype), dims_of(proto)));
  if (bytes == 0) return {};
  if (!given.data) return misfit("fill in data, got NULL");
  if (!lies_as(proto, given)) return misfit("give dense memory, got other strides");
  if (is_there(proto.device, given.device)) return {};
  return misfit(cat("give memory on device ", proto.device.device_type, " id ",
                    proto.device.device_id, ", got ", given.device.device_type, " id ",
                    given.device.device_id));
}

}  // namespace tenon::host
