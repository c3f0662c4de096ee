// SPDX-License-Identifier: Apache-2.0
#pragma once
// Straight-line code over vectors of f32, before registers are assigned: what intrinsics are
// written in (intrinsics.cpp), and what assembler.h turns into instructions.
//
//   VectorCode c(Isa::kAvx2);
//   Value x = c.load(0);
//   c.store(0, c.fma(x, x, c.number(1.0F)));

#include <array>
#include <cstdint>
#include <vector>

namespace tenon::onednn::kernels::code {

// The instruction sets that code is made for. kAvx2 is with FMA and F16C; kAvx512 is F, BW, DQ and
// VL, and BMI2.
enum class Isa : uint8_t { kAvx2, kAvx512 };
constexpr int kMostLanes = 16;
constexpr int lanes_of(Isa isa) {
  return isa == Isa::kAvx512 ? kMostLanes : kMostLanes / 2;
}
// What one register holds of it can be looked up.
using Table = std::array<float, kMostLanes>;

struct Value {
  enum class Kind : uint8_t { kNone, kTemporary, kNumber, kTable };
  Kind kind = Kind::kNone;
  uint16_t index = 0;  // of the temporary, of the number or table in its pool
  bool operator==(const Value&) const = default;
  bool is_temporary() const { return kind == Kind::kTemporary; }
};

enum class Op : uint8_t {
  kLoad,       // from source `imm`: its bits, extended with zeros
  kStore,      // a's low bits to target `imm`
  kStoreBf16,  // a rounded to bf16 to target `imm`, by the instruction of AVX512_BF16; no other has
               // it
  kMulAdd,     // a * b + c
  kNegMulAdd,
  kTernary,  // bit by bit: the truth table `imm` over a, b, c; AVX-512 only
  kBlend,    // a compared with b as `imm` says ? c : d
  kRare,     // a > b ? the function `imm` of d, called : c
  // What is one instruction of two operands or one (then b), or is written as one: rows in
  // encoding.cpp and the files of each instruction set.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,  // the second operand where either is NaN
  kMax,
  kAnd,
  kOr,
  kXor,
  kSmaller,  // |a| or |b|, whichever is less, with a's sign; b where a is NaN; AVX-512 only
  kScale,    // a * 2^floor(b); AVX-512 only
  kLookUp,   // b[a's low bits], b a table: four bits of 16 lanes, three of 8
  kAddBits,
  kSubBits,
  kSqrt,
  kRound,     // to a whole number; `imm` is the direction
  kExponent,  // floor(log2|b|); AVX-512 only
  kMantissa,  // in [3/4, 3/2); NaN for what is negative; AVX-512 only
  kToWhole,   // f32 to int32
  kFromWhole,
  kToHalf,  // f32 to the bits of f16 and back
  kFromHalf,
  kShiftLeft,   // by `imm`
  kShiftRight,  // unsigned
  kShiftSigned,
};

struct Instruction {
  Op op;
  uint8_t imm = 0;
  Value to = {};
  std::array<Value, 4> from = {};
};

// How VCMPPS names what it asks: ordered and quiet, but for `!=`.
enum class Compare : uint8_t {
  kEq = 0,
  kLt = 17,
  kLe = 18,
  kUnordered = 3,
  kNe = 4,
  kGe = 29,
  kGt = 30
};
// What is called where generated code does not reach (rare.h).
enum class Rare : uint8_t { kSin, kCos, kTan };
enum class Direction : uint8_t { kEven = 8, kDown = 9, kUp = 10, kZero = 11 };

class VectorCode {
 public:
  explicit VectorCode(Isa isa) : isa_(isa) {}
  Isa isa() const { return isa_; }
  int lanes() const { return lanes_of(isa_); }

  Value number(float x);
  Value bits(uint32_t x);
  Value table(const Table& t);
  // Of the constants: not a NaN.
  bool is_real_number(Value a) const;

  Value load(uint8_t source) { return emit({Op::kLoad, source}); }
  void store(uint8_t target, Value a);
  void store_bf16(uint8_t target, Value a);

