// SPDX-License-Identifier: Apache-2.0
#include "pointwise_code.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "../context.h"
#include "assembler.h"
#include "conversions.h"
#include "intrinsics.h"

namespace tenon::onednn::kernels::code {

namespace {

constexpr int64_t kLineBytes = 64;
// Keeps the count of temporaries within 16 bits, and code and stack small.
constexpr size_t kMostNodes = 1000;

// Writes the program from its results back, so that only what is read is computed, and soon before
// it is read.
class Translation {
 public:
  Translation(const Program& program,
              std::span<const CodeEdge> sources,
              Isa isa,
              Precision precision)
      : program_(program),
        sources_(sources),
        precision_(precision),
        code_(isa),
        made_(program.nodes.size()),
        loaded_(sources.size()) {}

  Value of(uint32_t index) {
    if (!made_[index]) made_[index] = make(program_.nodes[index]);
    return *made_[index];
  }
  // The first opcode that has no code.
  std::string missing() const { return missing_; }
  VectorCode& code() { return code_; }

 private:
  Value input(uint32_t i) {
    const CodeEdge& edge = sources_[i];
    if (!loaded_[i])
      loaded_[i] = to_real(code_, code_.load(static_cast<uint8_t>(i)), edge.type, edge.quant);
    return *loaded_[i];
  }
  Value make(const tn_expr_node& node) {
    if (node.op == TN_EXPR_CONST) return code_.number(static_cast<float>(node.imm));
    if (node.op == TN_EXPR_INPUT) return input(node.a);
    if (node.op == TN_EXPR_SELECT) {
      const tn_expr_node& condition = program_.nodes[node.a];
      if (std::optional<Compare> compare = comparison(condition.op)) {
        Value a = of(condition.a);
        Value b = of(condition.b);
        return code_.blend(*compare, a, b, of(node.b), of(node.c));
      }
    }
    if (node.op == TN_EXPR_POW) {
      const double power = program_.nodes[node.b].imm;
      const bool is_constant = program_.nodes[node.b].op == TN_EXPR_CONST;
      if (is_constant && power >= 2 && power <= 8 && power == std::floor(power))
        return whole_power(code_, of(node.a), static_cast<int>(power));
    }
    Intrinsic emit = intrinsic(node.op, precision_);
    if (emit == nullptr) {
      missing_ = "no code for opcode " + std::to_string(node.op);
      return code_.number(0.0F);
    }
    const int n = arity(node.op);
    Value a = of(node.a);
    Value b = n > 1 ? of(node.b) : Value{};
    Value c = n > 2 ? of(node.c) : Value{};
    return emit(code_, a, b, c);
  }

  const Program& program_;
  std::span<const CodeEdge> sources_;
  Precision precision_;
  VectorCode code_;
  std::vector<std::optional<Value>> made_;
  std::vector<std::optional<Value>> loaded_;
  std::string missing_;
};

std::vector<Stream> streams(std::span<const CodeEdge> edges) {
  std::vector<Stream> made;
  for (const CodeEdge& edge : edges)
    made.push_back({static_cast<int>(element_bytes(edge.type)), edge.is_repeated});
  return made;
}

std::string refuse(const Program& program,
                   std::span<const CodeEdge> sources,
                   std::span<const CodeEdge> targets) {
  const size_t n_nodes = program.nodes.size();
  if (n_nodes > kMostNodes) return "a program of " + std::to_string(n_nodes) + " nodes";
  if (sources.size() + targets.size() > PointwiseCode::kMostEdges) return "too many operands";
  for (std::span<const CodeEdge> edges : {sources, targets}) {
    for (const CodeEdge& edge : edges) {
      if (!has_conversion(edge.type)) return "an operand of wide integers";
    }
  }
  return {};
}

Precision precision_for(std::span<const CodeEdge> targets) {
  const bool is_bf16 = std::all_of(targets.begin(), targets.end(), [](const CodeEdge& target) {
    return target.type == ElementType::kBf16;
  });
  return is_bf16 ? Precision::kBf16 : Precision::kF32;
}

// A loop and what it reads beside the operands.
class Generated final : public PointwiseCode {
 public:
  // Throws Xbyak::Error where memory cannot be made executable.
  Generated(VectorCode code, std::span<const CodeEdge> sources, std::span<const CodeEdge> targets);
  void run(void* const* pointers, int64_t n, bool past_caches) const override;

 private:
  using Pointers = std::array<void*, kMostEdges>;
  Pointers moved(void* const* pointers, int64_t elements) const;
  int64_t until_aligned(void* const* pointers) const;
  void run_in_caches(void* const* pointers, int64_t n) const;
  void run_padded(void* const* pointers, int64_t n) const;
  bool writes_over_a_source(void* const* pointers) const;
  size_t size_of(size_t edge, int64_t n) const { return static_cast<size_t>(bytes_[edge] * n); }

