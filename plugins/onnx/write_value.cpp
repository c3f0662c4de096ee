// SPDX-License-Identifier: Apache-2.0
// Tensors and types as messages.
#include "dtypes.hpp"
#include "exporter.hpp"

namespace tenon::onnx_plugin {

Status write_header(const Tensor& tensor, std::string_view name, onnx::TensorProto& to) {
  DLTensor dl = tensor.dl();
  int32_t type = onnx_of_dtype(dtype_of(dl));
  if (type == 0)
    return unsupported(cat("constant ", name, ": ONNX has no type ", dtype_name(dtype_of(dl))));
  for (int64_t dim : shape_of(dl))
    to.add_dims(dim);
  to.set_data_type(type);
  if (!name.empty()) to.set_name(std::string(name));
  return {};
}

Status write_type(const Type& type, onnx::TypeProto& to) {
  onnx::TypeProto* element = &to;
  if (type.kind == TN_KIND_SEQUENCE) element = to.mutable_sequence_type()->mutable_elem_type();
  if (type.kind == TN_KIND_OPTIONAL) element = to.mutable_optional_type()->mutable_elem_type();
  int32_t code = onnx_of_dtype(type.dtype);
  if (code == 0 && type.dtype != TN_DTYPE_NONE)
    return unsupported(cat("ONNX has no type ", dtype_name(type.dtype)));
  auto* tensor = element->mutable_tensor_type();
  tensor->set_elem_type(code);
  if (!type.ranked) return {};
  auto* shape = tensor->mutable_shape();
  for (size_t i = 0; i < type.dims.size(); ++i) {
    auto* dim = shape->add_dim();
    if (type.dims[i] >= 0) {
      dim->set_dim_value(type.dims[i]);
    } else if (i < type.symbols.size() && !type.symbols[i].empty()) {
      dim->set_dim_param(type.symbols[i]);
    }
  }
  return {};
}

}  // namespace tenon::onnx_plugin
