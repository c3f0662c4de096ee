// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values of a model as integers of known meaning, and nodes of standard operators that compute with
// them: ConvInteger, MatMulInteger and int64 arithmetic, no float.
//
// Requantization multiplies by an integer of 31 bits at most and shifts right, with one rounding,
// half up: floor((x q + 2^(s - 1)) / 2^s), q = round(M 2^s) (Jacob et al., CVPR 2018, section 2.2;
// gemmlowp rounds twice). Division by 2^s is ONNX's Div, which truncates: 2^62 is added before, and
// its share taken away behind it.

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
  double most = 0;  // of |number - zero|
  // Of 8-bit values that a pointwise function has followed: what the numbers stand for, by their
  // index, which `value` (int64) is.
  std::vector<double> table = {};

  bool is_stored() const { return value && value.dtype() != TN_I64 && table.empty(); }
  double scale_of(size_t i) const { return scale.size() == 1 ? scale[0] : scale[i]; }
};

struct Stored8 {  // how a QuantizeLinear stores
  double scale = 1;
  int64_t zero = 0;
  uint32_t dtype = TN_U8;

  int64_t low() const { return dtype == TN_U8 ? 0 : -128; }
  int64_t high() const { return dtype == TN_U8 ? 255 : 127; }
};

// Of a QuantizeLinear or DequantizeLinear with one constant scale and 8 bits.
std::optional<Stored8> storage_of(Node node);

class IntegerNodes {
 public:
  explicit IntegerNodes(EditView edit) : b_(edit) {}
  Builder& builder() { return b_; }
  Status status() { return b_.status(); }

  // As int64 sums with zero 0.
  Integers wide(const Integers& x);
  // Known numbers of this shape, in 20 bits; no value where there are none.
  Integers constant(const std::vector<double>& numbers, const std::vector<int64_t>& dims);
  // The sum of both, in one scale: 2^20 steps of the larger one where 46 bits hold that.
  Integers add(const Integers& x, const Integers& y);
  // Between the bounds, where they are finite.
  Integers clip(const Integers& x, double low, double high);
  // Rounded to 8 bits.
  Value requantize(const Integers& x, const Stored8& to);
  // round(x scale / step) as int64, within [low, high].
  Value rescaled(const Integers& x, double step, int64_t low, int64_t high);
  // exp(-d s) of the distance d to the largest 8-bit number along the axis, in 15 bits, over their
  // sum.
  Integers softmax(const Integers& x, int64_t axis);
  // As floats: int32 behind a DequantizeLinear.
  Value real(const Integers& x, const std::string& name);
  // A table over the 256 numbers of an 8-bit value: the index of each number.
  Value index_of(const Integers& x);
  Value gathered(const std::vector<int64_t>& table, Value index);
  // numbers[i] along the axis of a value of this rank; one number: a scalar.
  Value numbers(const std::vector<int64_t>& values, int64_t axis, size_t rank);

 private:
  Builder b_;
};

}  // namespace tenon::quantizer
