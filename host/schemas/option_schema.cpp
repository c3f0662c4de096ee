// SPDX-License-Identifier: Apache-2.0
#include "schemas/option_schema.hpp"

#include <cmath>
#include <limits>
#include <optional>

#include "schemas/kept.hpp"
#include "schemas/option_needs.hpp"
#include "values/dtype.hpp"
#include "values/json_any.hpp"

namespace tenon::host {
namespace {

// A type of the subset: what it is called in messages, and the value as the component gets it, or
// nothing when it is not of this type.
struct OptionType {
  std::string_view name;
  std::string (*expected)(const Json& schema);
  std::optional<Any> (*take)(const Json& schema, const tn_any& value);
};

const OptionType* find_type(std::string_view name);
std::string expected_text(const Json& schema);
std::optional<Any> take_value(const Json& schema, const tn_any& value);

// The limits of a number; the ends belong to it unless they are exclusive.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;

  explicit Range(const Json& schema) {
    auto limit = [&schema](const char* key, double& out) {
      if (!schema.contains(key)) return false;
      out = schema[key].get<double>();
      return true;
    };
    limit("minimum", low);
    limit("maximum", high);
    low_open = limit("exclusiveMinimum", low);
    high_open = limit("exclusiveMaximum", high);
  }
  bool holds(double value) const {  // false for NaN
    return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
  }
  std::string text() const {
    std::string from = number_text(low);
    std::string to = number_text(high);
    if (std::isinf(low) && std::isinf(high)) return "";
    if (std::isinf(low)) return (high_open ? " < " : " <= ") + to;
    if (std::isinf(high)) return (low_open ? " > " : " >= ") + from;
    return cat(" in ", low_open ? "(" : "[", from, ", ", to, high_open ? ")" : "]");
  }
};

std::string text_of(const tn_any& value) {
  return {value.len ? static_cast<const char*>(value.v.p) : "", value.len};
}

std::optional<Any> take_number(const Json& schema, const tn_any& value) {
  if (value.tag != TN_ANY_I64 && value.tag != TN_ANY_F64) return {};
  double number = value.tag == TN_ANY_F64 ? value.v.f : static_cast<double>(value.v.i);
  if (!Range(schema).holds(number)) return {};
  return Any::f64(number);
}

std::optional<Any> take_integer(const Json& schema, const tn_any& value) {
  int64_t number = value.v.i;
  if (value.tag == TN_ANY_F64) {  // scripts and JSON also write 8.0
    if (value.v.f != std::trunc(value.v.f) || std::abs(value.v.f) > 0x1p53) return {};
    number = static_cast<int64_t>(value.v.f);
  } else if (value.tag != TN_ANY_I64) {
    return {};
  }
  if (!Range(schema).holds(static_cast<double>(number))) return {};
  return Any::i64(number);
}

std::optional<Any> same(const tn_any& value) {
  Result<Any> copied = Any::copy_of(value);
  return copied.ok() ? std::optional<Any>(std::move(*copied)) : std::nullopt;
}

// The same value when it has one of two tags.
template <uint32_t A, uint32_t B = A>
std::optional<Any> take_tag(const Json&, const tn_any& value) {
  if (value.tag != A && value.tag != B) return {};
  return same(value);
}

std::optional<Any> take_object(const Json&, const tn_any& value) {
  if (value.tag != TN_ANY_TEXT) return {};
  Result<Json> parsed = parse_json(text_of(value), "object");
  if (!parsed.ok() || !parsed->is_object()) return {};
  return same(value);
}

tn_any element(const tn_any& list, uint64_t i) {
  if (list.tag == TN_ANY_I64S)
    return {TN_ANY_I64, 0, 1, {.i = static_cast<const int64_t*>(list.v.p)[i]}};
  if (list.tag == TN_ANY_F64S)
    return {TN_ANY_F64, 0, 1, {.f = static_cast<const double*>(list.v.p)[i]}};
  tn_str text = static_cast<const tn_str*>(list.v.p)[i];
  return {TN_ANY_TEXT, 0, text.len, {.p = text.data}};
}

std::optional<Any> take_array(const Json& schema, const tn_any& value) {
  if (value.tag < TN_ANY_I64S || value.tag > TN_ANY_TEXTS) return {};
  if (!schema.contains("items") || value.len == 0) return same(value);
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < value.len; ++i) {
    std::optional<Any> taken = take_value(schema["items"], element(value, i));
    if (!taken) return {};
    tn_any item = taken->get();
    if (item.tag == TN_ANY_I64) integers.push_back(item.v.i);
    if (item.tag == TN_ANY_F64) numbers.push_back(item.v.f);
    if (item.tag == TN_ANY_TEXT) texts.push_back(text_of(item));
  }
  if (integers.size() == value.len) return Any::i64s(std::move(integers));
  if (numbers.size() == value.len) return Any::f64s(std::move(numbers));
  return Any::texts(std::move(texts));
}

std::string expected_array(const Json& schema) {
  if (!schema.contains("items")) return "a list";
  return "a list, each element " + expected_text(schema["items"]);
}

