// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <cmath>
#include <limits>

#include "numbers.hpp"

namespace tenon::reference {
namespace {

double sign(double a) {
  return std::isnan(a) ? a : double((a > 0) - (a < 0));
}
double python_mod(double a, double b) {
  double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
double low(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
}
double high(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
}
double sigmoid(double a) {
  double e = std::exp(-std::fabs(a));
  return a >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double apply(uint32_t op, double a, double b, double c) {
  switch (op) {
    case TN_EXPR_NEG:
      return -a;
    case TN_EXPR_ABS:
      return std::fabs(a);
    case TN_EXPR_SIGN:
      return sign(a);
    case TN_EXPR_EXP:
      return std::exp(a);
    case TN_EXPR_EXPM1:
      return std::expm1(a);
    case TN_EXPR_LOG:
      return std::log(a);
    case TN_EXPR_LOG1P:
      return std::log1p(a);
    case TN_EXPR_SQRT:
      return std::sqrt(a);
    case TN_EXPR_RSQRT:
      return 1 / std::sqrt(a);
    case TN_EXPR_RECIPROCAL:
      return 1 / a;
    case TN_EXPR_ERF:
      return std::erf(a);
    case TN_EXPR_TANH:
      return std::tanh(a);
    case TN_EXPR_SIGMOID:
      return sigmoid(a);
    case TN_EXPR_SIN:
      return std::sin(a);
    case TN_EXPR_COS:
      return std::cos(a);
    case TN_EXPR_TAN:
      return std::tan(a);
    case TN_EXPR_ASIN:
      return std::asin(a);
    case TN_EXPR_ACOS:
      return std::acos(a);
    case TN_EXPR_ATAN:
      return std::atan(a);
    case TN_EXPR_SINH:
      return std::sinh(a);
    case TN_EXPR_COSH:
      return std::cosh(a);
    case TN_EXPR_ASINH:
      return std::asinh(a);
    case TN_EXPR_ACOSH:
      return std::acosh(a);
    case TN_EXPR_ATANH:
      return std::atanh(a);
    case TN_EXPR_FLOOR:
      return std::floor(a);
    case TN_EXPR_CEIL:
      return std::ceil(a);
    case TN_EXPR_ROUND:
      return std::nearbyint(a);
    case TN_EXPR_TRUNC:
      return std::trunc(a);
    case TN_EXPR_NOT:
      return a == 0;
    case TN_EXPR_ISNAN:
      return std::isnan(a);
    case TN_EXPR_ISINF:
      return std::isinf(a);
    case TN_EXPR_ADD:
      return a + b;
    case TN_EXPR_SUB:
      return a - b;
    case TN_EXPR_MUL:
      return a * b;
    case TN_EXPR_DIV:
      return a / b;
    case TN_EXPR_POW:
      return std::pow(a, b);
    case TN_EXPR_MIN:
      return low(a, b);
    case TN_EXPR_MAX:
      return high(a, b);
    case TN_EXPR_MOD:
      return python_mod(a, b);
    case TN_EXPR_FMOD:
      return std::fmod(a, b);
    case TN_EXPR_ATAN2:
      return std::atan2(a, b);
    case TN_EXPR_EQ:
      return a == b;
    case TN_EXPR_NE:
      return a != b;
    case TN_EXPR_LT:
      return a < b;
    case TN_EXPR_LE:
      return a <= b;
    case TN_EXPR_GT:
      return a > b;
    case TN_EXPR_GE:
      return a >= b;
    case TN_EXPR_AND:
      return a != 0 && b != 0;
    case TN_EXPR_OR:
      return a != 0 || b != 0;
    case TN_EXPR_XOR:
      return (a != 0) != (b != 0);
    case TN_EXPR_SELECT:
      return a != 0 ? b : c;
    default:
      return NAN;
  }
}

// Integers: computed in 64 bits, cut to the type's width and extended again after each operation.
struct Integers {
  bool is_signed;
  uint32_t bits;

  int64_t wrap(uint64_t value) const {
    if (bits >= 64) return static_cast<int64_t>(value);
    uint64_t mask = (uint64_t{1} << bits) - 1;
    value &= mask;
    bool negative = is_signed && (value >> (bits - 1) & 1);
    return static_cast<int64_t>(negative ? value | ~mask : value);
  }
  bool less(int64_t a, int64_t b) const {
    return is_signed ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
  }
  int64_t divide(int64_t a, int64_t b) const {
    if (b == 0) return 0;
    if (!is_signed)
      return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
    return b == -1 ? wrap(-static_cast<uint64_t>(a)) : a / b;
  }
  int64_t remainder(int64_t a, int64_t b, bool sign_of_divisor) const {
    if (b == 0 || (is_signed && b == -1)) return 0;
    if (!is_signed)
      return static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
    int64_t r = a % b;
    return sign_of_divisor && r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  int64_t power(int64_t base, int64_t exponent) const {
    if (is_signed && exponent < 0) {
      if (base == 1) return 1;
      return base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    }
    uint64_t result = 1, factor = static_cast<uint64_t>(base);
    for (auto left = static_cast<uint64_t>(exponent); left; left >>= 1, factor *= factor) {
      if (left & 1) result *= factor;
    }
    return wrap(result);
  }
  int64_t shift(int64_t a, int64_t count, bool to_left) const {
    bool out = count < 0 || static_cast<uint64_t>(count) >= bits;
    if (to_left) return out ? 0 : wrap(static_cast<uint64_t>(a) << count);
    if (is_signed) return out ? (a < 0 ? -1 : 0) : a >> count;
    return out ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> count);
  }
  int64_t apply(uint32_t op, int64_t a, int64_t b, int64_t c) const;
};

int64_t Integers::apply(uint32_t op, int64_t a, int64_t b, int64_t c) const {
  auto u = [](int64_t value) { return static_cast<uint64_t>(value); };
  switch (op) {
    case TN_EXPR_NEG:
      return wrap(-u(a));
    case TN_EXPR_ABS:
      return is_signed && a < 0 ? wrap(-u(a)) : a;
    case TN_EXPR_SIGN:
      return is_signed ? (a > 0) - (a < 0) : a != 0;
    case TN_EXPR_FLOOR:
    case TN_EXPR_CEIL:
    case TN_EXPR_ROUND:
    case TN_EXPR_TRUNC:
      return a;
    case TN_EXPR_NOT:
      return a == 0;
    case TN_EXPR_ISNAN:
    case TN_EXPR_ISINF:
      return 0;
    case TN_EXPR_BITNOT:
      return wrap(~u(a));
    case TN_EXPR_ADD:
      return wrap(u(a) + u(b));
    case TN_EXPR_SUB:
      return wrap(u(a) - u(b));
    case TN_EXPR_MUL:
      return wrap(u(a) * u(b));
    case TN_EXPR_DIV:
      return divide(a, b);
    case TN_EXPR_POW:
      return power(a, b);
    case TN_EXPR_MIN:
      return less(b, a) ? b : a;
    case TN_EXPR_MAX:
      return less(a, b) ? b : a;
    case TN_EXPR_MOD:
      return remainder(a, b, true);
    case TN_EXPR_FMOD:
      return remainder(a, b, false);
    case TN_EXPR_EQ:
      return a == b;
    case TN_EXPR_NE:
      return a != b;
    case TN_EXPR_LT:
      return less(a, b);
    case TN_EXPR_LE:
      return !less(b, a);
    case TN_EXPR_GT:
      return less(b, a);
    case TN_EXPR_GE:
      return !less(a, b);
    case TN_EXPR_AND:
      return a != 0 && b != 0;
    case TN_EXPR_OR:
      return a != 0 || b != 0;
    case TN_EXPR_XOR:
      return (a != 0) != (b != 0);
    case TN_EXPR_BITAND:
      return a & b;
    case TN_EXPR_BITOR:
      return a | b;
    case TN_EXPR_BITXOR:
      return a ^ b;
    case TN_EXPR_SHL:
      return shift(a, b, true);
    case TN_EXPR_SHR:
      return shift(a, b, false);
    case TN_EXPR_SELECT:
      return a != 0 ? b : c;
    default:
      return 0;
  }
}

template <class Number, class Apply>
Number evaluate(const tn_expr_program& program,
                const Number* inputs,
                std::vector<Number>& values,
                const Apply& apply_one) {
  values.resize(program.count);
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& node = program.nodes[i];
    if (node.op == TN_EXPR_CONST) {
      values[i] = static_cast<Number>(node.imm);
    } else if (node.op == TN_EXPR_INPUT) {
      values[i] = inputs[node.a];
    } else {
      values[i] = apply_one(node.op, values[node.a], values[node.b], values[node.c]);
    }
  }
  return values.back();
}

// Element strides of an input in the result's index space: 0 where it broadcasts.
std::vector<int64_t> broadcast_strides(const DLTensor& in, std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  int64_t stride = 1;
  for (int32_t d = in.ndim; d-- > 0;) {
    size_t at = shape.size() - static_cast<size_t>(in.ndim - d);
    if (in.shape[d] != 1) strides[at] = stride;
    stride *= in.shape[d];
  }
  return strides;
}

template <class Number, class Apply>
Status run(tn_ctx* ctx,
           const tn_expr_program& program,
           std::span<const DLTensor* const> in,
           const DLTensor& out,
           const Apply& apply_one) {
  std::span<const int64_t> shape = shape_of(out);
  std::vector<Load<Number>> loads(in.size(), nullptr);
  std::vector<std::vector<int64_t>> strides(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) continue;
    loads[i] = loader<Number>(dtype_of(*in[i]));
    if (!loads[i]) return unsupported(cat("element type ", dtype_name(dtype_of(*in[i]))));
    strides[i] = broadcast_strides(*in[i], shape);
  }
  Store<Number> store = storer<Number>(dtype_of(out));
  if (!store) return unsupported(cat("element type ", dtype_name(dtype_of(out))));
  auto body = [&](uint64_t begin, uint64_t end) {
    std::vector<Number> values, inputs(in.size());
    for (auto flat = static_cast<int64_t>(begin); flat < static_cast<int64_t>(end); ++flat) {
      for (size_t i = 0; i < in.size(); ++i) {
        if (!in[i]) continue;
        int64_t at = 0, left = flat;
        for (size_t d = shape.size(); d-- > 0; left /= shape[d])
          at += left % shape[d] * strides[i][d];
        inputs[i] = loads[i](data_of<const char>(*in[i]), at);
      }
      store(data_of<char>(out), flat, evaluate(program, inputs.data(), values, apply_one));
    }
  };
  parallel_for(ctx, static_cast<uint64_t>(element_count(shape)), 1024, body);
  return {};
}

}  // namespace

Status run_program(tn_ctx* ctx,
                   const tn_expr_program& program,
                   std::span<const DLTensor* const> in,
                   const DLTensor& out) {
  if (program.domain == TN_EXPR_DOMAIN_FLOAT) return run<double>(ctx, program, in, out, apply);
  Integers integers{program.domain == TN_EXPR_DOMAIN_INT, program.bits};
  return run<int64_t>(ctx, program, in, out, [&](uint32_t op, int64_t a, int64_t b, int64_t c) {
    return integers.apply(op, a, b, c);
  });
}

Result<std::vector<int64_t>> broadcast_shape(std::span<const DLTensor* const> in) {
  std::vector<int64_t> shape;
  for (const DLTensor* tensor : in) {
    if (!tensor) continue;
    std::span<const int64_t> dims = shape_of(*tensor);
    if (dims.size() > shape.size()) shape.insert(shape.begin(), dims.size() - shape.size(), 1);
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t& joined = shape[shape.size() - dims.size() + i];
      if (joined == 1) joined = dims[i];
      if (dims[i] != 1 && dims[i] != joined) {
        return invalid(cat("shapes do not broadcast: dimension ", dims[i], " meets ", joined));
      }
    }
  }
  return shape;
}

}  // namespace tenon::reference
