// SPDX-License-Identifier: Apache-2.0
#include "read_tensor.hpp"

#include <charconv>
#include <cstring>

#include "dtypes.hpp"
#include "skeleton.hpp"

namespace tenon::onnx_plugin {
namespace {

// A window may begin at any byte. Small tensors are cheaper to copy than to read unaligned.
constexpr uint64_t kSmall = 64 << 10;

struct Layout {
  uint32_t dtype;
  std::vector<int64_t> dims;
  int64_t elements;
  uint64_t bytes;
};

Result<Layout> layout_of(const onnx::TensorProto& from) {
  Layout out{dtype_of_onnx(from.data_type()), {from.dims().begin(), from.dims().end()}, 1, 0};
  if (out.dtype == TN_DTYPE_NONE)
    return unsupported(cat("expected numbers, got ", onnx_type_text(from.data_type()),
                           " (Tenon's tensors hold numbers only)"));
  for (int64_t dim : out.dims) {
    if (dim < 0) return invalid(cat("expected dimensions of at least 0, got ", dim));
    if (__builtin_mul_overflow(out.elements, dim, &out.elements)) out.elements = -1;
    if (out.elements < 0) break;
  }
  for (int64_t dim : out.dims)
    if (dim == 0) out.elements = 0;  // also where the others overflow
  if (out.elements < 0 || out.elements > INT64_MAX / 16) return invalid("its size overflows");
  out.bytes = bytes_of(out.dtype, out.elements);
  return out;
}

Result<Tensor> from_window(ModelFiles& files, tn_blob* blob, uint64_t offset, const Layout& l) {
  uint64_t element = std::max<uint64_t>(TN_DTYPE_BITS(l.dtype) / 8, 1);
  if (l.bytes < kSmall && offset % element != 0) {
    const void* data = nullptr;
    TN_CHECK(services.blob->map(blob, offset, l.bytes, &data));
    TN_TRY(tensor, Tensor::zeros(files.ctx(), l.dtype, l.dims));
    if (l.bytes) std::memcpy(tensor.data<char>(), data, l.bytes);
    return tensor;
  }
  tn_tensor* raw = nullptr;
  TN_CHECK(services.tensor->from_blob(files.ctx(), blob, offset, DenseView(l.dtype, l.dims).get(),
                                      &raw));
  return Tensor::take(raw);
}

Result<uint64_t> number(const std::string& key, const std::string& text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid(cat("external data: ", key, ": expected a whole number, got '", text, "'"));
  return value;
}

Result<Tensor> from_external(ModelFiles& files, const onnx::TensorProto& from, const Layout& l) {
  std::string location;
  uint64_t offset = 0;
  uint64_t length = l.bytes;
  for (const auto& entry : from.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      TN_TRY(value, number("offset", entry.value()));
      offset = value;
    }
    if (entry.key() == "length") {
      TN_TRY(value, number("length", entry.value()));
      length = value;
    }
  }
  if (location.empty()) return invalid("external data: expected a location, got none");
  if (length != l.bytes)
    return invalid(cat("external data: expected a length of ", l.bytes, " bytes, got ", length));
  TN_TRY(blob, files.beside(location));
  return from_window(files, blob, offset, l);
}

// Which of TensorProto's typed fields holds what is in onnx.proto's comments on them.
template <class To, class From>
void convert(const Tensor& tensor, const From& values) {
  To* to = tensor.data<To>();
  for (auto value : values)
    *to++ = static_cast<To>(value);
}

Status expect_count(int64_t expected, int got, std::string_view field) {
  if (expected == got) return {};
  return invalid(cat(field, ": expected ", expected, " elements, got ", got));
}

Status fill_from_int32(const Tensor& tensor, const Layout& l, const onnx::TensorProto& from) {
  bool packed = TN_DTYPE_BITS(l.dtype) < 8;
  int64_t n = packed ? static_cast<int64_t>(l.bytes) : l.elements;
  TN_CHECK(expect_count(n, from.int32_data_size(), "int32_data"));
  switch (packed ? 8 : TN_DTYPE_BITS(l.dtype)) {
    case 8:
      convert<uint8_t>(tensor, from.int32_data());
      return {};
    case 16:
      convert<uint16_t>(tensor, from.int32_data());
      return {};
    default:
      convert<int32_t>(tensor, from.int32_data());
      return {};
  }
}

Status fill_from_fields(const Tensor& tensor, const Layout& l, const onnx::TensorProto& from) {
  bool complex = TN_DTYPE_CODE(l.dtype) == kDLComplex;
  int64_t n = complex ? l.elements * 2 : l.elements;
  if (l.dtype == TN_F32 || (complex && TN_DTYPE_BITS(l.dtype) == 64)) {
    TN_CHECK(expect_count(n, from.float_data_size(), "float_data"));
    convert<float>(tensor, from.float_data());
  } else if (l.dtype == TN_F64 || complex) {
    TN_CHECK(expect_count(n, from.double_data_size(), "double_data"));
    convert<double>(tensor, from.double_data());
  } else if (l.dtype == TN_I64) {
    TN_CHECK(expect_count(n, from.int64_data_size(), "int64_data"));
    convert<int64_t>(tensor, from.int64_data());
  } else if (l.dtype == TN_U32) {
    TN_CHECK(expect_count(n, from.uint64_data_size(), "uint64_data"));
    convert<uint32_t>(tensor, from.uint64_data());
  } else if (l.dtype == TN_U64) {
    TN_CHECK(expect_count(n, from.uint64_data_size(), "uint64_data"));
    convert<uint64_t>(tensor, from.uint64_data());
  } else {
    return fill_from_int32(tensor, l, from);
  }
  return {};
}

int typed_elements(const onnx::TensorProto& from) {
  return from.float_data_size() + from.double_data_size() + from.int32_data_size() +
         from.int64_data_size() + from.uint64_data_size() + from.string_data_size();
}

Result<Tensor> read(ModelFiles& files, const onnx::TensorProto& from) {
  if (from.has_segment()) return unsupported("segments are not supported");
  TN_TRY(layout, layout_of(from));
  if (from.data_location() == onnx::TensorProto::EXTERNAL)
    return from_external(files, from, layout);
  if (from.has_raw_data()) {
    TN_TRY(window, window_of(from.raw_data()));
    if (window.bytes != layout.bytes)
      return invalid(cat("raw_data at offset ", window.offset, ": expected ", layout.bytes,
                         " bytes, got ", window.bytes));
    return from_window(files, files.model(), window.offset, layout);
  }
  // The claim is checked before memory is asked for.
  if (layout.elements > 16 * (int64_t{typed_elements(from)} + 1))
    return invalid(cat("expected ", layout.elements, " elements, got ", typed_elements(from)));
  TN_TRY(tensor, Tensor::zeros(files.ctx(), layout.dtype, layout.dims));
  TN_CHECK(fill_from_fields(tensor, layout, from));
  return tensor;
}

}  // namespace

Result<tn_blob*> ModelFiles::beside(const std::string& relative) {
  auto& known = beside_[relative];
  if (!known) {
    tn_blob* opened = nullptr;
    TN_CHECK(Status(services.blob->sibling(model_, str(relative), &opened)).in("external data"));
    known.reset(opened);
  }
  return known.get();
}

Result<Tensor> read_tensor(ModelFiles& files,
                           const onnx::TensorProto& from,
                           std::string_view what) {
  Result<Tensor> made = read(files, from);
  if (!made.ok()) return std::move(made).status().in(cat("tensor ", what));
  return made;
}

}  // namespace tenon::onnx_plugin