std::string expected_component(const Json& schema) {
  std::string role = schema.value("role", "");
  return role.empty() ? "a component, an id or a file"
                      : cat("a component of role ", role, ", an id or a file");
}

// The one list of types.
constexpr OptionType kTypes[] = {
    {"number", [](const Json& s) { return "a number" + Range(s).text(); }, take_number},
    {"integer", [](const Json& s) { return "an integer" + Range(s).text(); }, take_integer},
    {"boolean", [](const Json&) -> std::string { return "true or false"; }, take_tag<TN_ANY_BOOL>},
    {"string", [](const Json&) -> std::string { return "a text"; }, take_tag<TN_ANY_TEXT>},
    {"array", expected_array, take_array},
    {"object", [](const Json&) -> std::string { return "an object"; }, take_object},
    {"component", expected_component, take_tag<TN_ANY_COMPONENT, TN_ANY_TEXT>},
    {"path", [](const Json&) -> std::string { return "a path"; }, take_tag<TN_ANY_TEXT>},
    {"tensor", [](const Json&) -> std::string { return "a tensor"; }, take_tag<TN_ANY_TENSOR>},
    {"graph", [](const Json&) -> std::string { return "a model"; }, take_tag<TN_ANY_GRAPH>},
};

const OptionType* find_type(std::string_view name) {
  for (const OptionType& type : kTypes)
    if (type.name == name) return &type;
  return nullptr;
}

