// SPDX-License-Identifier: Apache-2.0
// Binds arguments to a signature, converts them as it says, and runs the row.
#include "call.hpp"

#include <algorithm>
#include <unordered_map>

#include "tenon/cxx/choice.hpp"

namespace tenon::arrays {

using cxx::cat, cxx::Error, cxx::invalid;

namespace {

struct Entry {
  const Function* row;
  Signature signature;
};

const Entry& find(std::string_view name) {
  static const auto table = [] {
    std::unordered_map<std::string, Entry> made;
    for (const Group& group : groups())
      for (const Function& row : group.functions) {
        Signature signature = parse_signature(row.signature);
        made.emplace(signature.name, Entry{&row, signature});
      }
    return made;
  }();
  auto found = table.find(std::string(name));
  if (found == table.end())
    throw Error(TN_NOT_FOUND, cat("expected an array function, got '", name, "'"));
  return found->second;
}

bool is_value(const Json& given) {
  return given.is_object() && given.contains("value");
}

std::string shown(const Json& given) {
  if (is_value(given)) return "a traced value";
  return given.is_null() ? "nothing" : cxx::dump(given);
}

}  // namespace

std::vector<tn_value_id> Graph::call(std::string_view name,
                                     const Json& positional,
                                     const Json& named) {
  const Entry& entry = find(name);
  std::vector<tn_value_id> ids;
  for (const Value& made : Call(*this, *entry.row, entry.signature, positional, named).run())
    ids.push_back(made.id);
  return ids;
}

Call::Call(Graph& made_in,
           const Function& function,
           const Signature& signature,
           const Json& positional,
           const Json& named)
    : graph(made_in),
      row(function),
      signature_(signature),
      given_(signature.parameters.size()),
      values_(signature.parameters.size()) {
  bind(positional, named);
  convert();
}

void Call::refuse(size_t i, std::string_view expected) const {
  invalid(cat(signature_.name, ": ", signature_.parameters[i].name, ": expected ", expected,
              ", got ", shown(given_[i])));
}

void Call::bind(const Json& positional, const Json& named) {
  const std::vector<Parameter>& parameters = signature_.parameters;
  std::vector<bool> taken(parameters.size());
  size_t place = 0;
  for (const Json& given : positional) {
    if (place >= parameters.size())
      invalid(cat(signature_.name, ": expected at most ", parameters.size(), " arguments, got ",
                  positional.size()));
    taken[place] = true;
    if (parameters[place].variadic) {
      given_[place].push_back(given);
    } else {
      given_[place++] = given;
    }
  }
  for (const auto& [name, given] : named.items()) {
    const size_t i = position(name);
    if (taken[i]) invalid(cat(signature_.name, ": argument ", name, ": given twice"));
    given_[i] = given;
    taken[i] = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!taken[i] && parameters[i].fallback) given_[i] = *parameters[i].fallback;
    check(i);
  }
}

size_t Call::position(std::string_view name) const {
  std::vector<std::string> known;
  for (const Parameter& one : signature_.parameters)
    known.push_back(one.name);
  auto found = std::ranges::find(known, name);
  if (found == known.end())
    invalid(cat(signature_.name, ": arguments: ", cxx::expected_one_of(known, name)));
  return static_cast<size_t>(found - known.begin());
}

void Call::check(size_t i) const {
  const Parameter& p = signature_.parameters[i];
  const Json& given = given_[i];
  bool is_missing = given.is_null() && !p.fallback && !p.variadic;
  if (is_missing) refuse(i, p.is_array() ? "an array or a number" : "a value");
  if (!p.is_array() && is_value(given)) refuse(i, "what is known while the function is traced");
  const bool is_number = given.is_number() || given.is_boolean();
  if (p.has("scalar") && !given.is_null() && !is_number) refuse(i, "a number");
  // Also where the row reads none, as `stable` of a sort that always is.
  if (p.has("flag")) (void)flag(i);
}

Value Call::read(const Json& given, const Parameter& parameter) const {
  if (is_value(given)) {
    Value made = graph.value(given["value"].get<tn_value_id>(), given.value("weak", false));
    return made;
  }
  bool is_number = given.is_number() || given.is_boolean();
  if (!is_number)
    invalid(cat(signature_.name, ": ", parameter.name, ": expected an array or a number, got ",
                shown(given)));
  Value made = graph.number(given, with_number(TN_DTYPE_NONE, given));
  made.weak = true;
  return made;
}

namespace {

// A number of the kind that a value without a type of its own has.
Json number_like(const Value& x) {
  return x.is_bool() ? Json(true) : x.is_float() ? Json(1.0) : Json(1);
}

}  // namespace

std::vector<Value> alike(const std::vector<Value>& values) {
  uint32_t wanted = TN_DTYPE_NONE;
  for (const Value& x : values)
    if (!x.weak) wanted = together(wanted, x.dtype);
  for (const Value& x : values)
    if (x.weak) wanted = with_number(wanted, number_like(x));
  std::vector<Value> out;
  for (const Value& x : values)
    out.push_back(x.graph->typed(x, wanted));
  return out;
}

