// SPDX-License-Identifier: Apache-2.0
#pragma once
// States in 8 bits (Dettmers et al. 2022, "8-bit optimizers via block-wise quantization", sections
// 2.1 and 2.2; the map is bitsandbytes' create_dynamic_map): blocks of 256 numbers, each by the
// largest magnitude of its block, as the nearest of 256 values between -1 and 1, but that what is
// not zero stays so. Seven decades have values, twice as many in each next one: 1, 2, 4 ... 64
// middles of even cells (twice as many where there are no signs), besides 0 and 1. Nothing but
// ordinary nodes: any backend runs them.

#include <cmath>
#include <string>
#include <vector>

#include "moments.hpp"

namespace tenon::trainer {

class Blocks {
 public:
  static constexpr int64_t kSize = 256;    // numbers to a scale
  static constexpr int64_t kLeast = 4096;  // tensors of fewer stay as they are
  static constexpr int kDecades = 7;

  // As Moments::Keep.
  static Result<Moments::Kept> keep(Builder& b,
                                    const std::string& name,
                                    const Type& type,
                                    bool has_signs) {
    if (type.elements() < kLeast) return Moments::as_it_is(b, name, type, has_signs);
    Blocks of{b, has_signs, type.elements(), (type.elements() + kSize - 1) / kSize};
    TN_TRY(codes, Slot::open(b.edit(), name, Type(TN_U8, {of.n_blocks_, kSize})));
    TN_TRY(scales, Slot::open(b.edit(), cat(name, "/absmax"), Type(TN_F32, {of.n_blocks_, 1})));
    Value before = of.decoded(codes.before, scales.before, type);
    auto close = [of, codes, scales](Value after) -> Status {
      auto [next, largest] = of.encoded(after);
      TN_CHECK(of.b_.status());
      TN_CHECK(codes.close(of.b_.edit(), next));
      return scales.close(of.b_.edit(), largest);
    };
    return Moments::Kept{before, close};
  }

  // The values of magnitudes from 0 to 1, in order: 129 where there are signs, else 256.
  static std::vector<float> magnitudes(bool has_signs) {
    std::vector<float> out{0};
    for (int i = 0; i < kDecades; ++i)
      for (int64_t n = cells(has_signs, i), k = 0; k < n; ++k)
        out.push_back(static_cast<float>(
            (0.1 + 0.9 * (static_cast<double>(k) + 0.5) / static_cast<double>(n)) *
            std::pow(10.0, i - kDecades + 1)));
    out.push_back(1);
    return out;
  }
  // What a code stands for. With signs: no -1, and 0 is 127.
  static std::vector<float> values(bool has_signs) {
    std::vector<float> positive = magnitudes(has_signs);
    if (!has_signs) return positive;
    std::vector<float> out;
    for (size_t i = positive.size() - 2; i > 0; --i)
      out.push_back(-positive[i]);
    out.insert(out.end(), positive.begin(), positive.end());
    return out;
  }

 private:
  Blocks(Builder& b, bool has_signs, int64_t n, int64_t n_blocks)
      : b_(b), has_signs_(has_signs), n_(n), n_blocks_(n_blocks) {}

  static int64_t cells(bool has_signs, int decade) { return int64_t{has_signs ? 1 : 2} << decade; }
  Value table(const std::vector<float>& numbers) const {
    return b_.take(
        b_.edit().constant<float>(TN_F32, {static_cast<int64_t>(numbers.size())}, numbers));
  }

  Value decoded(Value codes, Value scales, const Type& type) const {
    Value looked_up = b_.op("Gather", {table(values(has_signs_)), b_.cast(codes, TN_I64)});
    Value flat = b_.reshape(b_.mul(looked_up, scales), {n_blocks_ * kSize});
    if (n_blocks_ * kSize != n_) flat = b_.op("Slice", {flat, b_.ints({0}), b_.ints({n_})});
    return b_.cast(b_.reshape(flat, type.dims), type.dtype);
  }