// The alternatives of "type", which is a name or a list of names.
std::vector<std::string> type_names(const Json& schema) {
  if (!schema.contains("type")) return {};
  const Json& type = schema["type"];
  if (type.is_string()) return {type.get<std::string>()};
  return type.get<std::vector<std::string>>();
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

std::vector<std::string> enum_words(const Json& schema) {
  std::vector<std::string> words;
  for (const Json& item : schema["enum"])
    words.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  return words;
}

std::string expected_text(const Json& schema) {
  if (schema.contains("enum")) return "one of " + joined(enum_words(schema), ", ");
  std::vector<std::string> alternatives, names = type_names(schema);
  std::ranges::stable_partition(names, [](const std::string& name) { return name != "array"; });
  for (const std::string& name : names)  // a list last: what its elements are ends the text
    alternatives.push_back(find_type(name)->expected(schema));
  return joined(alternatives, " or ");
}

// The value of the list: a type may be called by any of its names ("bfloat16" where bf16 is meant).
std::optional<Any> as_listed(const Json& schema, const tn_any& value) {
  std::optional<Any> same_type;
  for (const Json& item : schema["enum"]) {
    if (is_json(value, item)) return same(value);
    bool are_texts = item.is_string() && value.tag == TN_ANY_TEXT;
    if (are_texts && type_word(item.get<std::string>()) == type_word(text_of(value)))
      same_type = any_of_json(item);
  }
  return same_type;
}

std::optional<Any> take_value(const Json& schema, const tn_any& value) {
  for (const std::string& name : type_names(schema)) {
    std::optional<Any> taken = find_type(name)->take(schema, value);
    if (taken && schema.contains("enum")) taken = as_listed(schema, taken->get());
    if (taken) return taken;
  }
  return {};
}

// "expected one of minmax, entropy, got 'entrop' (did you mean 'entropy'?)"
std::string mismatch(const Json& schema, const tn_any& value) {
  std::string text = cat("expected ", expected_text(schema), ", got ", any_text(value));
  if (!schema.contains("enum") || value.tag != TN_ANY_TEXT) return text;
  return text + did_you_mean(text_of(value), enum_words(schema));
}

// What the schema of one option must be, so that the functions above need not ask.
std::string schema_fault(const Json& schema) {
  if (!schema.is_object()) return "expected an object";
  bool has_type = schema.contains("type");
  const Json type = has_type ? schema["type"] : Json();
  bool is_names = type.is_array() && !type.empty();
  for (const Json& name : is_names ? type : Json::array({type})) {
    if (!name.is_string()) return "expected a type";
    if (!find_type(name.get<std::string>()))
      return cat("unknown type '", name.get<std::string>(), "'");
  }
  for (const char* key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
    if (schema.contains(key) && !schema[key].is_number()) return cat(key, " is no number");
  if (schema.contains("enum") && (!schema["enum"].is_array() || schema["enum"].empty()))
    return "enum is no list";
  if (schema.contains("role") && !schema["role"].is_string()) return "role is no text";
  if (schema.contains("items")) return schema_fault(schema["items"]);
  return "";
}

Status schema_error(std::string_view who, std::string_view why) {
  return {TN_FAILED_PRECONDITION, cat("options schema: ", why), who};
}

struct Schema {
  Json properties = Json::object();
  Json any_other;  // of options by other names, "additionalProperties"; null: there are none
  std::vector<std::string> names;
  std::vector<std::string> required;

  bool has(const std::string& key) const {
    return !any_other.is_null() || properties.contains(key);
  }
};

Result<Schema> parse_schema(std::string_view text, std::string_view who) {
  Schema schema;
  if (text.empty()) return schema;
  Result<Json> parsed = parse_json(text, "options schema");
  if (!parsed.ok()) return Status(TN_FAILED_PRECONDITION, parsed.status().text(), who);
  if (!parsed->is_object()) return schema_error(who, "expected an object");
  if (parsed->contains("properties")) schema.properties = (*parsed)["properties"];
  if (!schema.properties.is_object()) return schema_error(who, "properties is no object");
  for (const auto& [name, option] : schema.properties.items()) {
    std::string fault = schema_fault(option);
    if (fault.empty()) fault = needs_fault(option, schema.properties);
    if (!fault.empty()) return schema_error(who, cat("option ", name, ": ", fault));
    schema.names.push_back(name);
    if (!option.contains("default") || option["default"].is_null()) continue;
    Any value = any_of_json(option["default"]);
    if (!take_value(option, value.get()))
      return schema_error(who, cat("option ", name, ": default: ", mismatch(option, value.get())));
  }
  if (parsed->contains("additionalProperties")) {
    const Json& other = (*parsed)["additionalProperties"];
    if (other != Json(false)) schema.any_other = other;  // false: there are none
    std::string fault = other == Json(false) ? "" : schema_fault(other);
    if (!fault.empty()) return schema_error(who, cat("additionalProperties: ", fault));
  }
  if (!parsed->contains("required")) return schema;
  for (const Json& name : (*parsed)["required"]) {
    if (!name.is_string() || !schema.properties.contains(name.get<std::string>()))
      return schema_error(who, "required names an unknown option");
    schema.required.push_back(name.get<std::string>());
  }
  return schema;
}

Result<const Schema*> schema_of(std::string_view text, std::string_view who) {
  static Kept<Schema> kept;
  if (const Schema* found = kept.find(text)) return found;
  TN_TRY(made, parse_schema(text, who));
  return &kept.keep(text, std::move(made));
}

Status unknown_option(std::string_view who, std::string_view key, const Schema& schema) {
  std::string hint = did_you_mean(key, schema.names);
  if (schema.names.empty()) hint = " (it takes no options)";
  if (hint.empty()) hint = cat(" (known: ", joined(schema.names, ", "), ")");
  return {TN_INVALID_ARGUMENT, cat("unknown option '", key, "'", hint), who};
}

Status option_error(std::string_view who,
                    std::string_view key,
                    const Json& option,
                    const tn_any& value) {
  return {TN_INVALID_ARGUMENT, cat("option ", key, ": ", mismatch(option, value)), who};
}

// Options whose names are the caller's own.
Status take_others(const Schema& schema,
                   const tn_options& given,
                   std::string_view who,
                   tn_options* out) {
  for (const auto& [key, value] : given.entries) {
    if (schema.properties.contains(key) || value.tag() == TN_ANY_NONE) continue;
    std::optional<Any> taken = take_value(schema.any_other, value.get());
    if (!taken) return option_error(who, key, schema.any_other, value.get());
    out->set(key, std::move(*taken));
  }
  return {};
}

// What is given and is not the default has to have an effect.
Status check_needs(const Schema& schema, const tn_options& all, std::string_view who) {
  for (const auto& [key, option] : schema.properties.items()) {
    if (!option.contains("needs") || !is_said(key, schema.properties, all)) continue;
    std::string why = why_no_effect(key, schema.properties, all);
    if (!why.empty()) return {TN_INVALID_ARGUMENT, cat("option ", key, ": ", why), who};
  }
  return {};
}

}  // namespace

Result<Ref<tn_options>> validate_options(tn_ctx* owner,
                                         std::string_view schema_text,
                                         const tn_options* given,
                                         std::string_view who) {
  TN_TRY(found, schema_of(schema_text, who));
  const Schema& schema = *found;
  if (given) {
    for (const auto& [key, value] : given->entries)
      if (!schema.has(key)) return unknown_option(who, key, schema);
  }
  Ref<tn_options> out = new_options(owner);
  if (given) TN_CHECK(take_others(schema, *given, who, out.get()));
  for (const auto& [key, option] : schema.properties.items()) {
    const Any* value = given ? given->find(key) : nullptr;
    Any fallback = any_of_json(option.value("default", Json()));
    const Any& chosen = value && value->tag() != TN_ANY_NONE ? *value : fallback;
    if (chosen.tag() == TN_ANY_NONE) continue;
    std::optional<Any> taken = take_value(option, chosen.get());
    if (!taken) return option_error(who, key, option, chosen.get());
    out->set(key, std::move(*taken));
  }
  for (const std::string& key : schema.required)
    if (!out->find(key)) return option_error(who, key, schema.properties.at(key), {});
  TN_CHECK(check_needs(schema, *out.get(), who));
  return out;
}

Status check_schema(std::string_view schema, std::string_view who) {
  TN_TRY(parsed, parse_schema(schema, who));
  (void)parsed;
  return {};
}

}  // namespace tenon::host
