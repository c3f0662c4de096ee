// SPDX-License-Identifier: Apache-2.0
#include "conversions.h"

namespace tenon::onednn::kernels::code {

namespace {

// To nearest even. The bf16 instructions of AVX-512 flush denormals, so they are not used.
Value to_bf16(VectorCode& c, Value x) {
  Value high = c.shift_right(x, 16);
  Value rounded = c.add_bits(c.add_bits(x, c.bits(0x7fff)), c.bit_and(high, c.bits(1)));
  Value quiet = c.bit_or(high, c.bits(0x40));
  return c.blend(Compare::kUnordered, x, x, quiet, c.shift_right(rounded, 16));
}

Value sign_extended(VectorCode& c, Value byte) {
  return c.shift_signed(c.shift_left(byte, 24), 24);
}

Value dequantized(VectorCode& c, Value whole, Quant quant) {
  Value real = c.from_whole(whole);
  if (quant.scale == 0.0F) return real;
  if (quant.zero_point != 0) real = c.sub(real, c.number(static_cast<float>(quant.zero_point)));
  return c.mul(real, c.number(quant.scale));
}

// x / by as division gives it, from a product with the reciprocal and its remainder, which takes
// less time (Markstein 1990, "Computation of elementary functions on the IBM RISC System/6000").
// Neither may be so large or small that a remainder is no number or loses digits.
Value quotient(VectorCode& c, Value x, float by) {
  Value divisor = c.number(by);
  Value inverse = c.number(1.0F / by);
  Value near = c.mul(x, inverse);
  return c.fma(c.fnma(near, divisor, x), inverse, near);
}

// Saturates, and NaN becomes the lowest value.
Value to_byte(VectorCode& c, Value real, Quant quant, float low, float high) {
  auto bounded = [&](Value x, float least, float most) {
    return c.min(c.max(x, c.number(least)), c.number(most));
  };
  if (quant.scale == 0.0F) return c.to_whole(bounded(c.round(real, Direction::kZero), low, high));
  const auto zero = static_cast<float>(quant.zero_point);
  const bool is_usual = quant.scale >= 0x1p-60F && quant.scale <= 0x1p60F;
  if (!is_usual) {
    Value steps = c.round(c.div(real, c.number(quant.scale)), Direction::kEven);
    return c.to_whole(bounded(c.add(steps, c.number(zero)), low, high));
  }
  // Bounds are codes, so it is the same whether they come before rounding or after it.
  real = bounded(real, (low - zero) * quant.scale, (high - zero) * quant.scale);
  Value steps = c.to_whole(quotient(c, real, quant.scale));
  if (quant.zero_point == 0) return steps;
  return c.add_bits(steps, c.bits(static_cast<uint32_t>(quant.zero_point)));
}

}  // namespace

bool has_conversion(ElementType type) {
  return type <= ElementType::kS8 || type == ElementType::kBool;
}

Value to_real(VectorCode& c, Value bits, ElementType type, Quant quant) {
  switch (type) {
    case ElementType::kBf16:
      return c.shift_left(bits, 16);
    case ElementType::kF16:
      return c.from_half(bits);
    case ElementType::kU8:
      return dequantized(c, bits, quant);
    case ElementType::kS8:
      return dequantized(c, sign_extended(c, bits), quant);
    case ElementType::kBool:
      return c.blend(Compare::kNe, c.from_whole(bits), c.number(0.0F), c.number(1.0F),
                     c.number(0.0F));
    default:
      return bits;
  }
}

Value from_real(VectorCode& c, Value real, ElementType type, Quant quant) {
  switch (type) {
    case ElementType::kBf16:
      return to_bf16(c, real);
    case ElementType::kF16:
      return c.to_half(real);
    case ElementType::kU8:
      return to_byte(c, real, quant, 0.0F, 255.0F);
    case ElementType::kS8:
      return to_byte(c, real, quant, -128.0F, 127.0F);
    case ElementType::kBool:
      return c.blend(Compare::kNe, real, c.number(0.0F), c.bits(1), c.bits(0));
    default:
      return real;
  }
}

}  // namespace tenon::onednn::kernels::code
