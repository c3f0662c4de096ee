// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fields of a data set, and which of them is which input of a model.

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/role/dataset.h"

#include "tenon/sdk/convert.hpp"
#include "tenon/sdk/listing.hpp"

namespace tenon {

struct Field {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  std::vector<int64_t> sample;  // shape of one
  size_t at = 0;                // among all
};

// A field as it is handed on.
struct Fed {
  std::string name, input;  // the field's; the input's, empty for one that is no input
  size_t at = SIZE_MAX;     // among the fields of the data set
  uint32_t given = TN_DTYPE_NONE, dtype = TN_DTYPE_NONE;
  Type wanted;      // by the model
  size_t axis = 0;  // of the input that samples are along
};

// A sample of a data set in words: what the data set calls it, else "sample 3".
inline std::string origin_of(const Component& data, uint64_t index) {
  const auto* table = data.table<tn_dataset>();
  StringSink text;
  if (table->origin && Status(table->origin(data.self(), index, text.get())).ok()) return text.text;
  return cat("sample ", index);
}

struct Fields {
  tn_ctx* ctx = nullptr;
  const Component* data = nullptr;  // outlives this
  std::vector<Field> all;

  const tn_dataset* table() const { return data->table<tn_dataset>(); }
  const Field* find(std::string_view name) const {
    for (const Field& one : all)
      if (one.name == name) return &one;
    return nullptr;
  }
  std::string names() const {
    std::string out;
    for (const Field& one : all)
      out += cat(out.empty() ? "" : ", ", one.name);
    return out.empty() ? "no fields" : out;
  }
  std::string types() const {  // "x float32[3, 8, 8], label int64[]"
    std::string out;
    for (const Field& one : all)
      out += cat(out.empty() ? "" : ", ", one.name, " ", type_text(Type(one.dtype, one.sample)));
    return out.empty() ? "no fields" : out;
  }
  static Result<Fields> of(tn_ctx* ctx, const Component& data);
  // What the user may say of a file's data set: "; options of datasets.images: crop, resize".
  std::string options_text() const;

