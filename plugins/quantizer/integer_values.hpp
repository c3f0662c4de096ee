// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values of a model as integers of known meaning, and nodes of standard operators that compute with
// them: ConvInteger, MatMulInteger and int64 arithmetic, no float.
//
// Requantization multiplies by an integer of 31 bits at most and shifts right, with one rounding,
// half up: floor((x q + 2^(s - 1)) / 2^s), q = round(M 2^s) (Jacob et al., CVPR 2018, section 2.2;
// gemmlowp rounds twice). Division by 2^s is ONNX's Div, which truncates: 2^62 is added before, and
// its share taken away behind it.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tenon/sdk/build.hpp"

namespace tenon::quantizer {

// What a value's numbers mean: real = scale * (number - zero).
struct Integers {
  Value value;                // 8 bits, or int64 with zero 0
  std::vector<double> scale;  // one, or one for each index of `axis`
  int64_t axis = 0;
  int64_t zero = 0;
  std::vector<double> most = {0};  // of |number - zero|: one, or one for each scale
  // Of 8-bit values that a pointwise function has followed: what the numbers stand for, by their
  // index, which `value` (int64) is.
  std::vector<double> table = {};

  bool is_stored() const { return value && value.dtype() != TN_I64 && table.empty(); }
  double most_of(size_t i) const { return most.size() == 1 ? most[0] : most[i]; }
  double largest_number() const { return *std::max_element(most.begin(), most.end()); }
  double largest_real() const;
};

struct Stored8 {  // how a QuantizeLinear stores
  double scale = 1;
  int64_t zero = 0;
  uint32_t dtype = TN_U8;

  int64_t low() const { return dtype == TN_U8 ? 0 : -128; }
  int64_t high() const { return dtype == TN_U8 ? 255 : 127; }
  // The number that it stores for this one.
  double stored(double real) const {
    return std::clamp(std::nearbyint(real / scale) + static_cast<double>(zero),
                      static_cast<double>(low()), static_cast<double>(high()));
  }
};

// Of a QuantizeLinear or DequantizeLinear with one constant positive scale and 8 bits.
std::optional<Stored8> storage_of(Node node);

class IntegerNodes {
 public:
  explicit IntegerNodes(EditView edit) : b_(edit) {}
  Builder& builder() { return b_; }
  Status status() { return b_.status(); }

  // As int64 sums with zero 0.
  Integers wide(const Integers& x);
  // The sum of both, in 2^-42 of the largest number that either can be. Each is multiplied by an
  // integer where that is off by 2^-24 of this number at most, else rescaled with one rounding.
  Integers add(const Integers& x, const Integers& y);
  // The same with finite numbers of this shape, rounded to these steps.
  Integers add(const Integers& x,
               const std::vector<double>& numbers,
               const std::vector<int64_t>& dims);
  // The mean along axes whose extents have the product `count`; x has one scale.
  Integers mean(const Integers& x, const std::vector<int64_t>& axes, bool keeps, double count);
  // Between the bounds, where they are finite; in finer steps, where these do not reach a bound.
  Integers clip(const Integers& x, double low, double high);
  // Rounded to 8 bits.
  Value requantize(const Integers& x, const Stored8& to);
  // scaled() within [low, high], 17 bits at most.
  Value rescaled(const Integers& x, double step, int64_t low, int64_t high);
  // exp(-d s) of the distance d to the largest 8-bit number along the axis, in 15 bits, over their
  // sum.
  Integers softmax(const Integers& x, int64_t axis);
  // As floats: int32 behind a DequantizeLinear.
  Value real(const Integers& x, const std::string& name);
  // round(x scale / step) as int64, half up; scale / step counts as 2^17 where it is more, or with
  // numbers of fewer than 42 bits as the larger power that they leave room for.
  Value scaled(const Integers& from, double step);
  // A table over the 256 numbers of an 8-bit value: the index of each number.
  Value index_of(const Integers& x);
  Value gathered(const std::vector<int64_t>& table, Value index);
  // numbers[i] along the axis of a value of this rank; one number: a scalar.
  Value numbers(const std::vector<int64_t>& values, int64_t axis, size_t rank);

 private:
  Value in_units(const Integers& one, double unit);
  Integers finer_for(const Integers& x, double bound);

  Builder b_;
};

}  // namespace tenon::quantizer