  Value add(Value a, Value b) { return commuting(Op::kAdd, a, b); }
  Value sub(Value a, Value b) { return emit({Op::kSub, 0, {}, {a, b}}); }
  Value mul(Value a, Value b) { return commuting(Op::kMul, a, b); }
  Value div(Value a, Value b) { return emit({Op::kDiv, 0, {}, {a, b}}); }
  Value min(Value a, Value b) { return emit({Op::kMin, 0, {}, {a, b}}); }
  Value max(Value a, Value b) { return emit({Op::kMax, 0, {}, {a, b}}); }
  Value fma(Value a, Value b, Value c) { return emit({Op::kMulAdd, 0, {}, {a, b, c}}); }
  Value fnma(Value a, Value b, Value c) { return emit({Op::kNegMulAdd, 0, {}, {a, b, c}}); }
  Value sqrt(Value a) { return emit({Op::kSqrt, 0, {}, {Value{}, a}}); }
  Value round(Value a, Direction direction) {
    return emit({Op::kRound, static_cast<uint8_t>(direction), {}, {Value{}, a}});
  }
  Value smaller_magnitude(Value a, Value b) { return emit({Op::kSmaller, 0, {}, {a, b}}); }
  Value scale(Value a, Value power) { return emit({Op::kScale, 0, {}, {a, power}}); }
  Value exponent(Value a) { return emit({Op::kExponent, 0, {}, {Value{}, a}}); }
  Value mantissa(Value a) { return emit({Op::kMantissa, 0, {}, {Value{}, a}}); }
  Value look_up(Value index, Value table) { return emit({Op::kLookUp, 0, {}, {index, table}}); }

  Value bit_and(Value a, Value b) { return commuting(Op::kAnd, a, b); }
  Value bit_or(Value a, Value b) { return commuting(Op::kOr, a, b); }
  Value bit_xor(Value a, Value b) { return commuting(Op::kXor, a, b); }
  // a | (b & c), in one instruction where there is one.
  Value or_and(Value a, Value b, Value c) {
    if (isa_ == Isa::kAvx2) return bit_or(a, bit_and(b, c));
    return emit({Op::kTernary, 0xf8, {}, {a, b, c}});
  }
  Value add_bits(Value a, Value b) { return commuting(Op::kAddBits, a, b); }
  Value sub_bits(Value a, Value b) { return emit({Op::kSubBits, 0, {}, {a, b}}); }
  Value shift_left(Value a, uint8_t n) { return emit({Op::kShiftLeft, n, {}, {Value{}, a}}); }
  Value shift_right(Value a, uint8_t n) { return emit({Op::kShiftRight, n, {}, {Value{}, a}}); }
  Value shift_signed(Value a, uint8_t n) { return emit({Op::kShiftSigned, n, {}, {Value{}, a}}); }
  Value from_whole(Value a) { return emit({Op::kFromWhole, 0, {}, {Value{}, a}}); }
  Value to_half(Value a) { return emit({Op::kToHalf, 0, {}, {a, a}}); }
  Value from_half(Value a) { return emit({Op::kFromHalf, 0, {}, {a, a}}); }
  Value to_whole(Value a) { return emit({Op::kToWhole, 0, {}, {Value{}, a}}); }

  // a `compare` b ? yes : no
  Value blend(Compare compare, Value a, Value b, Value yes, Value no) {
    return emit({Op::kBlend, static_cast<uint8_t>(compare), {}, {a, b, yes, no}});
  }
  // magnitude > limit ? the function of x : value. Costs nothing but the comparison where no lane
  // of a vector is beyond the limit.
  Value rare(Value magnitude, Value limit, Value value, Rare function, Value x) {
    return emit({Op::kRare, static_cast<uint8_t>(function), {}, {magnitude, limit, value, x}});
  }
  Value absolute(Value a) { return bit_and(a, bits(0x7fffffff)); }
  Value negate(Value a) { return bit_xor(a, bits(0x80000000)); }

  const std::vector<Instruction>& instructions() const { return instructions_; }
  const std::vector<uint32_t>& numbers() const { return numbers_; }
  const std::vector<Table>& tables() const { return tables_; }
  uint16_t n_temporaries() const { return n_temporaries_; }

 private:
  Value emit(Instruction instruction);
  // The constant second, where it may be read from memory.
  Value commuting(Op op, Value a, Value b) {
    return a.is_temporary() ? emit({op, 0, {}, {a, b}}) : emit({op, 0, {}, {b, a}});
  }

  Isa isa_;
  std::vector<Instruction> instructions_;
  std::vector<uint32_t> numbers_;
  std::vector<Table> tables_;
  uint16_t n_temporaries_ = 0;
};

}  // namespace tenon::onednn::kernels::code
