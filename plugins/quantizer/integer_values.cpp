// SPDX-License-Identifier: Apache-2.0
#include "integer_values.hpp"

#include <algorithm>

#include "role.hpp"

namespace tenon::quantizer {
namespace {

constexpr int kMultiplierBits = 31;
constexpr int kSumBits = 42;       // of sums in one scale: a multiplier keeps 18 bits beside them
constexpr int kExactBits = 24;     // a factor may move a sum by 2^-24 of its largest number
constexpr int kFineBits = 32;      // of numbers whose bound lies between two of them
constexpr int kBoundBits = 46;     // of a bound: over all numbers
constexpr int kOffsetBits = 62;    // over the size of every product before it is divided
constexpr double kTableBits = 15;  // of a table's largest number

int bits_of(double most) {
  return most < 1 ? 1 : static_cast<int>(std::ceil(std::log2(most + 1)));
}

// Of numbers up to this one.
double unit_of(double largest) {
  return largest > 0 ? largest / std::exp2(kSumBits) : 1;
}

int64_t rounded(double x) {
  return std::llround(x);
}

}  // namespace

double Integers::largest_real() const {
  double out = 0;
  for (size_t i = 0; i < scale.size(); ++i)
    out = std::max(out, most_of(i) * scale[i]);
  return out;
}

std::optional<Stored8> storage_of(Node node) {
  Value scale = node.input(1), zero = node.input(2);
  if (!scale || !scale.is_constant() || scale.type().elements() != 1) return std::nullopt;
  if (scale.dtype() != TN_F32 || (zero && !zero.is_constant())) return std::nullopt;
  Stored8 out;
  const Tensor step = scale.constant();
  out.scale = static_cast<double>(*step.data<float>());
  if (!std::isfinite(out.scale) || out.scale <= 0) return std::nullopt;
  const Value stored = role_of(node).kind == Kind::kQuantize ? node.output() : node.input(0);
  out.dtype = zero ? zero.dtype() : stored.dtype();
  if (out.dtype != TN_U8 && out.dtype != TN_I8) return std::nullopt;
  if (!zero) return out;
  const Tensor point = zero.constant();
  if (out.dtype == TN_U8)
    out.zero = *point.data<uint8_t>();
  else
    out.zero = *point.data<int8_t>();
  return out;
}

Value IntegerNodes::numbers(const std::vector<int64_t>& values, int64_t axis, size_t rank) {
  std::vector<int64_t> dims;
  if (values.size() > 1) {
    dims.assign(rank - static_cast<size_t>(axis), 1);
    dims[0] = static_cast<int64_t>(values.size());
  }
  return b_.take(b_.edit().constant<int64_t>(TN_I64, dims, values));
}

Integers IntegerNodes::wide(const Integers& x) {
  Integers out = x;
  if (!x.table.empty()) {  // as integers of 15 bits
    double most = 0;
    for (double number : x.table)
      most = std::max(most, std::abs(number));
    const double step = most > 0 ? most / std::exp2(kTableBits) : 1;
    std::vector<int64_t> table;
    for (double number : x.table)
      table.push_back(rounded(number / step));
    out = {gathered(table, x.value), {step}, 0, 0, {most / step}, {}};
    return out;
  }
  if (!x.is_stored()) return out;
  out.value = b_.cast(x.value, TN_I64);
  if (x.zero != 0) out.value = b_.sub(out.value, b_.number(static_cast<double>(x.zero), TN_I64));
  out.zero = 0;
  return out;
}

Value IntegerNodes::in_units(const Integers& one, double unit) {
  std::vector<int64_t> factors;
  double error = 0;
  for (size_t i = 0; i < one.scale.size(); ++i) {
    const double exact = one.most_of(i) > 0 ? one.scale[i] / unit : 0;
    factors.push_back(rounded(exact));
    error = std::max(error, one.most_of(i) * std::abs(exact - std::nearbyint(exact)));
  }
  if (error > std::exp2(kSumBits - kExactBits)) return scaled(one, unit);
  if (!one.value) return {};
  return b_.mul(one.value, numbers(factors, one.axis, one.value.type().rank()));
}

Integers IntegerNodes::add(const Integers& x, const Integers& y) {
  Integers a = wide(x), b = wide(y);
  const double unit = unit_of(std::max(a.largest_real(), b.largest_real()));
  Integers out;
  out.scale = {unit};
  Value left = in_units(a, unit), right = in_units(b, unit);
  out.value = b_.add(left, right);
  out.most = {(a.largest_real() + b.largest_real()) / unit};
  return out;
}

Integers IntegerNodes::add(const Integers& x,
                           const std::vector<double>& summands,
                           const std::vector<int64_t>& dims) {
  Integers a = wide(x);
  double most = 0;
  for (double number : summands)
    most = std::max(most, std::abs(number));
  const double unit = unit_of(std::max(a.largest_real(), most));
  std::vector<int64_t> steps;
  for (double number : summands)
    steps.push_back(rounded(number / unit));
  Value left = in_units(a, unit);
  Value right = b_.take(b_.edit().constant<int64_t>(TN_I64, dims, steps));
  return {b_.add(left, right), {unit}, 0, 0, {(a.largest_real() + most) / unit}, {}};
}

Integers IntegerNodes::mean(const Integers& x,
                            const std::vector<int64_t>& axes,
                            bool keeps,
                            double count) {
  Integers out = wide(x);
  const double most = out.most[0] * count, room = std::exp2(kSumBits);
  if (most > room) {
    const double step = out.scale[0] * most / room;
    out = {scaled(out, step), {step}, 0, 0, {room / count}, {}};
  }
  out.value = b_.sum(out.value, axes, keeps);
  out.scale[0] /= count;
  out.most[0] *= count;
  return out;
}

Integers IntegerNodes::finer_for(const Integers& x, double bound) {
  double error = 0;
  for (double scale : x.scale)
    error = std::max(error, std::abs(bound - scale * std::nearbyint(bound / scale)));
  const int bits = kFineBits - bits_of(x.largest_number());
  if (bits <= 0 || !(error > x.largest_real() / std::exp2(kExactBits))) return x;
  Integers out = x;
  out.value = b_.mul(x.value, b_.number(std::exp2(bits), TN_I64));
  for (double& scale : out.scale)
    scale /= std::exp2(bits);
  for (double& most : out.most)
    most *= std::exp2(bits);
  return out;
}

Integers IntegerNodes::clip(const Integers& x, double low, double high) {
  Integers out = wide(x);
  for (double bound : {low, high})
    if (std::isfinite(bound)) out = finer_for(out, bound);
  auto bound = [&](bool is_low, double real) {
    if (!std::isfinite(real)) return;
    std::vector<int64_t> bounds;
    for (double scale : out.scale)
      bounds.push_back(
          rounded(std::clamp(real / scale, -std::exp2(kBoundBits), std::exp2(kBoundBits))));
    const size_t rank = out.value ? out.value.type().rank() : 0;
    Value ends = numbers(bounds, out.axis, rank);
    out.value = is_low ? b_.op("Max", {out.value, ends}) : b_.op("Min", {out.value, ends});
  };
  bound(true, low);
  bound(false, high);
  return out;
}

Value IntegerNodes::scaled(const Integers& from, double step) {
  std::vector<int64_t> factors, halves, divisors, shares;
  for (size_t i = 0; i < from.scale.size(); ++i) {
    // Every bit that the numbers leave: the product and what is added to it stay below 2^63.
    const int bits = std::min(kMultiplierBits, kOffsetBits - 1 - bits_of(from.most_of(i)));
    const double ratio = std::min(from.scale[i] / step, std::exp2(bits - 1));
    int exponent = 0;
    std::frexp(ratio, &exponent);  // in [2^(exponent - 1), 2^exponent)
    const int shift = std::clamp(bits - exponent, 1, kOffsetBits - 1);
    factors.push_back(rounded(std::ldexp(ratio, shift)));
    halves.push_back((int64_t{1} << (shift - 1)) + (int64_t{1} << kOffsetBits));
    divisors.push_back(int64_t{1} << shift);
    shares.push_back(int64_t{1} << (kOffsetBits - shift));
  }
  if (!from.value) return {};
  auto along = [&](const std::vector<int64_t>& values) {
    return numbers(values, from.axis, from.value.type().rank());
  };
  Value y = b_.add(b_.mul(from.value, along(factors)), along(halves));
  return b_.sub(b_.div(y, along(divisors)), along(shares));
}

Value IntegerNodes::rescaled(const Integers& x, double step, int64_t low, int64_t high) {
  Value y = scaled(wide(x), step);
  y = b_.op("Max", {y, b_.number(static_cast<double>(low), TN_I64)});
  return b_.op("Min", {y, b_.number(static_cast<double>(high), TN_I64)});
}

Value IntegerNodes::requantize(const Integers& x, const Stored8& to) {
  if (!x.table.empty()) {
    std::vector<int64_t> table;
    for (double number : x.table)
      table.push_back(rounded(to.stored(number)));
    return b_.cast(gathered(table, x.value), to.dtype);
  }
  Value y = rescaled(x, to.scale, to.low() - to.zero, to.high() - to.zero);
  if (to.zero != 0) y = b_.add(y, b_.number(static_cast<double>(to.zero), TN_I64));
  return y ? b_.cast(y, to.dtype) : Value{};
}

Integers IntegerNodes::softmax(const Integers& x, int64_t along) {
  std::vector<int64_t> axis{along}, exps;
  for (int d = 0; d < 256; ++d)
    exps.push_back(rounded(std::exp(-d * x.scale[0]) * 32768));
  Value numbers = b_.cast(x.value, TN_I64);
  Value most = b_.op("ReduceMax", {numbers, b_.ints(axis)}, {{"keepdims", 1}});
  Value parts = gathered(exps, b_.sub(most, numbers));
  Value sum = b_.sum(parts, axis);
  Value half = b_.div(sum, b_.number(2, TN_I64));
  Integers out;
  out.value = b_.div(b_.add(b_.mul(parts, b_.number(65536, TN_I64)), half), sum);
  out.scale = {1.0 / 65536};
  out.most = {65536};
  return out;
}

Value IntegerNodes::real(const Integers& x, const std::string& name) {
  constexpr double kMost = 2147483647;
  Integers sums = wide(x);
  if (sums.largest_number() > kMost) {
    const double step = sums.largest_real() / kMost;
    sums.value = rescaled(sums, step, -2147483647, 2147483647);
    sums.scale = {step};
  }
  const std::vector<float> scale(sums.scale.begin(), sums.scale.end());
  std::vector<int64_t> dims;
  std::vector<Attr> attrs;
  if (scale.size() > 1) {
    dims = {static_cast<int64_t>(scale.size())};
    attrs.emplace_back("axis", sums.axis);
  }
  Value step = b_.take(b_.edit().constant<float>(TN_F32, dims, scale, name + "_scale"));
  return b_.op("DequantizeLinear", {b_.cast(sums.value, TN_I32), step}, attrs);
}

Value IntegerNodes::index_of(const Integers& x) {
  const bool is_signed = x.value && x.value.dtype() == TN_I8;
  Value index = b_.cast(x.value, TN_I64);
  return is_signed ? b_.add(index, b_.number(128, TN_I64)) : index;
}

Value IntegerNodes::gathered(const std::vector<int64_t>& table, Value index) {
  return b_.op("Gather", {b_.ints(table), index}, {{"axis", 0}});
}

}  // namespace tenon::quantizer
