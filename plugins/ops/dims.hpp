// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dimensions while shapes are inferred: a number, a symbol ("seq/2+1"), or not known. The contents
// of small integer tensors that hold shapes are known the same way; they travel with the value in
// the note "tenon.dims", so that Reshape, Expand, Slice ... of a computed shape are not blind.

#include <optional>
#include <string>
#include <vector>

#include "tenon/sdk/role/operands.hpp"

namespace tenon::ops {

struct Dim {
  std::optional<int64_t> value;
  std::string symbol;  // with no value: its text, or empty

  Dim() = default;
  Dim(int64_t number) : value(number) {}  // NOLINT: conversions are the point
  explicit Dim(std::string text) : symbol(std::move(text)) {}
  bool known() const { return value.has_value(); }
  bool is(int64_t number) const { return value == number; }
  bool operator==(const Dim& other) const {  // not known is equal to nothing
    return known() ? value == other.value
                   : !other.known() && !symbol.empty() && symbol == other.symbol;
  }
};
using Dims = std::vector<Dim>;

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floor_divide(const Dim& a, const Dim& b);
Dim product(const Dims& dims);
// The product of `all` over that of `part`; equal symbols cancel.
Dim quotient(Dims all, Dims part);
// By NumPy's rule; nothing where both are known and disagree.
std::optional<Dim> broadcast(const Dim& a, const Dim& b);

Dims dims_of(const Type& type);  // which must be ranked
Type type_of(uint32_t dtype, const Dims& dims);
Type unranked(uint32_t dtype);

// What an integer tensor of rank 0 or 1 holds, as far as known. Nothing: not even how many.
std::optional<Dims> contents(Value value);
Status set_contents(EditView edit, Value value, const std::optional<Dims>& dims);
// All of it as numbers, or nothing.
std::optional<std::vector<int64_t>> known_ints(Value value);
std::optional<std::vector<int64_t>> known_ints(const Dims& dims);

// Sets the type of output i, where the node has that output.
Status set_output(EditView edit, Node node, uint64_t i, uint32_t dtype, const Dims& dims);
Status set_output(EditView edit, Node node, uint64_t i, const Type& type);
// The type (and contents) of input 0 for output 0.
Status same_as_input(EditView edit, Node node);
// Broadcasts the inputs given; the result of unranked ones is unranked.
Result<Type> broadcast_type(uint32_t dtype, const std::vector<Value>& inputs);
// For operators that make their result from attributes alone.
Status expect_no_inputs(Node node);
// Refuses input i where it is given and does not broadcast to a shape.
Status expect_broadcast(Node node, uint64_t i, const Dims& shape);
// Of a matrix product by NumPy's rule, batch axes broadcast; a vector's only axis is the inner one.
Result<Dims> product_dims(Dims left, Dims right);
// An axis made non-negative, or what is wrong with it.
Result<int64_t> axis_in(int64_t axis, size_t rank, std::string_view what = "axis");

}  // namespace tenon::ops