void Call::each_array(size_t i, const std::function<void(const Json&)>& visit) const {
  const Parameter& p = signature_.parameters[i];
  if (!p.is_array() || given_[i].is_null()) return;
  if (!p.variadic && !p.has("arrays")) return visit(given_[i]);
  if (!given_[i].is_array()) refuse(i, "a list of arrays");
  for (const Json& one : given_[i])
    visit(one);
}

// The element type of the arguments that are promoted together: of the arrays first, then of
// numbers, which only raise its kind. None of compared integers that only floats hold together.
uint32_t Call::common_type() const {
  uint32_t wanted = TN_DTYPE_NONE;
  bool are_compared = false, has_float = false;
  for (bool weak : {false, true}) {
    for (size_t i = 0; i < signature_.parameters.size(); ++i) {
      const Parameter& parameter = signature_.parameters[i];
      if (!parameter.is_promoted()) continue;
      are_compared = parameter.has("compared");
      each_array(i, [&](const Json& one) {
        Value x = is_value(one) ? read(one, parameter) : Value{};
        if (weak != (x.id == 0 || x.weak)) return;
        wanted = weak ? with_number(wanted, x.id == 0 ? one : number_like(x))
                      : together(wanted, x.dtype);
        has_float = has_float || (x.id != 0 ? x.is_float() : one.is_number_float());
      });
    }
  }
  return are_compared && cxx::is_float(wanted) && !has_float ? TN_DTYPE_NONE : wanted;
}

// An argument as its parameter's words ask for it. Numbers that are written out become constants of
// the type that they get, without a Cast.
Value Call::converted(const Json& given, const Parameter& p, uint32_t common) const {
  bool is_number = given.is_number() || given.is_boolean();
  Value x;
  if (is_number && (p.is_promoted() || p.has("float"))) {
    x = graph.number(given, p.is_promoted() ? common : TN_F32);
  } else {
    x = read(given, p);
    if (p.is_promoted() && common != TN_DTYPE_NONE) x = cast(x, common);
  }
  if (p.has("float")) x = as_float(x);
  if ((p.has("number") || p.has("whole")) && x.is_bool()) x = cast(x, TN_I8);
  if (p.has("whole") && x.is_float())
    invalid(cat(signature_.name, ": expected whole numbers, got ", cxx::dtype_name(x.dtype)));
  if (p.has("bool")) x = cast(x, TN_BOOL);
  if (p.has("index") && x.dtype != TN_I32) x = cast(x, TN_I64);
  return x;
}

void Call::convert() {
  uint32_t common = common_type();
  for (size_t i = 0; i < signature_.parameters.size(); ++i)
    each_array(i, [&](const Json& one) {
      values_[i].push_back(converted(one, signature_.parameters[i], common));
    });
}

std::vector<Value> Call::inputs() const {
  std::vector<Value> all;
  for (const auto& list : values_)
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

Values Call::run() {
  return row.body ? row.body(*this) : Values(operation(row, inputs()));
}

int64_t Call::integer(size_t i) const {
  if (!is_whole(given_[i])) refuse(i, "a whole number");
  return given_[i].get<int64_t>();
}
std::vector<int64_t> Call::ints(size_t i) const {
  if (is_whole(given_[i])) return {given_[i].get<int64_t>()};
  bool are = given_[i].is_array() || (given_[i].is_object() && given_[i].empty());
  for (const Json& one : given_[i])
    are = are && is_whole(one);
  if (!are) refuse(i, "whole numbers");
  if (given_[i].is_object()) return {};  // an empty table of Lua
  return given_[i].get<std::vector<int64_t>>();
}
bool Call::flag(size_t i) const {
  if (given_[i].is_null()) return false;
  if (!given_[i].is_boolean()) refuse(i, "true or false");
  return given_[i].get<bool>();
}
std::string Call::text(size_t i) const {
  if (!given_[i].is_string()) refuse(i, "a text");
  return given_[i].get<std::string>();
}
uint32_t Call::dtype(size_t i, uint32_t fallback) const {
  return given_[i].is_null() ? fallback : cxx::dtype_of(text(i));
}

int64_t axis_of(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw Error(TN_OUT_OF_RANGE,
                cat("axis: expected one of ", -rank, " to ", rank - 1, ", got ", axis));
  return axis < 0 ? axis + rank : axis;
}
int64_t Call::axis(size_t i, int64_t rank) const {
  return axis_of(integer(i), rank);
}
std::vector<int64_t> Call::axes(size_t i, int64_t rank) const {
  std::vector<int64_t> all = axes_in_turn(i, rank);
  for (auto at = all.begin(); at != all.end(); ++at)
    if (std::find(all.begin(), at, *at) != at) refuse(i, "each axis once");
  return all;
}
std::vector<int64_t> Call::axes_in_turn(size_t i, int64_t rank) const {
  std::vector<int64_t> all;
  if (given_[i].is_null()) {
    for (int64_t axis = 0; axis < rank; ++axis)
      all.push_back(axis);
    return all;
  }
  for (int64_t axis : ints(i))
    all.push_back(axis_of(axis, rank));
  return all;
}

}  // namespace tenon::arrays
