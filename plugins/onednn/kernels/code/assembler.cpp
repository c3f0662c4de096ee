// SPDX-License-Identifier: Apache-2.0
#include "assembler.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace tenon::onednn::kernels::code {

namespace {

constexpr int kFree = -1;
constexpr int kScratch = -2;
constexpr uint32_t kNever = UINT32_MAX;
constexpr int kTableBytes = sizeof(ConstantLine);

}  // namespace

Assembler::Assembler(const VectorCode& code,
                     std::vector<Stream> sources,
                     std::vector<Stream> targets)
    : Xbyak::CodeGenerator(Xbyak::DEFAULT_MAX_CODE_SIZE, Xbyak::AutoGrow),
      code_(code),
      encoding_(encoding_of(code.isa())),
      sources_(std::move(sources)),
      targets_(std::move(targets)) {
  call_rare_.emplace();
  find_uses();
  choose_registers();
  write_function(false);  // says how much stack is needed
  start_again();
  const size_t plain = write_function(false);
  const size_t streaming = write_function(true);
  write_call_rare();
  ready(PROTECT_RE);
  loop_ = reinterpret_cast<Loop>(reinterpret_cast<uintptr_t>(getCode()) + plain);
  streaming_loop_ = reinterpret_cast<Loop>(reinterpret_cast<uintptr_t>(getCode()) + streaming);
}

// The tables, a line each, then the numbers.
std::vector<ConstantLine> Assembler::constants() const {
  const size_t n_tables = code_.tables().size();
  const auto n_copies = static_cast<size_t>(encoding_.number_bytes() / 4);
  const size_t n_lanes = code_.numbers().size() * n_copies;
  std::vector<ConstantLine> lines(n_tables + (n_lanes + kMostLanes - 1) / kMostLanes);
  for (size_t i = 0; i < n_tables; ++i) {
    for (size_t k = 0; k < kMostLanes; ++k)
      lines[i].lanes[k] = std::bit_cast<uint32_t>(code_.tables()[i][k]);
  }
  for (size_t i = 0; i < n_lanes; ++i)
    lines[n_tables + i / kMostLanes].lanes[i % kMostLanes] = code_.numbers()[i / n_copies];
  return lines;
}

void Assembler::find_uses() {
  uses_.assign(code_.n_temporaries(), {});
  for (uint32_t i = 0; i < code_.instructions().size(); ++i) {
    for (const Value& v : code_.instructions()[i].from) {
      if (v.is_temporary()) uses_[v.index].push_back(i);
    }
  }
}

// Vectors a step: two chains keep both pipes busy, four where the chain is short. Of 32 registers
// as many again are left to constants.
int Assembler::unroll_for(int peak) const {
  const int of_32 = peak * 32 / encoding_.n_registers();
  if (of_32 <= 4) return 4;
  return of_32 <= 10 ? 2 : 1;
}

void Assembler::choose_registers() {
  hoisted_numbers_.assign(code_.numbers().size(), -1);
  hoisted_tables_.assign(code_.tables().size(), -1);
  body(1);
  unroll_ = unroll_for(peak_);
  hoist(encoding_.n_registers() - unroll_ * peak_);
  start_again();
}

void Assembler::start_again() {
  reset();
  call_rare_.emplace();
}

