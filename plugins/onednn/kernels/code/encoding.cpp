// SPDX-License-Identifier: Apache-2.0
// Each instruction of vector code as AVX-512. Where one overwrites an operand, that is one which is
// not needed any more, or a copy.

#include "assembler.h"

namespace tenon::onednn::kernels::code {

namespace {

using Xbyak::Operand;
using Xbyak::Ymm;
using Xbyak::Zmm;

struct Row {
  Op op;
  void (*emit)(Xbyak::CodeGenerator& g, const Zmm& d, const Zmm& a, const Operand& b, uint8_t imm);
};
#define TENON_ROW(op, instruction)                                                             \
  Row {                                                                                        \
    op, [](Xbyak::CodeGenerator& g, const Zmm& d, [[maybe_unused]] const Zmm& a,               \
           [[maybe_unused]] const Operand& b, [[maybe_unused]] uint8_t imm) { g.instruction; } \
  }
constexpr uint8_t kLeastMagnitude = 0b0110;  // of VRANGEPS
constexpr uint8_t kThreeQuarters = 0b1011;   // of VGETMANTPS: [3/4, 3/2), NaN for negatives
const Row kRows[] = {
    TENON_ROW(Op::kAdd, vaddps(d, a, b)),
    TENON_ROW(Op::kSub, vsubps(d, a, b)),
    TENON_ROW(Op::kMul, vmulps(d, a, b)),
    TENON_ROW(Op::kDiv, vdivps(d, a, b)),
    TENON_ROW(Op::kMin, vminps(d, a, b)),
    TENON_ROW(Op::kMax, vmaxps(d, a, b)),
    TENON_ROW(Op::kAnd, vpandd(d, a, b)),
    TENON_ROW(Op::kOr, vpord(d, a, b)),
    TENON_ROW(Op::kXor, vpxord(d, a, b)),
    TENON_ROW(Op::kSmaller, vrangeps(d, a, b, kLeastMagnitude)),
    TENON_ROW(Op::kScale, vscalefps(d, a, b)),
    TENON_ROW(Op::kLookUp, vpermps(d, a, b)),
    TENON_ROW(Op::kAddBits, vpaddd(d, a, b)),
    TENON_ROW(Op::kSubBits, vpsubd(d, a, b)),
    TENON_ROW(Op::kSqrt, vsqrtps(d, b)),
    TENON_ROW(Op::kRound, vrndscaleps(d, b, imm)),
    TENON_ROW(Op::kExponent, vgetexpps(d, b)),
    TENON_ROW(Op::kMantissa, vgetmantps(d, b, kThreeQuarters)),
    TENON_ROW(Op::kToWhole, vcvtps2dq(d, b)),
    TENON_ROW(Op::kFromWhole, vcvtdq2ps(d, b)),
    TENON_ROW(Op::kToHalf, vcvtps2ph(Ymm(d.getIdx()), a, 0); g.vpmovzxwd(d, Ymm(d.getIdx()))),
    TENON_ROW(Op::kFromHalf, vpmovdw(Ymm(d.getIdx()), a); g.vcvtph2ps(d, Ymm(d.getIdx()))),
    TENON_ROW(Op::kShiftLeft, vpslld(d, b, imm)),
    TENON_ROW(Op::kShiftRight, vpsrld(d, b, imm)),
    TENON_ROW(Op::kShiftSigned, vpsrad(d, b, imm)),
};
#undef TENON_ROW

const Row* row_of(Op op) {
  for (const Row& row : kRows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

}  // namespace

template <class F>
void Assembler::with_operand(const Source& source, int u, const F& f) const {
  if (source.first >= 0)
    f(source.zmm(u));
  else
    f(memory(source.value, u));
}

void Assembler::instruction(const Instruction& i) {
  if (i.op == Op::kLoad) return load(i);
  if (i.op == Op::kStore) return store(i);
  if (i.op == Op::kStoreBf16) return store_bf16(i);
  if (i.op == Op::kMulAdd || i.op == Op::kNegMulAdd) return multiply_add(i);
  if (i.op == Op::kTernary) return ternary(i);
  if (i.op == Op::kBlend) return blend(i);
  two_operands(i);
}

void Assembler::two_operands(const Instruction& i) {
  const Source a = in_register(i.from[0]);
  const Source b = any(i.from[1]);
  release(i);
  const int d = take();
  const Row* row = row_of(i.op);
  for (int u = 0; u < width_; ++u) {
    with_operand(b, u, [&](const Operand& operand) {
      row->emit(*this, lane(d, u), a.zmm(u), operand, i.imm);
    });
  }
  define(i.to, d);
}

void Assembler::multiply_add(const Instruction& i) {
  constexpr size_t kOrder[] = {2, 0, 1};
  size_t over = 3;  // the operand that is overwritten
  for (size_t k : kOrder) {
    if (over == 3 && dies(i.from[k]) && any(i.from[k]).first >= 0) over = k;
  }
  const bool is_last_use = over != 3;
  for (size_t k : kOrder) {
    if (over == 3 && any(i.from[k]).first < 0) over = k;
  }
  if (over == 3) over = 2;
  // d = x * y + d, or d = d * x + y where a factor is overwritten.
  Value first = i.from[over == 0 ? 1 : 0];
  Value second = i.from[over == 2 ? 1 : 2];
  const bool both_memory = any(first).first < 0 && any(second).first < 0;
  Source x = both_memory ? in_register(first) : any(first);
  Source y = any(second);
  int d = is_last_use ? places_[i.from[over].index].bundle : take();
  if (!is_last_use) copy_to(d, any(i.from[over]));
  release(i);
  const bool negates = i.op == Op::kNegMulAdd;
  for (int u = 0; u < width_; ++u) {
    const Zmm to = lane(d, u);
    const bool x_is_memory = x.first < 0;
    with_operand(x_is_memory ? x : y, u, [&](const Operand& last) {
      const Zmm other = x_is_memory ? y.zmm(u) : x.zmm(u);
      if (over == 2) {
        negates ? vfnmadd231ps(to, other, last) : vfmadd231ps(to, other, last);
      } else if (x_is_memory) {
        negates ? vfnmadd132ps(to, other, last) : vfmadd132ps(to, other, last);
      } else {
        negates ? vfnmadd213ps(to, other, last) : vfmadd213ps(to, other, last);
      }
    });
  }
  define(i.to, d);
}

void Assembler::ternary(const Instruction& i) {
  const Source b = in_register(i.from[1]);
  const Source c = any(i.from[2]);
  const Source a = any(i.from[0]);
  const bool is_last_use = dies(i.from[0]) && a.first >= 0;
  const int d = is_last_use ? places_[i.from[0].index].bundle : take();
  if (!is_last_use) copy_to(d, a);
  release(i);
  for (int u = 0; u < width_; ++u) {
    with_operand(c, u, [&](const Operand& last) { vpternlogd(lane(d, u), b.zmm(u), last, i.imm); });
  }
  define(i.to, d);
}

void Assembler::blend(const Instruction& i) {
  const Source a = in_register(i.from[0]);
  const Source b = any(i.from[1]);
  const Source no = in_register(i.from[3]);
  const Source yes = any(i.from[2]);
  release(i);
  const int d = take();
  for (int u = 0; u < width_; ++u) {
    const Xbyak::Opmask mask(1 + u);
    with_operand(b, u, [&](const Operand& second) { vcmpps(mask, a.zmm(u), second, i.imm); });
    with_operand(yes, u,
                 [&](const Operand& chosen) { vblendmps(lane(d, u) | mask, no.zmm(u), chosen); });
  }
  define(i.to, d);
}

void Assembler::load(const Instruction& i) {
  const Stream& stream = sources_[i.imm];
  const int d = take();
  for (int u = 0; u < width_; ++u) {
    const Xbyak::Address from = element(stream, i.imm, u);
    const Zmm to = is_masked_ ? lane(d, u) | k7 | T_z : lane(d, u);
    if (stream.is_repeated && stream.bytes == 4) {
      vbroadcastss(lane(d, u), from);
    } else if (stream.is_repeated) {
      stream.bytes == 2 ? movzx(r11d, word[from.getRegExp()]) : movzx(r11d, byte[from.getRegExp()]);
      vpbroadcastd(lane(d, u), r11d);
    } else if (stream.bytes == 4) {
      vmovups(to, from);
    } else {
      stream.bytes == 2 ? vpmovzxwd(to, from) : vpmovzxbd(to, from);
    }
  }
  release(i);
  define(i.to, d);
}

void Assembler::store(const Instruction& i) {
  const Source a = in_register(i.from[0]);
  const Stream& stream = targets_[i.imm];
  for (int u = 0; u < width_; ++u) {
    const Xbyak::Address to = element(stream, sources_.size() + i.imm, u);
    store_lanes(is_masked_ ? to | k7 : to, a.zmm(u), stream.bytes);
  }
  release(i);
}

void Assembler::store_bf16(const Instruction& i) {
  const Source a = in_register(i.from[0]);
  const int d = take();
  for (int u = 0; u < width_; ++u) {
    const Ymm halves(lane(d, u).getIdx());
    const Xbyak::Address to = element(targets_[i.imm], sources_.size() + i.imm, u);
    vcvtneps2bf16(halves, a.zmm(u));
    vmovdqu16(is_masked_ ? to | k7 : to, halves);
  }
  release(i);
}

void Assembler::store_lanes(const Xbyak::Address& to, const Zmm& from, int bytes) {
  if (bytes == 2) return vpmovdw(to, from);
  if (bytes == 1) return vpmovdb(to, from);
  is_streaming_ ? vmovntps(to, from) : vmovups(to, from);
}

}  // namespace tenon::onednn::kernels::code