  static uint32_t dtype_called(std::string_view name) {
    for (uint32_t dtype : {TN_F32, TN_F64, TN_F16, TN_BF16, TN_BOOL, TN_I8, TN_I16, TN_I32, TN_I64,
                           TN_U8, TN_U16, TN_U32, TN_U64})
      if (dtype_name(dtype) == name) return dtype;
    return TN_DTYPE_NONE;
  }
};

inline Result<Fields> Fields::of(tn_ctx* ctx, const Component& data) {
  Fields out{ctx, &data, {}};
  StringSink text;
  TN_CHECK(out.table()->fields(data.self(), text.get()));
  nlohmann::json given = nlohmann::json::parse(text.text, nullptr, false);
  if (!given.is_array()) return Status(TN_INTERNAL, cat(data.id(), ": fields() is no JSON array"));
  for (const nlohmann::json& one : given)
    out.all.push_back({one.value("name", ""), dtype_called(one.value("dtype", "")),
                       one.value("shape", std::vector<int64_t>{}), out.all.size()});
  return out;
}

inline std::string Fields::options_text() const {
  std::string out;
  for (const nlohmann::json& one : listed_components(ctx, "tenon.dataset/1")) {
    if (one.value("id", "") != data->id() || !one["schema"].is_object()) continue;
    const nlohmann::json options = one["schema"].value("properties", nlohmann::json::object());
    if (!options.contains("path")) return "";
    for (const auto& [key, value] : options.items())
      if (key != "path") out += cat(out.empty() ? "" : ", ", key);
  }
  return out.empty() ? "" : cat("; options of ", data->id(), ": ", out);
}

namespace detail {

inline bool is_open(const Type& type, size_t axis) {
  return type.ranked && axis < type.rank() && type.dims[axis] < 0;
}
inline std::string_view symbol_of(const Type& type, size_t axis) {
  return axis < type.symbols.size() ? std::string_view(type.symbols[axis]) : std::string_view();
}

}  // namespace detail

// The axis of an input that samples are along: axis 0, unless that one is fixed and another axis
// has the name that axis 0 of another input has, as N in states of an LSTM, [layers, N, H].
inline Result<size_t> sample_axis(const Type& input, const std::vector<Type>& all) {
  if (!input.ranked || input.dims.empty() || input.dims[0] < 0) return size_t{0};
  for (size_t axis = 1; axis < input.rank(); ++axis) {
    if (!detail::is_open(input, axis)) continue;
    const std::string_view name = detail::symbol_of(input, axis);
    for (const Type& other : all) {
      if (!detail::is_open(other, 0)) continue;
      if (!name.empty() && detail::symbol_of(other, 0) == name) return axis;
      bool may_be = name.empty();
      for (size_t i = 1; i < other.symbols.size(); ++i)
        may_be = may_be || other.symbols[i] == name;
      if (may_be && input.dims[0] > 1)
        return invalid(cat("the model wants ", type_text(input), " beside ", type_text(other),
                           ": expected samples along axis 0 of both, or along an axis that has ",
                           "the name of the other's axis 0"));
    }
  }
  return size_t{0};
}

namespace detail {

inline bool fits_shape(const Fed& input, const Field& field) {
  const Type& wanted = input.wanted;
  bool fits = !wanted.ranked || wanted.rank() == field.sample.size() + 1;
  for (size_t i = 0; fits && i < field.sample.size() && wanted.ranked; ++i) {
    const int64_t dim = wanted.dims[i < input.axis ? i : i + 1];
    fits = dim < 0 || field.sample[i] < 0 || dim == field.sample[i];
  }
  return fits;
}

inline bool fits(const Fed& input, const Field& field) {
  const bool is_known = input.wanted.ranked && input.wanted.dtype != TN_DTYPE_NONE;
  return is_known && fits_shape(input, field) && is_convertible(field.dtype, input.wanted.dtype);
}

inline Status take_field(const Fields& fields,
                         const Field& field,
                         Fed* input,
                         std::vector<std::string>* notes) {
  input->name = field.name;
  input->at = field.at;
  input->given = field.dtype;
  input->dtype = input->wanted.dtype == TN_DTYPE_NONE ? field.dtype : input->wanted.dtype;
  if (!is_convertible(input->given, input->dtype))
    return invalid(cat("field ", field.name, ": the model wants ", dtype_name(input->dtype),
                       ", got ", dtype_name(input->given)));
  if (!fits_shape(*input, field)) {
    std::vector<int64_t> shape = field.sample;
    shape.insert(shape.begin() + static_cast<int64_t>(std::min(input->axis, shape.size())), -1);
    return invalid(cat("field ", field.name, ": the model wants ", type_text(input->wanted),
                       ", got ", type_text(Type(field.dtype, shape)), fields.options_text()));
  }
  if (input->given == input->dtype) return {};
  const bool is_byte = field.dtype == TN_U8 && is_float(input->dtype);
  notes->push_back(cat("field ", field.name, ": ", dtype_name(input->given), " is converted to ",
                       dtype_name(input->dtype),
                       is_byte ? ", values of 0 to 255 as they are" : ""));
  return {};
}

// The one field that an input can take and no other input could, by type and shape alone.
inline const Field* only_fit(const Fields& fields,
                             const std::vector<std::string>& labels,
                             const std::vector<Fed>& inputs,
                             const Fed& input) {
  const Field* found = nullptr;
  for (const Field& field : fields.all) {
    if (std::find(labels.begin(), labels.end(), field.name) != labels.end()) continue;
    auto takes = [&](const Fed& one) { return one.at == field.at; };
    if (std::any_of(inputs.begin(), inputs.end(), takes) || !fits(input, field)) continue;
    if (found) return nullptr;
    found = &field;
  }
  for (const Fed& other : inputs)
    if (found && other.at == SIZE_MAX && &other != &input && fits(other, *found)) return nullptr;
  return found;
}

}  // namespace detail

// By name; then by type and shape, where only one field can be meant. labels: never by shape.
inline Status match_fields(const Fields& fields,
                           const std::vector<std::string>& labels,
                           std::vector<Fed>* inputs,
                           std::vector<std::string>* notes) {
  for (Fed& input : *inputs)
    if (const Field* field = fields.find(input.name))
      TN_CHECK(detail::take_field(fields, *field, &input, notes));
  std::string missing, wanted;
  std::vector<const Field*> found;
  for (Fed& input : *inputs) {
    wanted += cat(wanted.empty() ? "" : ", ", input.name, " ", type_text(input.wanted));
    const bool is_open = input.at == SIZE_MAX;
    found.push_back(is_open ? detail::only_fit(fields, labels, *inputs, input) : nullptr);
    if (is_open && !found.back()) missing += cat(missing.empty() ? "" : ", ", input.name);
  }
  if (!missing.empty())
    return invalid(cat("no field for ", missing, " (the data set has ", fields.types(),
                       "; the model wants ", wanted, ")", fields.options_text()));
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    notes->push_back(cat("field ", found[i]->name, " is taken for input ", (*inputs)[i].input,
                         ": no other fits its type and shape"));
    TN_CHECK(detail::take_field(fields, *found[i], &(*inputs)[i], notes));
  }
  return {};
}

}  // namespace tenon