  VectorCode code_;
  std::vector<int64_t> bytes_;  // by edge: from one element to the next
  size_t n_sources_;
  Assembler assembler_;
  std::vector<ConstantLine> constants_;
};

Generated::Generated(VectorCode code,
                     std::span<const CodeEdge> sources,
                     std::span<const CodeEdge> targets)
    : code_(std::move(code)),
      n_sources_(sources.size()),
      assembler_(code_, streams(sources), streams(targets)),
      constants_(assembler_.constants()) {
  for (const CodeEdge& edge : sources)
    bytes_.push_back(edge.is_repeated ? 0 : element_bytes(edge.type));
  for (const CodeEdge& edge : targets)
    bytes_.push_back(element_bytes(edge.type));
}

// Elements before the f32 targets are aligned, -1 where they never are at once.
int64_t Generated::until_aligned(void* const* pointers) const {
  int64_t found = -1;
  for (size_t i = n_sources_; i < bytes_.size(); ++i) {
    if (bytes_[i] != 4) continue;
    const uint64_t past = reinterpret_cast<uintptr_t>(pointers[i]) % kLineBytes;
    const int64_t missing = static_cast<int64_t>((kLineBytes - past) % kLineBytes);
    if (missing % 4 != 0 || (found >= 0 && found != missing / 4)) return -1;
    found = missing / 4;
  }
  return found;
}

Generated::Pointers Generated::moved(void* const* pointers, int64_t elements) const {
  Pointers there;
  for (size_t i = 0; i < bytes_.size(); ++i)
    there[i] = static_cast<char*>(pointers[i]) + elements * bytes_[i];
  return there;
}

bool Generated::writes_over_a_source(void* const* pointers) const {
  return std::any_of(pointers + n_sources_, pointers + bytes_.size(), [&](void* target) {
    return std::find(pointers, pointers + n_sources_, target) != pointers + n_sources_;
  });
}

// Fewer elements than one vector, by way of whole vectors here.
void Generated::run_padded(void* const* pointers, int64_t n) const {
  constexpr size_t kVectorBytes = 4 * kMostLanes;
  alignas(kVectorBytes) std::array<std::array<char, kVectorBytes>, kMostEdges> padded;
  Pointers here;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    const bool is_copied = i >= n_sources_ || bytes_[i] != 0;
    here[i] = is_copied ? padded[i].data() : pointers[i];
    if (!is_copied) continue;
    padded[i].fill(0);
    if (i < n_sources_) std::memcpy(padded[i].data(), pointers[i], size_of(i, n));
  }
  assembler_.loop()(here.data(), lanes_of(code_.isa()), constants_.data());
  for (size_t i = n_sources_; i < bytes_.size(); ++i)
    std::memcpy(pointers[i], padded[i].data(), size_of(i, n));
}

// What is left over whole vectors is computed with the elements before it, once more, where those
// are still there.
void Generated::run_in_caches(void* const* pointers, int64_t n) const {
  const int64_t lanes = lanes_of(code_.isa());
  const int64_t rest = n - assembler_.takes_of(n);
  if (n > rest) assembler_.loop()(pointers, n - rest, constants_.data());
  if (rest == 0) return;
  if (n < lanes || writes_over_a_source(pointers))
    return run_padded(moved(pointers, n - rest).data(), rest);
  assembler_.loop()(moved(pointers, n - lanes).data(), lanes, constants_.data());
}

void Generated::run(void* const* pointers, int64_t n, bool past_caches) const {
  const int64_t head = past_caches ? until_aligned(pointers) : -1;
  const int64_t middle =
      head < 0 || head > n ? 0 : (n - head) / assembler_.step() * assembler_.step();
  if (middle == 0) return run_in_caches(pointers, n);
  if (head > 0) run_in_caches(pointers, head);
  assembler_.streaming_loop()(moved(pointers, head).data(), middle, constants_.data());
  const int64_t done = head + middle;
  if (done < n) run_in_caches(moved(pointers, done).data(), n - done);
}

}  // namespace

std::unique_ptr<const PointwiseCode> PointwiseCode::make(const Program& program,
                                                         std::span<const CodeEdge> sources,
                                                         std::span<const CodeEdge> targets,
                                                         Isa isa,
                                                         std::string* why) {
  *why = refuse(program, sources, targets);
  if (!why->empty()) return nullptr;
  Translation translation(program, sources, isa, precision_for(targets));
  VectorCode& code = translation.code();
  const bool rounds_to_bf16 = isa == Isa::kAvx512 && instructions().avx512_bf16;
  auto has_instruction = [rounds_to_bf16](const CodeEdge& target) {
    return target.type == ElementType::kBf16 && rounds_to_bf16;
  };
  std::vector<Value> results;
  for (size_t i = 0; i < targets.size(); ++i) {
    Value real = translation.of(program.results[i]);
    results.push_back(has_instruction(targets[i])
                          ? real
                          : from_real(code, real, targets[i].type, targets[i].quant));
  }
  // Last, because a target may lie over a source.
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto at = static_cast<uint8_t>(i);
    has_instruction(targets[i]) ? code.store_bf16(at, results[i]) : code.store(at, results[i]);
  }
  *why = translation.missing();
  if (!why->empty()) return nullptr;
  try {
    return std::make_unique<const Generated>(std::move(translation.code()), sources, targets);
  } catch (const Xbyak::Error& error) {
    *why = std::string("no executable memory: ") + error.what();
    return nullptr;
  }
}

}  // namespace tenon::onednn::kernels::code
