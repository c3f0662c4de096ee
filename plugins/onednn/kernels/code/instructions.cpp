// SPDX-License-Identifier: Apache-2.0
// Each instruction of vector code: its operands are found, then the instruction set writes it.
// Where one overwrites an operand, that is one which is not needed any more, or a copy.

#include "assembler.h"

namespace tenon::onednn::kernels::code {

using Xbyak::Operand;

void Assembler::instruction(const Instruction& i) {
  if (i.op == Op::kLoad) return load(i);
  if (i.op == Op::kStore || i.op == Op::kStoreBf16) return store(i);
  if (i.op == Op::kMulAdd || i.op == Op::kNegMulAdd) return multiply_add(i);
  if (i.op == Op::kTernary) return ternary(i);
  if (i.op == Op::kBlend) return blend(i);
  if (i.op == Op::kRare) return rare(i);
  two_operands(i);
}

// The register that the result goes to; frees what is not needed any more, before that or, where
// the result may not lie over an operand, after.
int Assembler::take_and_release(const Instruction& i, bool is_apart) {
  if (!is_apart) release(i);
  const int bundle = take();
  if (is_apart) release(i);
  return bundle;
}

void Assembler::two_operands(const Instruction& i) {
  const Source a = in_register(i.from[0]);
  const Source b = encoding_.needs_register(i.op) ? in_register(i.from[1]) : any(i.from[1]);
  const int d = take_and_release(i, encoding_.is_apart(i.op, 4));
  for (int u = 0; u < width_; ++u) {
    with_operand(b, u, [&](const Operand& operand) {
      encoding_.operation(*this, i.op, i.imm, lane(d, u), vector(a, u), operand);
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
    const Vector to = lane(d, u);
    const bool x_is_memory = x.first < 0;
    with_operand(x_is_memory ? x : y, u, [&](const Operand& last) {
      const Vector other = x_is_memory ? vector(y, u) : vector(x, u);
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
    with_operand(c, u, [&](const Operand& last) {
      encoding_.operation(*this, i.op, i.imm, lane(d, u), vector(b, u), last);
    });
  }
  define(i.to, d);
}

void Assembler::blend(const Instruction& i) {
  const Source a = in_register(i.from[0]);
  const Source b = any(i.from[1]);
  const Source no = in_register(i.from[3]);
  const Source yes = any(i.from[2]);
  const int d = take_and_release(i, encoding_.is_apart(i.op, 4));
  for (int u = 0; u < width_; ++u) {
    with_operand(b, u, [&](const Operand& second) {
      with_operand(yes, u, [&](const Operand& chosen) {
        encoding_.blend(*this, u, i.imm, lane(d, u), vector(a, u), second, chosen, vector(no, u));
      });
    });
  }
  define(i.to, d);
}

void Assembler::load(const Instruction& i) {
  const Stream& stream = sources_[i.imm];
  const int d = take();
  for (int u = 0; u < width_; ++u) {
    encoding_.load(*this, lane(d, u), element(stream, i.imm, u),
                   {stream.bytes, stream.is_repeated, is_masked_, false});
  }
  release(i);
  define(i.to, d);
}

void Assembler::store(const Instruction& i) {
  const Source a = in_register(i.from[0]);
  const Stream& stream = targets_[i.imm];
  const int scratch = encoding_.is_apart(i.op, stream.bytes) ? take() : -1;
  for (int u = 0; u < width_; ++u) {
    encoding_.store(*this, i.op, element(stream, sources_.size() + i.imm, u), vector(a, u),
                    scratch < 0 ? vector(a, u) : lane(scratch, u),
                    {stream.bytes, false, is_masked_, is_streaming_});
  }
  release(i);
}

}  // namespace tenon::onednn::kernels::code
