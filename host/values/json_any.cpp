// SPDX-License-Identifier: Apache-2.0
#include "values/json_any.hpp"

#include <algorithm>

namespace tenon::host {
namespace {

constexpr int kMaxDepth = 64;  // deeper text would recurse too far where it is walked

// Unsigned numbers over 2^63 have no int64.
bool is_int(const Json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
}

template <class Test>
bool all(const Json& list, Test test) {
  return std::all_of(list.begin(), list.end(), test);
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
  bool too_deep = false;
  auto watch = [&too_deep](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) too_deep = true;
    return !too_deep;
  };
  try {
    Json value = Json::parse(text, watch);
    if (too_deep) return invalid(cat(what, ": nested deeper than ", kMaxDepth, " levels"));
    return value;
  } catch (const Json::exception& thrown) {
    // Its text starts with "[json.exception.parse_error.101] parse error at ".
    std::string_view why = thrown.what();
    size_t at = why.find("] ");
    return invalid(cat(what, ": ", at == std::string_view::npos ? why : why.substr(at + 2)));
  }
}

Result<Json> parse_object(std::string_view text, std::string_view what) {
  if (text.empty()) return Json::object();
  TN_TRY(parsed, parse_json(text, what));
  if (parsed.is_object()) return std::move(parsed);
  return invalid(cat(what, ": expected a JSON object, got ", parsed.type_name()));
}

Any any_of_json(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_boolean()) return Any::boolean(value.get<bool>());
  if (is_int(value)) return Any::i64(value.get<int64_t>());
  if (value.is_number()) return Any::f64(value.get<double>());
  if (value.is_string()) return Any::text(value.get<std::string>());
  if (value.is_array()) {
    if (all(value, is_int)) return Any::i64s(value.get<std::vector<int64_t>>());
    if (all(value, [](const Json& item) { return item.is_number(); }))
      return Any::f64s(value.get<std::vector<double>>());
    if (all(value, [](const Json& item) { return item.is_string(); }))
      return Any::texts(value.get<std::vector<std::string>>());
  }
  return Any::text(value.dump());
}

bool is_json(const tn_any& value, const Json& json) {
  auto are_items = [&](auto* items) {
    return json.is_array() && std::equal(items, items + value.len, json.begin(), json.end());
  };
  switch (value.tag) {
    case TN_ANY_I64:
      return json.is_number() && json == value.v.i;
    case TN_ANY_F64:
      return json.is_number() && json == value.v.f;
    case TN_ANY_I64S:
      return are_items(static_cast<const int64_t*>(value.v.p));
    case TN_ANY_F64S:
      return are_items(static_cast<const double*>(value.v.p));
    default: {
      Result<Any> copied = Any::copy_of(value);
      return copied.ok() && *copied == any_of_json(json);
    }
  }
}

}  // namespace tenon::host
