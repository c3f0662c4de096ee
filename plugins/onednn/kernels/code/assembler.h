// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vector code to instructions. Registers are assigned in one walk: all is straight-line
// code, and when they run out, what is needed last goes to the stack (L. A. Belady's rule).
// Constants stay in the registers that are left over and are read from memory else.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <xbyak/xbyak.h>

#include "encoding.h"
#include "vector_code.h"

namespace tenon::onednn::kernels::code {

// One source or target of the loop.
struct Stream {
  int bytes = 4;             // of one element: 1, 2 or 4
  bool is_repeated = false;  // sources: the same element all along
};

// What the code reads beside the streams: a table, or numbers.
struct alignas(64) ConstantLine {
  std::array<uint32_t, kMostLanes> lanes;
};

class Assembler : private Xbyak::CodeGenerator {
 public:
  // pointers: the sources, then the targets. Elements [0, n) of each.
  using Loop = void (*)(void* const* pointers, int64_t n, const ConstantLine* constants);

  // Throws Xbyak::Error where memory cannot be made executable.
  Assembler(const VectorCode& code, std::vector<Stream> sources, std::vector<Stream> targets);

  // Without masks, as AVX2 is, what is left of n over whole vectors is not run: `takes_of` counts.
  Loop loop() const { return loop_; }
  int64_t takes_of(int64_t n) const {
    return encoding_.has_masks() ? n : n / encoding_.lanes() * encoding_.lanes();
  }
  // Writes 4-byte targets past the caches; takes whole steps, and targets aligned to 64 bytes.
  Loop streaming_loop() const { return streaming_loop_; }
  int64_t step() const { return int64_t{unroll_} * encoding_.lanes(); }
  std::vector<ConstantLine> constants() const;

 private:
  // Registers come in bundles of `width_` neighbours, one for each vector of an unrolled step.
  struct Place {
    int bundle = -1;  // -1: not in registers
    int slot = -1;    // on the stack; -1: was never there
  };
  // Where an instruction finds an operand: a register for each lane of the step, or memory.
  struct Source {
    Value value;
    int first = -1;  // -1: memory
    int stride = 0;
  };

  // assembler.cpp: functions, loops, registers
  void find_uses();
  void choose_registers();
  void start_again();
  void hoist(int n_registers);
  size_t write_function(bool is_streaming);
  void write_loops(bool is_streaming);
  void enter();
  void leave(bool is_streaming);
  void body(int width);
  bool dies(Value v) const;
  uint32_t next_use(int temporary) const;
  int take();
  int evict();
  void release(const Instruction& i);
  void define(Value v, int bundle);
  Source any(Value v);
  Source in_register(Value v);
  int hoisted(Value v) const;
  void copy_to(int bundle, const Source& from);
  int unroll_for(int peak) const;
  Vector lane(int bundle, int u) const {
    return encoding_.vector(n_hoisted_ + bundle * width_ + u);
  }
  Vector vector(const Source& source, int u) const {
    return encoding_.vector(source.first + source.stride * u);
  }
  size_t offset_of(Value constant) const;
  Xbyak::Address memory(Value v, int u) const;
  Xbyak::Address element(const Stream& stream, size_t pointer, int u);

  // instructions.cpp: one instruction of the code
  void instruction(const Instruction& i);
  int take_and_release(const Instruction& i, bool is_apart);
  void two_operands(const Instruction& i);
  void multiply_add(const Instruction& i);
  void ternary(const Instruction& i);
  void blend(const Instruction& i);
  void load(const Instruction& i);
  void store(const Instruction& i);
  template <class F>
  void with_operand(const Source& source, int u, const F& f) const {
    if (source.first >= 0)
      f(vector(source, u));
    else
      f(memory(source.value, u));
  }

  // rare.cpp: calls of functions
  void rare(const Instruction& i);
  void write_call_rare();

  const VectorCode& code_;
  const Encoding& encoding_;
  std::vector<Stream> sources_;
  std::vector<Stream> targets_;
  std::vector<std::vector<uint32_t>> uses_;  // by temporary: the instructions that read it
  std::vector<int> hoisted_numbers_;         // the register that holds it all along, or -1
  std::vector<int> hoisted_tables_;
  int n_hoisted_ = 0;
  int unroll_ = 1;
  int n_slots_ = 0;
  Loop loop_ = nullptr;
  Loop streaming_loop_ = nullptr;
  std::optional<Xbyak::Label> call_rare_;

  // While a body is written.
  int width_ = 1;
  bool is_masked_ = false;
  bool is_streaming_ = false;
  uint32_t at_ = 0;            // the instruction
  int peak_ = 0;               // most bundles at once
  std::vector<Place> places_;  // by temporary
  std::vector<int> owner_;     // by bundle: the temporary, or kFree or kScratch
};

}  // namespace tenon::onednn::kernels::code
