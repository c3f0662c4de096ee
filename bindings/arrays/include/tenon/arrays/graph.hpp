// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions of the array API over a graph under construction: `call("sum", {x}, {{"axis", 0}})`
// adds the nodes. Which functions there are, with parameters and texts, says `description()`.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/cxx/dtype.hpp"
#include "tenon/cxx/session.hpp"

namespace tenon::arrays {

using cxx::Json;

class Graph;

// A value of the graph with its type. Sizes that are known at run time only are TN_DIM_UNKNOWN.
struct Value {
  Graph* graph = nullptr;
  tn_value_id id = 0;
  uint32_t dtype = TN_DTYPE_NONE;
  bool weak = false;  // a number of the caller's language: it takes the type of what is beside it
  bool ranked = false;
  std::vector<int64_t> dims = {};
  std::vector<std::string> symbols = {};

  int64_t rank() const;                 // throws where it is not known
  int64_t size_of(int64_t axis) const;  // throws where it is not known
  std::string text() const;             // "float32[N, 4]"
  bool is_float() const { return cxx::is_float(dtype); }
  bool is_bool() const { return dtype == TN_BOOL; }
};

// What a function gives: one value or several.
struct Values : std::vector<Value> {
  Values(const Value& one) : std::vector<Value>{one} {}
  Values(std::vector<Value> several) : std::vector<Value>(std::move(several)) {}
};

class Graph {
 public:
  Graph(const cxx::Services& services, tn_edit* edit) : services_(&services), edit_(edit) {}

  // positional: a list; named: an object. A value is {"value": id} and, where it is a number of the
  // caller's language, "weak": true; numbers stand for themselves.
  std::vector<tn_value_id> call(std::string_view name, const Json& positional, const Json& named);

  Value value(tn_value_id id, bool weak = false);
  std::vector<Value> nodes(std::string_view op,
                           std::span<const Value> inputs,
                           const Json& attributes,
                           uint64_t outputs = 1,
                           std::string_view domain = "");
  // A number or true and false as a scalar; the same one is made once.
  Value number(const Json& number, uint32_t dtype);
  // x as dtype; a number that the call was given as that type itself, which must hold it.
  Value typed(const Value& x, uint32_t dtype);
  // A vector of int64, as shapes and axes are.
  Value integers(std::span<const int64_t> list);
  Value constant(uint32_t dtype, const std::vector<int64_t>& shape, std::span<const Json> elements);
  // Numbers of the caller's language as an array: float32, but no digit is lost beside float64.
  Value numbers(const std::vector<int64_t>& shape, const std::vector<double>& elements);
  // What a constant that was made of numbers is in float64, before it was rounded.
  std::optional<Value> in_double(const Value& x);

 private:
  void check(tn_status* status) const;
  const cxx::Services* services_;
  tn_edit* edit_;
  std::map<std::string, tn_value_id> constants_;
  std::map<tn_value_id, Json> numbers_;  // of the call, before they have the type that they get
  std::map<tn_value_id, std::vector<Json>> lists_;  // the same of arrays of numbers
};

// A list with one object for each function: name, group, doc, parameters (name, kind, default,
// variadic, keyword), results (names of a tuple's entries, or true).
const Json& description();

// Types.
uint32_t together(uint32_t a, uint32_t b);  // of `x + y`
// Of `x + 2`: a number takes the array's type where its kind is no wider. TN_DTYPE_NONE: no array.
uint32_t with_number(uint32_t dtype, const Json& number);

}  // namespace tenon::arrays
