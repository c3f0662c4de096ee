// SPDX-License-Identifier: Apache-2.0
#pragma once
// What differs between instruction sets: how many registers there are and how wide, and the
// instructions of each Op. The assembler asks it for every vector that it writes.

#include <cstdint>
#include <span>

#include <xbyak/xbyak.h>

#include "vector_code.h"

namespace tenon::onednn::kernels::code {

using Emitter = Xbyak::CodeGenerator;
// A register of either width: Xbyak's classes differ in nothing but what their kind says.
using Vector = Xbyak::Xmm;

// How an element is loaded or stored.
struct Access {
  int bytes = 4;              // 1, 2 or 4
  bool is_repeated = false;   // loads: the same element in all lanes
  bool is_masked = false;     // only the lanes that k7 names
  bool is_streaming = false;  // stores of 4 bytes: past the caches
};

// One op of two operands (a, b) or one (b) as instructions; kTernary is of d, a and b.
struct EncodingRow {
  Op op;
  void (*emit)(Emitter& g, const Vector& d, const Vector& a, const Xbyak::Operand& b, uint8_t imm);
};
#define TENON_ENCODING_ROW(op, instruction)                               \
  EncodingRow {                                                           \
    op, [](Emitter& g, const Vector& d, [[maybe_unused]] const Vector& a, \
           [[maybe_unused]] const Xbyak::Operand& b,                      \
           [[maybe_unused]] uint8_t imm) { g.instruction; }               \
  }

class Encoding {
 public:
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;
  virtual ~Encoding() = default;

  Isa isa() const { return isa_; }
  int lanes() const { return lanes_of(isa_); }
  int vector_bytes() const { return 4 * lanes(); }
  // Where there are no masks, loops take whole vectors only.
  bool has_masks() const { return isa_ == Isa::kAvx512; }
  virtual int n_registers() const = 0;
  virtual Vector vector(int index) const = 0;

  // A whole vector in memory, and a number there for all lanes, which takes so many bytes.
  virtual Xbyak::Address whole(const Xbyak::RegExp& at) const = 0;
  virtual Xbyak::Address number(const Xbyak::RegExp& at) const = 0;
  virtual int number_bytes() const = 0;

  // The result has to be in a register of its own, none of the operands'; for a store: a register
  // is needed that may be written over.
  virtual bool is_apart(Op op, int bytes) const = 0;
  // The second operand has to be in a register.
  virtual bool needs_register(Op op) const = 0;

  // d = op(a, b), of the ops that have a row, here or with the instruction set.
  void operation(Emitter& g,
                 Op op,
                 uint8_t imm,
                 const Vector& d,
                 const Vector& a,
                 const Xbyak::Operand& b) const;
  // u: which vector of an unrolled step this is.
  virtual void blend(Emitter& g,
                     int u,
                     uint8_t compare,
                     const Vector& d,
                     const Vector& a,
                     const Xbyak::Operand& b,
                     const Xbyak::Operand& yes,
                     const Vector& no) const = 0;
  // Clears the zero flag where a lane of `a` is greater than that of `b`. `scratch` is written
  // over.
  virtual void is_any_greater(Emitter& g,
                              const Vector& a,
                              const Xbyak::Operand& b,
                              const Vector& scratch) const = 0;
  // Writes over r11 where a narrow element is repeated.
  virtual void load(Emitter& g,
                    const Vector& d,
                    const Xbyak::Address& from,
                    const Access& access) const = 0;
  virtual void store(Emitter& g,
                     Op op,
                     const Xbyak::Address& to,
                     const Vector& a,
                     const Vector& scratch,
                     const Access& access) const = 0;

 protected:
  explicit Encoding(Isa isa) : isa_(isa) {}
  virtual std::span<const EncodingRow> own_rows() const = 0;

  // An element of one or two bytes to r11d, extended with zeros.
  static void load_narrow(Emitter& g, const Xbyak::Address& from, int bytes);

 private:
  Isa isa_;
};

const Encoding& encoding_of(Isa isa);
// encoding_avx2.cpp, encoding_avx512.cpp
const Encoding& avx2_encoding();
const Encoding& avx512_encoding();

}  // namespace tenon::onednn::kernels::code
