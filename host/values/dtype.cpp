// SPDX-License-Identifier: Apache-2.0
#include "values/dtype.hpp"

namespace tenon::host {
namespace {

struct Row {
  uint32_t dtype;
  std::string_view name;
};

constexpr Row kTypes[] = {
    {TN_BOOL, "bool"},
    {TN_I4, "i4"},
    {TN_I8, "i8"},
    {TN_I16, "i16"},
    {TN_I32, "i32"},
    {TN_I64, "i64"},
    {TN_U4, "u4"},
    {TN_U8, "u8"},
    {TN_U16, "u16"},
    {TN_U32, "u32"},
    {TN_U64, "u64"},
    {TN_F16, "f16"},
    {TN_F32, "f32"},
    {TN_F64, "f64"},
    {TN_BF16, "bf16"},
    {TN_DTYPE(kDLInt, 2), "i2"},
    {TN_DTYPE(kDLUInt, 2), "u2"},
    {TN_DTYPE(kDLComplex, 64), "c64"},
    {TN_DTYPE(kDLComplex, 128), "c128"},
    {TN_DTYPE(kDLFloat8_e4m3fn, 8), "f8e4m3fn"},
    {TN_DTYPE(kDLFloat8_e4m3fnuz, 8), "f8e4m3fnuz"},
    {TN_DTYPE(kDLFloat8_e5m2, 8), "f8e5m2"},
    {TN_DTYPE(kDLFloat8_e5m2fnuz, 8), "f8e5m2fnuz"},
    {TN_DTYPE(kDLFloat8_e8m0fnu, 8), "f8e8m0fnu"},
    {TN_DTYPE(kDLFloat4_e2m1fn, 4), "f4e2m1fn"},
};

}  // namespace

std::string dtype_name(uint32_t dtype) {
  for (const Row& row : kTypes)
    if (row.dtype == dtype) return std::string(row.name);
  std::string name = cat("type ", TN_DTYPE_CODE(dtype), "/", TN_DTYPE_BITS(dtype));
  return dtype >> 16 == 1 ? name : cat(name, "x", dtype >> 16);
}

std::string type_word(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {"bfloat", "bf"}, {"float", "f"}, {"fp", "f"}, {"uint", "u"}, {"int", "i"}, {"complex", "c"}};
  for (const auto& [form, letters] : kForms) {
    bool is_type = name.size() > form.size() && name.starts_with(form) &&
                   name[form.size()] >= '0' && name[form.size()] <= '9';
    if (is_type) return cat(letters, name.substr(form.size()));
  }
  return std::string(name);
}

uint32_t dtype_by_name(std::string_view name) {
  std::string word = type_word(name);
  for (const Row& row : kTypes)
    if (row.name == word) return row.dtype;
  return TN_DTYPE_NONE;
}

bool dtype_known(uint32_t dtype) {
  for (const Row& row : kTypes)
    if (row.dtype == dtype) return true;
  return false;
}

std::string shape_text(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

Result<uint64_t> element_count(std::span<const int64_t> dims) {
  // The product without zeros must fit too: dense strides are made of it.
  uint64_t product = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      return invalid(cat("tensor shape ", shape_text(dims), ": expected sizes >= 0, got ", dim));
    if (dim == 0) empty = true;
    uint64_t factor = dim == 0 ? 1 : static_cast<uint64_t>(dim);
    if (__builtin_mul_overflow(product, factor, &product) || product > INT64_MAX)
      return Status(TN_OUT_OF_RANGE, cat("tensor shape ", shape_text(dims),
                                         ": the number of elements does not fit in 63 bits"));
  }
  return empty ? 0 : product;
}

Result<uint64_t> bytes_of(uint32_t dtype, uint64_t elements) {
  uint64_t bits = 0;
  if (__builtin_mul_overflow(elements, static_cast<uint64_t>(TN_DTYPE_BITS(dtype)), &bits) ||
      bits > UINT64_MAX - 7) {
    // Above 2^61 elements no memory holds them; saying so keeps the arithmetic in 64 bits.
    return Status(TN_OUT_OF_RANGE, cat("tensor of ", elements, " elements of ", dtype_name(dtype),
                                       ": the size in bytes does not fit"));
  }
  return (bits + 7) / 8;
}

}  // namespace tenon::host
