// SPDX-License-Identifier: Apache-2.0
#pragma once
// tn_any in C++: making one from C++ values (borrowing them) and reading one.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon {

inline tn_any any_int(int64_t value) {
  tn_any out{TN_ANY_I64, 0, 1, {}};
  out.v.i = value;
  return out;
}
inline tn_any any_float(double value) {
  tn_any out{TN_ANY_F64, 0, 1, {}};
  out.v.f = value;
  return out;
}
inline tn_any any_bool(bool value) {
  tn_any out{TN_ANY_BOOL, 0, 1, {}};
  out.v.i = value;
  return out;
}
inline tn_any any_dtype(uint32_t dtype) {
  tn_any out{TN_ANY_DTYPE, 0, 1, {}};
  out.v.u = dtype;
  return out;
}
namespace detail {
inline tn_any any_pointer(uint32_t tag, const void* data, uint64_t len) {
  tn_any out{tag, 0, len, {}};
  out.v.p = data;
  return out;
}
}  // namespace detail
inline tn_any any_text(std::string_view value) {
  return detail::any_pointer(TN_ANY_TEXT, value.data(), value.size());
}
inline tn_any any_ints(std::span<const int64_t> values) {
  return detail::any_pointer(TN_ANY_I64S, values.data(), values.size());
}
inline tn_any any_floats(std::span<const double> values) {
  return detail::any_pointer(TN_ANY_F64S, values.data(), values.size());
}
inline tn_any any_texts(std::span<const tn_str> values) {
  return detail::any_pointer(TN_ANY_TEXTS, values.data(), values.size());
}
inline tn_any any_tensor(const Tensor& value) {
  return detail::any_pointer(TN_ANY_TENSOR, value.get(), 1);
}
inline tn_any any_graph(const tn_graph* value) {
  return detail::any_pointer(TN_ANY_GRAPH, value, 1);
}

// Reading: the fallback where the value is absent or of another kind. Integers read as floats.
inline int64_t int_of(const tn_any& any, int64_t fallback) {
  return any.tag == TN_ANY_I64 || any.tag == TN_ANY_BOOL ? any.v.i : fallback;
}
inline double float_of(const tn_any& any, double fallback) {
  if (any.tag == TN_ANY_F64) return any.v.f;
  return any.tag == TN_ANY_I64 ? static_cast<double>(any.v.i) : fallback;
}
inline std::string_view text_of(const tn_any& any, std::string_view fallback = {}) {
  if (any.tag != TN_ANY_TEXT) return fallback;
  return {static_cast<const char*>(any.v.p), any.len};
}
inline std::vector<int64_t> ints_of(const tn_any& any) {
  if (any.tag == TN_ANY_I64) return {any.v.i};
  if (any.tag != TN_ANY_I64S) return {};
  auto* data = static_cast<const int64_t*>(any.v.p);
  return {data, data + any.len};
}
inline std::vector<double> floats_of(const tn_any& any) {
  if (any.tag == TN_ANY_F64) return {any.v.f};
  if (any.tag != TN_ANY_F64S) {
    std::vector<int64_t> whole = ints_of(any);
    return std::vector<double>(whole.begin(), whole.end());
  }
  auto* data = static_cast<const double*>(any.v.p);
  return {data, data + any.len};
}
inline std::vector<std::string> texts_of(const tn_any& any) {
  std::vector<std::string> out;
  if (any.tag == TN_ANY_TEXT) out.emplace_back(text_of(any));
  if (any.tag != TN_ANY_TEXTS) return out;
  auto* data = static_cast<const tn_str*>(any.v.p);
  for (uint64_t i = 0; i < any.len; ++i)
    out.emplace_back(view(data[i]));
  return out;
}

// A component's options: checked by the host, defaults filled in.
class Options {
 public:
  explicit Options(const tn_options* raw) : raw_(raw) {}
  tn_any get(std::string_view key) const {
    tn_any out{};
    if (raw_) Status ignored(services.options->get(raw_, str(key), &out));  // absent reads as NONE
    return out;
  }
  bool has(std::string_view key) const { return get(key).tag != TN_ANY_NONE; }
  int64_t integer(std::string_view key, int64_t fallback = 0) const {
    return int_of(get(key), fallback);
  }
  double number(std::string_view key, double fallback = 0) const {
    return float_of(get(key), fallback);
  }
  bool flag(std::string_view key) const { return int_of(get(key), 0) != 0; }
  std::string text(std::string_view key, std::string_view fallback = {}) const {
    return std::string(text_of(get(key), fallback));
  }
  std::vector<std::string> texts(std::string_view key) const { return texts_of(get(key)); }
  // One number for all of n, or one for each.
  Result<std::vector<double>> for_each_of(std::string_view key, int64_t n, double fallback) const {
    std::vector<double> out = floats_of(get(key));
    if (out.empty()) out.push_back(fallback);
    if (out.size() == 1) out.resize(static_cast<size_t>(n), out[0]);
    if (out.size() == static_cast<size_t>(n)) return out;
    return invalid(cat("option ", key, ": expected 1 or ", n, " numbers, got ", out.size()));
  }
  const tn_options* raw() const { return raw_; }

 private:
  const tn_options* raw_;
};

}  // namespace tenon