// First what an instruction needs in a register anyway, then what is read most often.
void Assembler::hoist(int n_registers) {
  std::vector<std::pair<int, int*>> wanted;
  for (int& place : hoisted_numbers_)
    wanted.emplace_back(0, &place);
  for (int& place : hoisted_tables_)
    wanted.emplace_back(0, &place);
  for (const Instruction& i : code_.instructions()) {
    for (size_t k = 0; k < i.from.size(); ++k) {
      if (i.from[k].is_temporary() || i.from[k].kind == Value::Kind::kNone) continue;
      const bool is_table = i.from[k].kind == Value::Kind::kTable;
      const bool may_be_memory = k == 1 || i.op == Op::kMulAdd || i.op == Op::kNegMulAdd;
      const size_t at = (is_table ? code_.numbers().size() : 0) + i.from[k].index;
      wanted[at].first -= may_be_memory ? 1 : 100;
    }
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  n_hoisted_ = std::min<int>(n_registers, static_cast<int>(wanted.size()));
  for (int i = 0; i < n_hoisted_; ++i)
    *wanted[static_cast<size_t>(i)].second = i;
}

size_t Assembler::write_function(bool is_streaming) {
  align(32);
  const size_t offset = getSize();
  is_streaming_ = is_streaming;
  enter();
  write_loops(is_streaming);
  leave(is_streaming);
  return offset;
}

void Assembler::write_loops(bool is_streaming) {
  Xbyak::Label next, rest, done;
  L(next);
  lea(r11, ptr[rcx + step()]);
  cmp(r11, rsi);
  jg(rest, T_NEAR);
  is_masked_ = false;
  body(unroll_);
  add(rcx, static_cast<uint32_t>(step()));
  jmp(next, T_NEAR);
  L(rest);
  if (is_streaming) return;
  if (encoding_.has_masks()) {
    mov(r11, rsi);
    sub(r11, rcx);
    jle(done, T_NEAR);
    bzhi(r11d, r15d, r11d);
    kmovw(k7, r11d);
  } else {
    lea(r11, ptr[rcx + encoding_.lanes()]);
    cmp(r11, rsi);
    jg(done, T_NEAR);
  }
  is_masked_ = encoding_.has_masks();
  body(1);
  add(rcx, encoding_.lanes());
  jmp(rest, T_NEAR);
  L(done);
}

// In rdi, rsi, rdx: what Loop takes. rcx counts, r11 is for moments, r15 is all ones, for masks;
// the first nine streams have their address in a register.
void Assembler::enter() {
  for (const Xbyak::Reg64& kept : {rbx, rbp, r12, r13, r14, r15})
    push(kept);
  const int stack = n_slots_ * unroll_ * encoding_.vector_bytes();
  if (stack > 0) {
    mov(r11, rsp);
    sub(rsp, stack + encoding_.vector_bytes());
    and_(rsp, -encoding_.vector_bytes());
    mov(ptr[rsp + stack], r11);
  }
  const size_t n = sources_.size() + targets_.size();
  const Xbyak::Reg64 addresses[] = {rax, r8, r9, r10, rbx, rbp, r12, r13, r14};
  for (size_t i = 0; i < std::min(n, std::size(addresses)); ++i)
    mov(addresses[i], ptr[rdi + 8 * i]);
  mov(r15d, -1);
  xor_(ecx, ecx);
  width_ = 1;
  for (size_t i = 0; i < hoisted_tables_.size(); ++i) {
    const Value table{Value::Kind::kTable, static_cast<uint16_t>(i)};
    if (hoisted_tables_[i] >= 0) vmovaps(encoding_.vector(hoisted_tables_[i]), memory(table, 0));
  }
  for (size_t i = 0; i < hoisted_numbers_.size(); ++i) {
    const Value number{Value::Kind::kNumber, static_cast<uint16_t>(i)};
    if (hoisted_numbers_[i] >= 0)
      vbroadcastss(encoding_.vector(hoisted_numbers_[i]), ptr[rdx + offset_of(number)]);
  }
}

void Assembler::leave(bool is_streaming) {
  const int stack = n_slots_ * unroll_ * encoding_.vector_bytes();
  if (stack > 0) mov(rsp, ptr[rsp + stack]);
  for (const Xbyak::Reg64& kept : {r15, r14, r13, r12, rbp, rbx})
    pop(kept);
  if (is_streaming) sfence();
  vzeroupper();
  ret();
}

void Assembler::body(int width) {
  width_ = width;
  places_.assign(code_.n_temporaries(), {});
  owner_.assign(static_cast<size_t>((encoding_.n_registers() - n_hoisted_) / width), kFree);
  int slots = std::exchange(n_slots_, 0);
  for (at_ = 0; at_ < code_.instructions().size(); ++at_)
    instruction(code_.instructions()[at_]);
  n_slots_ = std::max(slots, n_slots_);
}

bool Assembler::dies(Value v) const {
  return v.is_temporary() && uses_[v.index].back() == at_;
}

uint32_t Assembler::next_use(int temporary) const {
  const std::vector<uint32_t>& uses = uses_[static_cast<size_t>(temporary)];
  auto next = std::lower_bound(uses.begin(), uses.end(), at_);
  return next == uses.end() ? kNever : *next;
}

int Assembler::take() {
  auto free = std::find(owner_.begin(), owner_.end(), kFree);
  const int bundle = free == owner_.end() ? evict() : static_cast<int>(free - owner_.begin());
  owner_[static_cast<size_t>(bundle)] = kScratch;
  peak_ = std::max(peak_, bundle + 1);
  return bundle;
}

// Operands of this instruction are used soonest, so they stay.
int Assembler::evict() {
  size_t victim = owner_.size();
  for (size_t i = 0; i < owner_.size(); ++i) {
    if (owner_[i] < 0) continue;
    if (victim == owner_.size() || next_use(owner_[i]) > next_use(owner_[victim])) victim = i;
  }
  Place& place = places_[static_cast<size_t>(owner_[victim])];
  place.bundle = -1;
  if (place.slot < 0) {
    place.slot = n_slots_++;
    const Value temporary{Value::Kind::kTemporary, static_cast<uint16_t>(owner_[victim])};
    for (int u = 0; u < width_; ++u)
      vmovaps(memory(temporary, u), lane(static_cast<int>(victim), u));
  }
  return static_cast<int>(victim);
}

// Frees what this instruction read last, and what was loaded for it.
void Assembler::release(const Instruction& i) {
  for (const Value& v : i.from) {
    if (!dies(v)) continue;
    Place& place = places_[v.index];
    if (place.bundle >= 0) owner_[static_cast<size_t>(place.bundle)] = kFree;
    place.bundle = -1;
  }
  std::replace(owner_.begin(), owner_.end(), kScratch, kFree);
}

void Assembler::define(Value v, int bundle) {
  const bool is_read = !uses_[v.index].empty();
  owner_[static_cast<size_t>(bundle)] = is_read ? static_cast<int>(v.index) : kFree;
  places_[v.index].bundle = bundle;
}

int Assembler::hoisted(Value v) const {
  if (v.is_temporary() || v.kind == Value::Kind::kNone) return -1;
  return (v.kind == Value::Kind::kTable ? hoisted_tables_ : hoisted_numbers_)[v.index];
}

Assembler::Source Assembler::any(Value v) {
  if (v.kind == Value::Kind::kNone) return {v, 0, 0};
  if (int at = hoisted(v); at >= 0) return {v, at, 0};
  if (v.is_temporary() && places_[v.index].bundle >= 0) {
    return {v, n_hoisted_ + places_[v.index].bundle * width_, 1};
  }
  return {v};
}

Assembler::Source Assembler::in_register(Value v) {
  const Source found = any(v);
  if (found.first >= 0) return found;
  const int bundle = take();
  copy_to(bundle, found);
  if (v.is_temporary()) {
    owner_[static_cast<size_t>(bundle)] = v.index;
    places_[v.index].bundle = bundle;
  }
  return {v, n_hoisted_ + bundle * width_, 1};
}

void Assembler::copy_to(int bundle, const Source& from) {
  for (int u = 0; u < width_; ++u) {
    if (from.first >= 0) {
      vmovaps(lane(bundle, u), vector(from, u));
    } else if (from.value.kind == Value::Kind::kNumber) {
      vbroadcastss(lane(bundle, u), ptr[rdx + offset_of(from.value)]);
    } else {
      vmovaps(lane(bundle, u), memory(from.value, u));
    }
  }
}

size_t Assembler::offset_of(Value constant) const {
  if (constant.kind == Value::Kind::kTable) return size_t{kTableBytes} * constant.index;
  return kTableBytes * code_.tables().size() +
         static_cast<size_t>(encoding_.number_bytes()) * constant.index;
}

Xbyak::Address Assembler::memory(Value v, int u) const {
  if (v.is_temporary()) {
    return encoding_.whole(rsp + (places_[v.index].slot * unroll_ + u) * encoding_.vector_bytes());
  }
  const Xbyak::RegExp at = rdx + offset_of(v);
  return v.kind == Value::Kind::kTable ? encoding_.whole(at) : encoding_.number(at);
}

Xbyak::Address Assembler::element(const Stream& stream, size_t pointer, int u) {
  const Xbyak::Reg64 addresses[] = {rax, r8, r9, r10, rbx, rbp, r12, r13, r14};
  Xbyak::Reg64 base = r11;
  if (pointer < std::size(addresses))
    base = addresses[pointer];
  else
    mov(r11, ptr[rdi + 8 * pointer]);
  if (stream.is_repeated) return ptr[base];
  return ptr[base + rcx * stream.bytes + u * encoding_.lanes() * stream.bytes];
}

}  // namespace tenon::onednn::kernels::code
