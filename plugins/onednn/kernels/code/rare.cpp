// SPDX-License-Identifier: Apache-2.0
// The functions, and how generated code calls them: a vector with such a number is put on the
// stack, and one piece of code behind all loops keeps every register while C computes.
#include "rare.h"

#include <cmath>

#include "assembler.h"

namespace tenon::onednn::kernels::code {

namespace {

template <double (*function)(double)>
void beyond_limit(const float* x, float* y, int64_t lanes) {
  for (int64_t i = 0; i < lanes; ++i)
    if (std::fabs(x[i]) > kTrigLimit)
      y[i] = static_cast<float>(function(static_cast<double>(x[i])));
}

// In the order of Rare.
constexpr RareFunction kFunctions[] = {beyond_limit<std::sin>, beyond_limit<std::cos>,
                                       beyond_limit<std::tan>};

}  // namespace

RareFunction rare_function(Rare function) {
  return kFunctions[static_cast<int>(function)];
}

void Assembler::rare(const Instruction& i) {
  const Source magnitude = in_register(i.from[0]);
  const Source value = in_register(i.from[2]);
  const Source x = in_register(i.from[3]);
  const Source limit = any(i.from[1]);
  const int d = take();
  const int bytes = encoding_.vector_bytes();
  const auto function = reinterpret_cast<uint64_t>(rare_function(static_cast<Rare>(i.imm)));
  for (int u = 0; u < width_; ++u) {
    Xbyak::Label none;
    with_operand(limit, u, [&](const Xbyak::Operand& last) {
      encoding_.is_any_greater(*this, vector(magnitude, u), last, lane(d, u));
    });
    vmovaps(lane(d, u), vector(value, u));
    jz(none, T_NEAR);
    lea(rsp, ptr[rsp - 2 * bytes]);
    vmovups(encoding_.whole(Xbyak::RegExp(rsp)), vector(x, u));
    vmovups(encoding_.whole(rsp + bytes), lane(d, u));
    mov(r11, function);
    call(*call_rare_);
    vmovups(lane(d, u), encoding_.whole(rsp + bytes));
    lea(rsp, ptr[rsp + 2 * bytes]);
    L(none);
  }
  release(i);
  define(i.to, d);
}

// In r11 the function; on the stack x and y. All but r11 is as it was.
void Assembler::write_call_rare() {
  const Xbyak::Reg64 kept[] = {rax, rcx, rdx, rsi, rdi, r8, r9, r10, rbx};
  const int bytes = encoding_.vector_bytes();
  const int pushed = 8 * (static_cast<int>(std::size(kept)) + 1);
  constexpr int kMaskBytes = 64;
  align(32);
  L(*call_rare_);
  for (const Xbyak::Reg64& reg : kept)
    push(reg);
  mov(rbx, rsp);
  sub(rsp, encoding_.n_registers() * bytes + kMaskBytes);
  and_(rsp, -64);
  for (int r = 0; r < encoding_.n_registers(); ++r)
    vmovups(encoding_.whole(rsp + kMaskBytes + r * bytes), encoding_.vector(r));
  if (encoding_.has_masks()) kmovw(ptr[rsp], k7);
  lea(rdi, ptr[rbx + pushed]);
  lea(rsi, ptr[rdi + bytes]);
  mov(edx, encoding_.lanes());
  vzeroupper();
  call(r11);
  if (encoding_.has_masks()) kmovw(k7, ptr[rsp]);
  for (int r = 0; r < encoding_.n_registers(); ++r)
    vmovups(encoding_.vector(r), encoding_.whole(rsp + kMaskBytes + r * bytes));
  mov(rsp, rbx);
  for (size_t k = std::size(kept); k-- > 0;)
    pop(kept[k]);
  ret();
}

}  // namespace tenon::onednn::kernels::code
