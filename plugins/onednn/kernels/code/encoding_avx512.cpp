// SPDX-License-Identifier: Apache-2.0
// AVX-512: 32 registers of 16 lanes, masks, numbers repeated from memory.
#include "encoding.h"

namespace tenon::onednn::kernels::code {

namespace {

using Xbyak::Operand;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr uint8_t kLeastMagnitude = 0b0110;  // of VRANGEPS
constexpr uint8_t kThreeQuarters = 0b1011;   // of VGETMANTPS: [3/4, 3/2), NaN for negatives

Ymm lower(const Vector& v) {
  return Ymm(v.getIdx());
}

constexpr EncodingRow kRows[] = {
    TENON_ENCODING_ROW(Op::kAnd, vpandd(d, a, b)),
    TENON_ENCODING_ROW(Op::kOr, vpord(d, a, b)),
    TENON_ENCODING_ROW(Op::kXor, vpxord(d, a, b)),
    TENON_ENCODING_ROW(Op::kTernary, vpternlogd(d, a, b, imm)),
    TENON_ENCODING_ROW(Op::kSmaller, vrangeps(d, a, b, kLeastMagnitude)),
    TENON_ENCODING_ROW(Op::kScale, vscalefps(d, a, b)),
    TENON_ENCODING_ROW(Op::kLookUp, vpermps(Zmm(d.getIdx()), Zmm(a.getIdx()), b)),
    TENON_ENCODING_ROW(Op::kRound, vrndscaleps(d, b, imm)),
    TENON_ENCODING_ROW(Op::kExponent, vgetexpps(d, b)),
    TENON_ENCODING_ROW(Op::kMantissa, vgetmantps(d, b, kThreeQuarters)),
    TENON_ENCODING_ROW(Op::kToHalf, vcvtps2ph(lower(d), a, 0); g.vpmovzxwd(d, lower(d))),
    TENON_ENCODING_ROW(Op::kFromHalf, vpmovdw(lower(d), a); g.vcvtph2ps(d, lower(d))),
};

class Avx512 final : public Encoding {
 public:
  Avx512() : Encoding(Isa::kAvx512) {}
  int n_registers() const override { return 32; }
  Vector vector(int index) const override { return Zmm(index); }
  Xbyak::Address whole(const Xbyak::RegExp& at) const override { return Xbyak::util::zword[at]; }
  Xbyak::Address number(const Xbyak::RegExp& at) const override { return Xbyak::util::zword_b[at]; }
  int number_bytes() const override { return 4; }
  bool is_apart(Op op, int) const override { return op == Op::kStoreBf16; }
  bool needs_register(Op) const override { return false; }

  void blend(Emitter& g,
             int u,
             uint8_t compare,
             const Vector& d,
             const Vector& a,
             const Operand& b,
             const Operand& yes,
             const Vector& no) const override {
    const Xbyak::Opmask mask(1 + u);
    g.vcmpps(mask, a, b, compare);
    g.vblendmps(d | mask, no, yes);
  }

  void is_any_greater(Emitter& g, const Vector& a, const Operand& b, const Vector&) const override {
    g.vcmpps(g.k1, a, b, static_cast<uint8_t>(Compare::kGt));
    g.kortestw(g.k1, g.k1);
  }

  void load(Emitter& g,
            const Vector& d,
            const Xbyak::Address& from,
            const Access& access) const override {
    const Vector to = access.is_masked ? d | g.k7 | g.T_z : d;
    if (access.is_repeated && access.bytes == 4) {
      g.vbroadcastss(d, from);
    } else if (access.is_repeated) {
      load_narrow(g, from, access.bytes);
      g.vpbroadcastd(d, g.r11d);
    } else if (access.bytes == 4) {
      g.vmovups(to, from);
    } else {
      access.bytes == 2 ? g.vpmovzxwd(to, from) : g.vpmovzxbd(to, from);
    }
  }

  void store(Emitter& g,
             Op op,
             const Xbyak::Address& address,
             const Vector& a,
             const Vector& scratch,
             const Access& access) const override {
    const Xbyak::Address to = access.is_masked ? address | g.k7 : address;
    if (op == Op::kStoreBf16) {
      g.vcvtneps2bf16(lower(scratch), a);
      return g.vmovdqu16(to, lower(scratch));
    }
    if (access.bytes == 2) return g.vpmovdw(to, a);
    if (access.bytes == 1) return g.vpmovdb(to, a);
    access.is_streaming ? g.vmovntps(to, a) : g.vmovups(to, a);
  }

 protected:
  std::span<const EncodingRow> own_rows() const override { return kRows; }
};

}  // namespace

const Encoding& avx512_encoding() {
  static const Avx512 kEncoding;
  return kEncoding;
}

}  // namespace tenon::onednn::kernels::code
