// SPDX-License-Identifier: Apache-2.0
// What has the same name for either width.
#include "encoding.h"

#include <algorithm>

namespace tenon::onednn::kernels::code {

namespace {

constexpr EncodingRow kRows[] = {
    TENON_ENCODING_ROW(Op::kAdd, vaddps(d, a, b)),
    TENON_ENCODING_ROW(Op::kSub, vsubps(d, a, b)),
    TENON_ENCODING_ROW(Op::kMul, vmulps(d, a, b)),
    TENON_ENCODING_ROW(Op::kDiv, vdivps(d, a, b)),
    TENON_ENCODING_ROW(Op::kMin, vminps(d, a, b)),
    TENON_ENCODING_ROW(Op::kMax, vmaxps(d, a, b)),
    TENON_ENCODING_ROW(Op::kAddBits, vpaddd(d, a, b)),
    TENON_ENCODING_ROW(Op::kSubBits, vpsubd(d, a, b)),
    TENON_ENCODING_ROW(Op::kSqrt, vsqrtps(d, b)),
    TENON_ENCODING_ROW(Op::kToWhole, vcvtps2dq(d, b)),
    TENON_ENCODING_ROW(Op::kFromWhole, vcvtdq2ps(d, b)),
    TENON_ENCODING_ROW(Op::kShiftLeft, vpslld(d, b, imm)),
    TENON_ENCODING_ROW(Op::kShiftRight, vpsrld(d, b, imm)),
    TENON_ENCODING_ROW(Op::kShiftSigned, vpsrad(d, b, imm)),
};

const EncodingRow* find_row(std::span<const EncodingRow> rows, Op op) {
  auto found =
      std::find_if(rows.begin(), rows.end(), [op](const auto& row) { return row.op == op; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

void Encoding::operation(Emitter& g,
                         Op op,
                         uint8_t imm,
                         const Vector& d,
                         const Vector& a,
                         const Xbyak::Operand& b) const {
  const EncodingRow* row = find_row(own_rows(), op);
  if (row == nullptr) row = find_row(kRows, op);
  row->emit(g, d, a, b, imm);
}

void Encoding::load_narrow(Emitter& g, const Xbyak::Address& from, int bytes) {
  const Xbyak::Reg32& element = g.r11d;
  bytes == 2 ? g.movzx(element, g.word[from.getRegExp()])
             : g.movzx(element, g.byte[from.getRegExp()]);
}

const Encoding& encoding_of(Isa isa) {
  return isa == Isa::kAvx512 ? avx512_encoding() : avx2_encoding();
}

}  // namespace tenon::onednn::kernels::code
