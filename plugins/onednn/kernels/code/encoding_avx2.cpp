// SPDX-License-Identifier: Apache-2.0
// AVX2 with FMA and F16C: 16 registers of 8 lanes, no masks, numbers in memory as whole vectors.
#include "encoding.h"

namespace tenon::onednn::kernels::code {

namespace {

using Xbyak::Operand;
using Xbyak::Xmm;
using Xbyak::Ymm;

Ymm full(const Vector& v) {
  return Ymm(v.getIdx());
}
Xmm lower(const Vector& v) {
  return Xmm(v.getIdx());
}

// The low 16 bits of each lane, eight in a row; d is not a.
void narrow(Emitter& g, const Vector& d, const Vector& a) {
  g.vextracti128(lower(d), full(a), 1);
  g.vpackusdw(lower(d), lower(a), lower(d));
}

// Loads the table first: with its table in memory VPERMPS takes twice the time on Zen 3.
void look_up(Emitter& g, const Vector& d, const Vector& index, const Operand& table, uint8_t) {
  if (table.isMEM()) g.vmovaps(d, table);
  g.vpermps(full(d), full(index), table.isMEM() ? static_cast<const Operand&>(d) : table);
}

constexpr EncodingRow kRows[] = {
    TENON_ENCODING_ROW(Op::kAnd, vandps(d, a, b)),
    TENON_ENCODING_ROW(Op::kOr, vorps(d, a, b)),
    TENON_ENCODING_ROW(Op::kXor, vxorps(d, a, b)),
    {Op::kLookUp, look_up},
    TENON_ENCODING_ROW(Op::kRound, vroundps(d, b, imm)),
    TENON_ENCODING_ROW(Op::kToHalf, vcvtps2ph(lower(d), full(a), 0); g.vpmovzxwd(d, lower(d))),
    {Op::kFromHalf,
     [](Emitter& g, const Vector& d, const Vector& a, const Operand&, uint8_t) {
       narrow(g, d, a);
       g.vcvtph2ps(d, lower(d));
     }},
};

class Avx2 final : public Encoding {
 public:
  Avx2() : Encoding(Isa::kAvx2) {}
  int n_registers() const override { return 16; }
  Vector vector(int index) const override { return Ymm(index); }
  Xbyak::Address whole(const Xbyak::RegExp& at) const override { return Xbyak::util::yword[at]; }
  Xbyak::Address number(const Xbyak::RegExp& at) const override { return whole(at); }
  int number_bytes() const override { return vector_bytes(); }
  bool is_apart(Op op, int bytes) const override {
    return op == Op::kBlend || op == Op::kLookUp || op == Op::kFromHalf ||
           (op == Op::kStore && bytes != 4);
  }
  bool needs_register(Op op) const override {
    return op == Op::kShiftLeft || op == Op::kShiftRight || op == Op::kShiftSigned;
  }

  void blend(Emitter& g,
             int,
             uint8_t compare,
             const Vector& d,
             const Vector& a,
             const Operand& b,
             const Operand& yes,
             const Vector& no) const override {
    g.vcmpps(d, a, b, compare);
    g.vblendvps(d, no, yes, d);
  }

  void is_any_greater(Emitter& g,
                      const Vector& a,
                      const Operand& b,
                      const Vector& scratch) const override {
    g.vcmpps(scratch, a, b, static_cast<uint8_t>(Compare::kGt));
    g.vptest(full(scratch), full(scratch));
  }

  void load(Emitter& g,
            const Vector& d,
            const Xbyak::Address& from,
            const Access& access) const override {
    if (access.is_repeated && access.bytes == 4) {
      g.vbroadcastss(d, from);
    } else if (access.is_repeated) {
      load_narrow(g, from, access.bytes);
      g.vmovd(lower(d), g.r11d);
      g.vpbroadcastd(d, lower(d));
    } else if (access.bytes == 4) {
      g.vmovups(d, from);
    } else {
      access.bytes == 2 ? g.vpmovzxwd(d, from) : g.vpmovzxbd(d, from);
    }
  }

  void store(Emitter& g,
             Op,
             const Xbyak::Address& to,
             const Vector& a,
             const Vector& scratch,
             const Access& access) const override {
    if (access.bytes == 4) return access.is_streaming ? g.vmovntps(to, a) : g.vmovups(to, a);
    const Xmm packed = lower(scratch);
    if (access.bytes == 2) {
      narrow(g, scratch, a);
      return g.vmovdqu(to, packed);
    }
    store_bytes(g, to, a, packed);
  }

 protected:
  std::span<const EncodingRow> own_rows() const override { return kRows; }

 private:
  // The low byte of each lane; lanes are from -128 to 255, so that 16 bits hold them.
  static void store_bytes(Emitter& g,
                          const Xbyak::Address& to,
                          const Vector& a,
                          const Xmm& packed) {
    g.vextracti128(packed, full(a), 1);
    g.vpackssdw(packed, lower(a), packed);
    g.vpsllw(packed, packed, 8);
    g.vpsrlw(packed, packed, 8);
    g.vpackuswb(packed, packed, packed);
    g.vmovq(to, packed);
  }
};

}  // namespace

const Encoding& avx2_encoding() {
  static const Avx2 kEncoding;
  return kEncoding;
}

}  // namespace tenon::onednn::kernels::code
