// SPDX-License-Identifier: Apache-2.0
#pragma once
// A row of the table of functions, and what its body gets: the arguments, converted as the
// signature says.
//
//     {"copysign(a: together float, b: together float)", "", "a with the sign of b.",
//      "", [](Call& c) -> Values { ... c[0] ... }}
//
// A parameter is `name: words = default`. Words of values: `array` (as it is; what no word says),
// `together` (all such parameters get the one type that they have together), `compared` (the same,
// but integers that no integer type holds together stay as they are), then `float` (others become
// float32), `number` (truth values become int8), `whole`, `bool`, `index`. `arrays` is a
// list of them, and `*name` takes the rest of the arguments. Words of what is known while the graph
// is made: `int`, `ints` (one or a list), `axes` (the same, none: all), `flag`, `scalar` (a
// number or a truth value), `plain` (as it is: a number, a text or a list), `dtype`, `text`. `-> a,
// b` names the values of a tuple, `-> tuple` is one without names. What stands before a dot in the
// name is the part of the API that it is in: `linalg.solve`.

#include <functional>
#include <optional>

#include "tenon/arrays/graph.hpp"

namespace tenon::arrays {

struct Parameter {
  std::string name;
  std::vector<std::string> words;
  std::optional<Json> fallback;  // without one it must be given
  bool variadic = false;
  bool has(std::string_view word) const;
  bool is_array() const;
  bool is_promoted() const { return has("together") || has("compared"); }
};

struct Signature {
  std::string name;
  std::vector<Parameter> parameters;
  Json results;  // false: one value; true: a tuple; names: a tuple whose entries have these
};
Signature parse_signature(std::string_view text);

class Call;
using Body = Values (*)(Call&);

struct Function {
  std::string_view signature;
  std::string_view op;   // of ONNX; without a body all arguments are its inputs
  std::string_view doc;  // whole sentences
  // What it is of truth values: another operator, "=": they stay as they are, "!...": an error with
  // this remedy. Empty: op takes them.
  std::string_view of_truth = "";
  Body body = nullptr;
};

struct Group {
  std::string_view name;
  std::span<const Function> functions;
};
std::span<const Group> groups();

class Call {
 public:
  Call(Graph& graph,
       const Function& row,
       const Signature& signature,
       const Json& positional,
       const Json& named);
  Values run();

  Graph& graph;
  const Function& row;
  // Argument i: a value; whether there is one; a list of values.
  const Value& operator[](size_t i) const { return values_[i].front(); }
  bool has(size_t i) const { return !values_[i].empty() || !given_[i].is_null(); }
  const std::vector<Value>& list(size_t i) const { return values_[i]; }
  size_t n_parameters() const { return given_.size(); }
  // As it was given.
  const Json& json(size_t i) const { return given_[i]; }
  int64_t integer(size_t i) const;
  std::vector<int64_t> ints(size_t i) const;
  bool flag(size_t i) const;
  std::string text(size_t i) const;
  uint32_t dtype(size_t i, uint32_t fallback = TN_DTYPE_NONE) const;
  // Axes of a value, counted from its first one; `ints` of none are all. Each may be named once.
  int64_t axis(size_t i, int64_t rank) const;
  std::vector<int64_t> axes(size_t i, int64_t rank) const;
  std::vector<int64_t> axes_in_turn(size_t i, int64_t rank) const;  // one may be named again
  // All values among the arguments, in order.
  std::vector<Value> inputs() const;
  Value scalar(const Json& number, uint32_t dtype) const { return graph.number(number, dtype); }

 private:
  void bind(const Json& positional, const Json& named);
  size_t position(std::string_view name) const;
  void convert();
  void check(size_t i) const;
  // Each array of parameter i, which may be a list of them.
  void each_array(size_t i, const std::function<void(const Json&)>& visit) const;
  uint32_t common_type() const;
  Value converted(const Json& given, const Parameter& p, uint32_t common) const;
  Value read(const Json& given, const Parameter& parameter) const;
  [[noreturn]] void refuse(size_t i, std::string_view expected) const;
  const Signature& signature_;
  std::vector<Json> given_;
  std::vector<std::vector<Value>> values_;
};

int64_t axis_of(int64_t axis, int64_t rank);
bool is_whole(const Json& number);  // an integer of at most 63 bits and its sign

// Bodies of several rows, with the row's operator.
Values rounded(Call& c);   // whole numbers and truth values stay what they are
Values compared(Call& c);  // two `compared` parameters

// Expressions. A number beside a value takes its type; both sides are of one type.
struct Operand {
  Operand(const Value& given) : value(&given) {}
  Operand(double given) : number(given) {}
  const Value* value = nullptr;
  double number = 0;
};
Value node(std::string_view op, const std::vector<Operand>& inputs, const Json& attributes = {});
Value operator+(const Operand& a, const Operand& b);
Value operator-(const Operand& a, const Operand& b);
Value operator*(const Operand& a, const Operand& b);
Value operator/(const Operand& a, const Operand& b);
Value operator-(const Value& x);
Value lt(const Operand& a, const Operand& b);
Value eq(const Operand& a, const Operand& b);
Value where(const Value& condition, const Operand& a, const Operand& b);
Value cast(const Value& x, uint32_t dtype);
Value stopped(const Value& x);  // the same numbers, through which no gradient passes
Value as_float(const Value& x);
Value logical_not(const Value& x);
Value reshape(const Value& x, const std::vector<int64_t>& shape);
Value expand_dims(const Value& x, int64_t axis);
Value squeeze(const Value& x, const std::vector<int64_t>& axes);
Value slice(const Value& x, int64_t axis, int64_t start, int64_t end);
Value concat(const std::vector<Value>& parts, int64_t axis);
Value permute(const Value& x, const std::vector<int64_t>& order);
Value broadcast_to(const Value& x, const std::vector<int64_t>& shape);
std::vector<Value> broadcast_together(const std::vector<Value>& values);
Value reduce(std::string_view op, const Value& x, const std::vector<int64_t>& axes, bool keep);
void not_empty(const Value& x, const std::vector<int64_t>& axes);  // an error where one is
// On operands of one type, which may be bool: see Function::of_truth.
Value operation(const Function& row, const std::vector<Value>& operands);
// The operands in the one type that they have together.
std::vector<Value> alike(const std::vector<Value>& values);
// A sum of products; of truth values whether one product is true.
Value product(std::string_view op, const std::vector<Value>& operands, const Json& attributes = {});
Value any_of(const Value& x, const std::vector<int64_t>& axes, bool keep);
// The type in which integers are added up.
Value summed(const Value& x, uint32_t dtype = TN_DTYPE_NONE);
Value full(Graph& graph, const std::vector<int64_t>& shape, const Json& number, uint32_t dtype);

extern const std::span<const Function> kElementwise, kArithmetic, kReductions, kShapes, kCreation,
    kProducts, kSorting, kSpecial, kStatistics, kNetworks, kLinalg, kFft;

}  // namespace tenon::arrays
