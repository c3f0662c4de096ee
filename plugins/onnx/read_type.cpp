// SPDX-License-Identifier: Apache-2.0
#include "read_type.hpp"

#include <algorithm>
#include <array>

#include "dtypes.hpp"

namespace tenon::onnx_plugin {
namespace {

// Exporters write these for "some size", so two of them are not the same size.
constexpr std::array<std::string_view, 8> kNameless = {"none", "unknown", "unk",     "any",
                                                       "dyn",  "dynamic", "unk_dim", "nan"};

bool nameless(std::string_view name) {
  std::string lower;
  bool word = false;
  for (char c : name) {
    bool upper = c >= 'A' && c <= 'Z';
    lower.push_back(upper ? static_cast<char>(c + 32) : c);
    word |= upper || (c >= 'a' && c <= 'z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  }
  return !word || std::find(kNameless.begin(), kNameless.end(), lower) != kNameless.end();
}

Status read_tensor_type(int32_t element, const onnx::TensorShapeProto* shape, Type& out) {
  out.dtype = dtype_of_onnx(element);
  if (out.dtype == TN_DTYPE_NONE && element != 0)
    return unsupported(cat("expected numbers, got ", onnx_type_text(element),
                           " (Tenon's tensors hold numbers only)"));
  if (!shape) return {};
  out.ranked = true;
  for (const auto& dim : shape->dim()) {
    bool known = dim.has_dim_value() && dim.dim_value() >= 0;
    out.dims.push_back(known ? dim.dim_value() : TN_DIM_UNKNOWN);
    bool named = dim.has_dim_param() && !nameless(dim.dim_param());
    out.symbols.push_back(named ? dim.dim_param() : std::string());
  }
  return {};
}

}  // namespace

Result<Type> read_type(const onnx::TypeProto& from) {
  Type out;
  switch (from.value_case()) {
    case onnx::TypeProto::VALUE_NOT_SET:
      return out;
    case onnx::TypeProto::kTensorType: {
      const auto& tensor = from.tensor_type();
      TN_CHECK(read_tensor_type(tensor.elem_type(), tensor.has_shape() ? &tensor.shape() : nullptr,
                                out));
      return out;
    }
    case onnx::TypeProto::kSequenceType:
    case onnx::TypeProto::kOptionalType: {
      bool sequence = from.value_case() == onnx::TypeProto::kSequenceType;
      const auto& element =
          sequence ? from.sequence_type().elem_type() : from.optional_type().elem_type();
      TN_TRY(inner, read_type(element));
      // An optional of a sequence has no element type of its own: it says so when it runs.
      if (inner.kind == TN_KIND_SEQUENCE && !sequence) inner = Type();
      if (inner.kind != TN_KIND_TENSOR)
        return unsupported("sequences of anything but tensors are not supported");
      inner.kind = sequence ? TN_KIND_SEQUENCE : TN_KIND_OPTIONAL;
      return std::move(inner);
    }
    case onnx::TypeProto::kMapType:
      return unsupported(
          "maps are not supported; the option zipmap=False of skl2onnx and its relatives gives "
          "the scores as a tensor");
    default:
      return unsupported("sparse tensors and opaque types are not supported");
  }
}

}  // namespace tenon::onnx_plugin
