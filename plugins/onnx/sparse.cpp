// SPDX-License-Identifier: Apache-2.0
#include "sparse.hpp"

#include <algorithm>
#include <cstring>

#include "notes.hpp"

namespace tenon::onnx_plugin {
namespace {

constexpr int64_t kFewElements = 256;
constexpr int64_t kMostGap = 255;
constexpr uint64_t kBytesOfNodes = 512;  // that as_gaps adds to a file

// What of a dense tensor is not zero: places, rising, and values, side by side.
struct Nonzeros {
  std::vector<int64_t> places;
  std::string values;
};

// All bits count: -0.0 is no zero. most_gap: places that are further apart get zeros between them.
Nonzeros nonzeros_of(const Tensor& tensor, int64_t most_gap) {
  const size_t bytes = TN_DTYPE_BITS(dtype_of(tensor.dl())) / 8;
  const std::string zero(bytes, '\0');
  const char* data = tensor.data<char>();
  const int64_t count = element_count(tensor.dl());
  Nonzeros made;
  int64_t last = 0;
  for (int64_t i = 0; i < count; ++i) {
    const char* const at = data + static_cast<size_t>(i) * bytes;
    const bool is_zero = std::memcmp(at, zero.data(), bytes) == 0;
    if (is_zero && i - last < most_gap) continue;
    made.places.push_back(last = i);
    made.values.append(at, bytes);
  }
  return made;
}

bool may_be_sparse(const Tensor& tensor) {
  return dtype_of(tensor.dl()) != TN_DTYPE_NONE && TN_DTYPE_BITS(dtype_of(tensor.dl())) >= 8 &&
         element_count(tensor.dl()) >= kFewElements;
}

bool is_worth(uint64_t bytes, const Tensor& dense) {
  return bytes * 4 <= services.tensor->bytes(dense.get()) * 3;
}

void set_sparse(const Nonzeros& from,
                const onnx::TensorProto& header,
                onnx::SparseTensorProto& to) {
  const auto count = static_cast<int64_t>(from.places.size());
  onnx::TensorProto& values = *to.mutable_values();
  values.set_name(header.name());
  values.set_data_type(header.data_type());
  values.add_dims(count);
  values.set_raw_data(from.values);
  *values.mutable_metadata_props() = header.metadata_props();
  onnx::TensorProto& indices = *to.mutable_indices();
  indices.set_data_type(onnx::TensorProto::INT64);
  indices.add_dims(count);
  indices.set_raw_data(from.places.data(), from.places.size() * 8);
  *to.mutable_dims() = header.dims();
}

Status replace_constant(EditView edit, Value constant, const Tensor& dense) {
  const Nonzeros found = nonzeros_of(dense, kMostGap);
  const size_t count = found.places.size();
  if (!is_worth(found.values.size() + count + kBytesOfNodes, dense)) return {};
  std::vector<uint8_t> gaps;
  int64_t last = 0;
  for (int64_t place : found.places) {
    gaps.push_back(static_cast<uint8_t>(place - last));
    last = place;
  }
  const std::string name(constant.name());
  const uint32_t dtype = dtype_of(dense.dl());
  const auto n = static_cast<int64_t>(count);
  TN_TRY(packed, Tensor::zeros(edit.ctx(), dtype, std::vector<int64_t>{n}));
  std::memcpy(packed.data<char>(), found.values.data(), found.values.size());
  TN_TRY(zero, Tensor::zeros(edit.ctx(), dtype, std::vector<int64_t>{1}));
  TN_TRY(values, edit.constant(packed, name + "_values"));
  if (tn_any train = constant.note(kNoteTrain); train.tag != TN_ANY_NONE)
    TN_CHECK(edit.set_note(values.id, kNoteTrain, train));
  TN_TRY(steps, edit.constant<uint8_t>(TN_U8, {n}, gaps, name + "_gaps"));
  TN_TRY(size, edit.constant<int64_t>(TN_I64, {1}, {element_count(dense.dl())}, name + "_size"));
  TN_TRY(axis, edit.constant<int64_t>(TN_I64, {}, {0}, name + "_axis"));
  const DLTensor header = dense.dl();
  const std::vector<int64_t> dims(shape_of(header).begin(), shape_of(header).end());
  TN_TRY(shape, edit.constant<int64_t>(TN_I64, {static_cast<int64_t>(dims.size())}, dims,
                                       name + "_shape"));
  TN_TRY(zeros, edit.add({.type = "ConstantOfShape",
                          .inputs = {size},
                          .attrs = {{"value", any_tensor(zero)}}}));
  TN_TRY(wide, edit.add({.type = "Cast", .inputs = {steps}, .attrs = {{"to", any_dtype(TN_I64)}}}));
  TN_TRY(places, edit.op("CumSum", {wide.output(), axis}));
  TN_TRY(flat, edit.op("ScatterElements", {zeros.output(), places, values}));
  TN_TRY(whole, edit.op("Reshape", {flat, shape}));
  return edit.replace(constant, whole);
}

}  // namespace

Status as_sparse_tensors(Exporter& made) {
  auto keep = made.weights.begin();
  for (Weight& weight : made.weights) {
    bool is_moved = false;
    if (may_be_sparse(weight.tensor)) {
      const Nonzeros found = nonzeros_of(weight.tensor, INT64_MAX);
      is_moved = is_worth(found.values.size() + found.places.size() * 8, weight.tensor);
      if (is_moved)
        set_sparse(found, weight.header, *made.model.mutable_graph()->add_sparse_initializer());
    }
    if (is_moved) continue;
    if (&*keep != &weight) *keep = std::move(weight);
    ++keep;
  }
  made.weights.erase(keep, made.weights.end());
  return {};
}

Status as_gaps(tn_graph* graph) {
  TN_TRY(edit, Edit::begin(graph));
  for (Value constant : edit.graph().constants()) {
    Tensor tensor = constant.constant();
    if (!may_be_sparse(tensor) || constant.is_output()) continue;
    TN_TRY(dense, tensor.dense(edit.ctx()));
    TN_CHECK(replace_constant(edit, constant, dense).in(cat("constant ", constant.name())));
  }
  return edit.commit();
}

}  // namespace tenon::onnx_plugin
