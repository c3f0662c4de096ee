// SPDX-License-Identifier: Apache-2.0
#include "header.hpp"

#include <algorithm>
#include <set>

namespace tenon::safetensors_plugin {
namespace {

using Json = nlohmann::ordered_json;

Result<Json> parse_object(std::string_view text) {
  std::set<std::string> seen;
  std::string twice;
  auto look = [&](int depth, Json::parse_event_t event, Json& key) {
    bool name = depth == 1 && event == Json::parse_event_t::key;
    if (name && !seen.insert(key.get<std::string>()).second) twice = key.get<std::string>();
    return true;
  };
  Json json = Json::parse(text, look, false);
  if (json.is_discarded() || !json.is_object())
    return Status(TN_DATA_LOSS,
                  "header: expected a JSON object, got something else (is it a "
                  "safetensors file, and whole?)");
  if (!twice.empty()) return invalid(cat("header: two tensors have the name ", twice));
  return json;
}

bool whole(const Json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
}

Result<uint64_t> bytes_of_shape(const Entry& entry) {
  int64_t n = 1;
  bool overflow = false;
  for (int64_t dim : entry.dims)
    overflow |= __builtin_mul_overflow(n, dim, &n);
  bool empty = std::find(entry.dims.begin(), entry.dims.end(), 0) != entry.dims.end();
  if (empty) return uint64_t{0};
  if (overflow || n > INT64_MAX / 16) return invalid("its size overflows");
  return bytes_of(entry.dtype, n);
}

Result<Entry> read_entry(const std::string& name, const Json& json, uint64_t data_bytes) {
  Entry out;
  out.name = name;
  if (!json.is_object()) return invalid("expected an object");
  Json type = json.value("dtype", Json());
  out.dtype =
      type.is_string() ? safetensors::dtype_of_name(type.get<std::string>()) : TN_DTYPE_NONE;
  if (out.dtype == TN_DTYPE_NONE)
    return unsupported(cat("dtype: expected a known type as F32, got ", type.dump()));
  Json shape = json.value("shape", Json());
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), whole))
    return invalid(cat("shape: expected a list of whole numbers, got ", shape.dump()));
  for (const Json& dim : shape)
    out.dims.push_back(dim.get<int64_t>());
  Json range = json.value("data_offsets", Json());
  if (!range.is_array() || range.size() != 2 || !whole(range[0]) || !whole(range[1]))
    return invalid(cat("data_offsets: expected two whole numbers, got ", range.dump()));
  out.begin = range[0].get<uint64_t>();
  out.end = range[1].get<uint64_t>();
  if (out.begin > out.end || out.end > data_bytes)
    return Status(TN_DATA_LOSS, cat("data_offsets: expected a range of the ", data_bytes,
                                    " bytes of data, got ", range.dump()));
  TN_TRY(bytes, bytes_of_shape(out));
  if (bytes != out.end - out.begin)
    return invalid(cat("data_offsets: expected ", bytes, " bytes, got ", out.end - out.begin));
  return out;
}

Status check_overlaps(const Header& header) {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : header.tensors)
    if (entry.begin != entry.end) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const Entry* a, const Entry* b) { return a->begin < b->begin; });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i]->begin < sorted[i - 1]->end)
      return invalid(
          cat("header: tensors ", sorted[i - 1]->name, " and ", sorted[i]->name, " overlap"));
  return {};
}

}  // namespace

Result<Header> parse_header(std::string_view text, uint64_t data_bytes) {
  TN_TRY(json, parse_object(text));
  Header out;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return invalid("header: __metadata__: expected an object");
      for (const auto& [key, item] : value.items()) {
        if (!item.is_string())
          return invalid(cat("header: __metadata__: ", key, ": expected a text"));
        out.metadata.emplace_back(key, item.get<std::string>());
      }
      continue;
    }
    Result<Entry> entry = read_entry(name, value, data_bytes);
    if (!entry.ok()) return std::move(entry).status().in(cat("header: tensor ", name));
    out.tensors.push_back(std::move(*entry));
  }
  TN_CHECK(check_overlaps(out));
  return out;
}

}  // namespace tenon::safetensors_plugin
