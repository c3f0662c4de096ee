// SPDX-License-Identifier: Apache-2.0
// What bodies of functions are written in.
#include <limits>

#include "call.hpp"

namespace tenon::arrays {

using cxx::cat, cxx::invalid;

Value node(std::string_view op, const std::vector<Operand>& inputs, const Json& attributes) {
  const Value* typed = nullptr;  // the last one: where() has its condition first
  for (const Operand& input : inputs)
    if (input.value) typed = input.value;
  std::vector<Value> values;
  for (const Operand& input : inputs)
    values.push_back(input.value ? *input.value : typed->graph->number(input.number, typed->dtype));
  return typed->graph->nodes(op, values, attributes).front();
}
Value operator+(const Operand& a, const Operand& b) {
  return node("Add", {a, b});
}
Value operator-(const Operand& a, const Operand& b) {
  return node("Sub", {a, b});
}
Value operator*(const Operand& a, const Operand& b) {
  return node("Mul", {a, b});
}
Value operator/(const Operand& a, const Operand& b) {
  return node("Div", {a, b});
}
Value operator-(const Value& x) {
  return node("Neg", {x});
}
Value lt(const Operand& a, const Operand& b) {
  return node("Less", {a, b});
}
Value eq(const Operand& a, const Operand& b) {
  return node("Equal", {a, b});
}
Value stopped(const Value& x) {
  return x.graph->nodes("StopGradient", {&x, 1}, Json::object(), 1, "tenon")[0];
}

Value where(const Value& condition, const Operand& a, const Operand& b) {
  return node("Where", {condition, a, b});
}
Value cast(const Value& x, uint32_t dtype) {
  if (x.dtype == dtype) return x;
  if (dtype == TN_F64 && x.dtype == TN_F32)
    if (std::optional<Value> exact = x.graph->in_double(x)) return *exact;
  return node("Cast", {x}, {{"to", {{"dtype", dtype}}}});
}
Value as_float(const Value& x) {
  return x.is_float() ? x : cast(x, TN_F32);
}
Value logical_not(const Value& x) {
  return node("Not", {x});
}

Value reshape(const Value& x, const std::vector<int64_t>& shape) {
  return node("Reshape", {x, x.graph->integers(shape)}, {{"allowzero", 1}});
}
Value expand_dims(const Value& x, int64_t axis) {
  return node("Unsqueeze", {x, x.graph->integers({{axis}})});
}
Value squeeze(const Value& x, const std::vector<int64_t>& axes) {
  return axes.empty() ? x : node("Squeeze", {x, x.graph->integers(axes)});
}
Value slice(const Value& x, int64_t axis, int64_t start, int64_t end) {
  Graph& g = *x.graph;
  return node("Slice", {x, g.integers({{start}}), g.integers({{end}}), g.integers({{axis}}),
                        g.integers({{int64_t{1}}})});
}
Value concat(const std::vector<Value>& parts, int64_t axis) {
  return parts.front().graph->nodes("Concat", parts, {{"axis", axis}}).front();
}
Value permute(const Value& x, const std::vector<int64_t>& order) {
  return std::is_sorted(order.begin(), order.end()) ? x : node("Transpose", {x}, {{"perm", order}});
}
Value broadcast_to(const Value& x, const std::vector<int64_t>& shape) {
  return node("Expand", {x, x.graph->integers(shape)});
}
std::vector<Value> broadcast_together(const std::vector<Value>& values) {
  std::vector<int64_t> shape;
  for (const Value& x : values) {
    for (int64_t axis = 0; axis < x.rank(); ++axis)
      x.size_of(axis);
    if (x.dims.size() > shape.size()) shape.insert(shape.begin(), x.dims.size() - shape.size(), 1);
    for (size_t k = 0; k < x.dims.size(); ++k) {
      int64_t& size = shape[shape.size() - 1 - k];
      int64_t own = x.dims[x.dims.size() - 1 - k];
      if (size != own && size != 1 && own != 1)
        invalid(cat("expected shapes that broadcast together, got ", x.text(), " beside ",
                    cxx::shape_text(shape)));
      size = size == 1 ? own : size;
    }
  }
  std::vector<Value> out;
  for (const Value& x : values)
    out.push_back(x.dims == shape ? x : broadcast_to(x, shape));
  return out;
}

Value reduce(std::string_view op, const Value& x, const std::vector<int64_t>& axes, bool keep) {
  if (axes.empty()) return x;
  return node(op, {x, x.graph->integers(axes)}, {{"keepdims", keep ? 1 : 0}});
}
void not_empty(const Value& x, const std::vector<int64_t>& axes) {
  for (int64_t axis : axes) {
    if (x.dims[static_cast<size_t>(axis)] == 0)
      invalid(cat("axis ", axis, " of ", x.text(), ": expected one element at least"));
  }
}
Value any_of(const Value& x, const std::vector<int64_t>& axes, bool keep) {
  return reduce("ReduceMax", x, axes, keep);  // false of no elements
}
Value summed(const Value& x, uint32_t dtype) {
  if (dtype != TN_DTYPE_NONE) return cast(x, dtype);
  if (x.is_float()) return x;
  return cast(x, TN_DTYPE_CODE(x.dtype) == kDLUInt ? TN_U64 : TN_I64);
}
Value product(std::string_view op, const std::vector<Value>& operands, const Json& attributes) {
  Graph& graph = *operands.front().graph;
  if (!operands.front().is_bool()) return graph.nodes(op, operands, attributes).front();
  std::vector<Value> counted;
  for (const Value& x : operands)
    counted.push_back(cast(x, TN_I32));
  return cast(graph.nodes(op, counted, attributes).front(), TN_BOOL);
}
Value full(Graph& graph, const std::vector<int64_t>& shape, const Json& number, uint32_t dtype) {
  return broadcast_to(graph.number(number, dtype), shape);
}

Value operation(const Function& row, const std::vector<Value>& operands) {
  Graph& graph = *operands.front().graph;
  if (!operands.back().is_bool() || row.of_truth.empty())
    return graph.nodes(row.op, operands, Json::object()).front();
  if (row.of_truth == "=") return operands.front();
  if (row.of_truth.starts_with("!"))
    invalid(cat(row.op, ": expected numbers, got truth values; use ", row.of_truth.substr(1)));
  return graph.nodes(row.of_truth, operands, Json::object()).front();
}
Values rounded(Call& c) {
  return c[0].is_float() ? node(c.row.op, {c[0]}) : c[0];
}
Values compared(Call& c) {
  const Value &a = c[0], &b = c[1];
  if (a.dtype == b.dtype) return node(c.row.op, {a, b});
  // A number below 0 is to an unsigned one as it is to 0; others are unsigned ones of 64 bits.
  const bool a_is_signed = TN_DTYPE_CODE(a.dtype) == kDLInt;
  const Value& number = a_is_signed ? a : b;
  const Value whole = cast(number, TN_U64);
  const Value below = a_is_signed ? node(c.row.op, {a, 0}) : node(c.row.op, {0, b});
  const Value above = a_is_signed ? node(c.row.op, {whole, b}) : node(c.row.op, {a, whole});
  return where(lt(number, 0), below, above);
}

}  // namespace tenon::arrays