  // Codes [n_blocks, 256] and the largest magnitudes [n_blocks, 1].
  std::pair<Value, Value> encoded(Value after) const {
    Value flat = b_.reshape(b_.cast(after, TN_F32), {n_});
    if (n_blocks_ * kSize != n_)
      flat = b_.op("Pad", {flat, b_.ints({0, n_blocks_ * kSize - n_}), number(0)});
    Value x = b_.reshape(flat, {n_blocks_, kSize}), size = b_.op("Abs", {x});
    Value largest = b_.op("ReduceMax", {size, b_.ints({1})});
    Value divisor = b_.op("Where", {b_.op("Greater", {largest, number(0)}), largest, number(1)});
    // A step that overflowed is not taken, but it is computed: no place follows from a NaN.
    Value share = b_.div(size, divisor);
    Value nearest =
        nearest_of(b_.op("Where", {b_.op("LessOrEqual", {share, number(1)}), share, number(0)}));
    if (!has_signs_) return {b_.cast(positive(nearest, x), TN_U8), largest};
    // A number keeps its sign: what is negative is at least the smallest negative value.
    Value is_negative = b_.op("Less", {x, number(0)});
    Value below = b_.op("Clip", {nearest, number(1), number(127)});
    Value code =
        b_.op("Where", {is_negative, b_.sub(number(127), below), b_.add(nearest, number(127))});
    return {b_.cast(code, TN_U8), largest};
  }

  // What is above zero stays so. A second moment of zero beside a first one that is not would
  // divide by epsilon alone (Li et al. 2023, "Memory efficient optimizers with 4-bit states",
  // section 4.1).
  Value positive(Value nearest, Value x) const {
    Value least = b_.cast(b_.op("Greater", {x, number(0)}), TN_F32);
    return b_.op("Max", {nearest, least});
  }

  // Places among the magnitudes, as floats: the cell that y is in, or one beside it.
  Value nearest_of(Value y) const {
    std::vector<float> known = magnitudes(has_signs_), slope, offset, begin, last;
    int64_t place = 1;
    for (int i = 0; i < kDecades; ++i) {
      auto n = static_cast<double>(cells(has_signs_, i));
      slope.push_back(static_cast<float>(n * std::pow(10.0, kDecades - 1 - i) / 0.9));
      offset.push_back(static_cast<float>(n / 9));
      begin.push_back(static_cast<float>(place));
      place += cells(has_signs_, i);
      last.push_back(static_cast<float>(place - 1));
    }
    Value decade;
    for (int i = 1; i < kDecades; ++i) {
      Value is_above = b_.cast(b_.op("Greater", {y, number(std::pow(10.0, i - kDecades))}), TN_F32);
      decade = decade ? b_.add(decade, is_above) : is_above;
    }
    Value i = b_.cast(decade, TN_I64);
    auto of_decade = [&](const std::vector<float>& row) {
      return b_.op("Gather", {table(row), i});
    };
    Value first = of_decade(begin);
    Value cell = b_.op("Floor", {b_.sub(b_.mul(y, of_decade(slope)), of_decade(offset))});
    Value guess = b_.op("Min", {b_.op("Max", {b_.add(first, cell), first}), of_decade(last)});
    Value numbers = table(known);
    Value best, distance;
    for (double by : {-1.0, 0.0, 1.0}) {
      Value at = b_.add(guess, number(by));  // there are values on both sides of each cell
      Value off = b_.op("Abs", {b_.sub(b_.op("Gather", {numbers, b_.cast(at, TN_I64)}), y)});
      Value is_nearer = best ? b_.op("Less", {off, distance}) : Value{};
      best = best ? b_.op("Where", {is_nearer, at, best}) : at;
      distance = distance ? b_.op("Min", {off, distance}) : off;
    }
    return best;
  }
  Value number(double x) const { return b_.number(x, TN_F32); }

  Builder& b_;
  bool has_signs_;
  int64_t n_, n_blocks_;
};

}  // namespace tenon::trainer
