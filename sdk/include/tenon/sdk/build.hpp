// SPDX-License-Identifier: Apache-2.0
#pragma once
// Building nodes as expressions: Builder b(edit); b.mul(x, b.op("Exp", {y})). The first failure is
// kept: from then on every call does nothing and gives a falsy value, and status() hands it over,
// once.

#include "tenon/sdk/edit.hpp"

namespace tenon {

class Builder {
 public:
  explicit Builder(EditView edit) : edit_(edit) {}
  const EditView& edit() const { return edit_; }
  Status status() { return std::move(failed_); }
  void fail(Status why) {
    if (failed_.ok()) failed_ = std::move(why);
  }
  template <class T>
  T take(Result<T> result) {
    if (result.ok()) return std::move(*result);
    fail(std::move(result).status());
    return {};
  }

  Node node(const NodeSpec& spec) { return failed_.ok() ? take(edit_.add(spec)) : Node{}; }
  Value op(std::string_view type, std::vector<Value> inputs, std::vector<Attr> attrs = {}) {
    Node made = node({.type = type, .inputs = std::move(inputs), .attrs = std::move(attrs)});
    return made ? made.output() : Value{};
  }
  Value neg(Value a) { return op("Neg", {a}); }
  Value add(Value a, Value b) { return op("Add", {a, b}); }
  Value sub(Value a, Value b) { return op("Sub", {a, b}); }
  Value mul(Value a, Value b) { return op("Mul", {a, b}); }
  Value div(Value a, Value b) { return op("Div", {a, b}); }

  Value ints(const std::vector<int64_t>& values) {
    return failed_.ok() ? take(edit_.ints(values)) : Value{};
  }
  // A scalar of this type.
  Value number(double value, uint32_t dtype) {
    if (!failed_.ok()) return {};
    if (dtype == TN_F64) return take(edit_.constant<double>(TN_F64, {}, {value}));
    if (dtype == TN_I64)
      return take(edit_.constant<int64_t>(TN_I64, {}, {static_cast<int64_t>(value)}));
    Value single = take(edit_.constant<float>(TN_F32, {}, {static_cast<float>(value)}));
    return dtype == TN_F32 ? single : cast(single, dtype);
  }
  Value cast(Value x, uint32_t dtype) {
    return x.dtype() == dtype ? x : op("Cast", {x}, {{"to", any_dtype(dtype)}});
  }
  // The shape as an integer tensor: a constant where it is known.
  Value shape_of(Value x) {
    if (!failed_.ok()) return {};
    Type type = x.type();
    return type.is_static() ? ints(type.dims) : op("Shape", {x});
  }
  Value reshape(Value x, const std::vector<int64_t>& dims) {
    return op("Reshape", {x, ints(dims)}, {{"allowzero", 1}});
  }
  Value reshape_like(Value x, Value like) {
    return op("Reshape", {x, shape_of(like)}, {{"allowzero", 1}});
  }
  Value expand_like(Value x, Value like) { return op("Expand", {x, shape_of(like)}); }
  Value zeros_like(Value x) { return expand_like(number(0, x.dtype()), x); }
  Value transpose(Value x, const std::vector<int64_t>& perm) {
    return op("Transpose", {x}, {{"perm", perm}});
  }
  Value sum(Value x, const std::vector<int64_t>& axes, bool keep = true) {
    return op("ReduceSum", {x, ints(axes)},
              {{"keepdims", keep ? 1 : 0}, {"noop_with_empty_axes", 1}});
  }
  // The type, where the rank is known; else it fails and says what needs it.
  Type ranked(Value x, std::string_view who) {
    Type type = failed_.ok() ? x.type() : Type{};
    if (failed_.ok() && !type.ranked) fail(unsupported(cat(who, ": the rank must be known here")));
    return type;
  }
  Type fixed(Value x, std::string_view who) {
    Type type = ranked(x, who);
    if (failed_.ok() && !type.is_static())
      fail(unsupported(cat(who, ": all sizes must be known here; bind the shapes first")));
    return type;
  }

 private:
  EditView edit_;
  Status failed_;
};

}  // namespace tenon
