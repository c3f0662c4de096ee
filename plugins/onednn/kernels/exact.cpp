// SPDX-License-Identifier: Apache-2.0
#include "exact.h"

#include <algorithm>
#include <cmath>

#include "exact_args.h"
#include "kernel_table.h"
#include "numbers.h"

namespace tenon::onednn::kernels {
namespace {

int arity(uint32_t op) {
  if (op < 16) return 0;
  if (op < 64) return 1;
  return op < 128 ? 2 : 3;
}

// How a domain's numbers are loaded, computed and stored.
class Reals {
 public:
  using Number = double;
  explicit Reals(const Context& context) { context.table->real_ops(&ops_); }

  void load(ElementType type, const void* source, int64_t at, int64_t stride, int64_t n, double* to)
      const {
    if (const RealLoad by_vectors = ops_->load[static_cast<int>(type)])
      return by_vectors(static_cast<const char*>(source) + at * element_bytes(type), stride, n, to);
    visit(type, [&]<class T>() {
      const T* from = static_cast<const T*>(source) + at;
      for (int64_t i = 0; i < n; ++i)
        to[i] = number_cast<double>(from[i * stride]);
    });
  }
  void store(ElementType type, const double* from, int64_t n, void* target, int64_t at) const {
    if (const RealStore by_vectors = ops_->store[static_cast<int>(type)])
      return by_vectors(from, n, static_cast<char*>(target) + at * element_bytes(type));
    visit(type, [&]<class T>() {
      T* to = static_cast<T*>(target) + at;
      for (int64_t i = 0; i < n; ++i)
        to[i] = number_cast<T>(from[i]);
    });
  }
  void apply(uint32_t op,
             const double* a,
             const double* b,
             const double* c,
             uint32_t,
             int64_t n,
             double* out) const {
    ops_->of[op](a, b, c, n, out);
  }
  bool knows(uint32_t op) const { return ops_->of[op] != nullptr; }
  CompareOp<double> comparison(uint32_t op) const { return ops_->compare[op]; }

 private:
  const RealOps* ops_ = nullptr;
};

// f32, f16 and bf16, of which integers are made by nothing but a conversion.
class Singles {
 public:
  using Number = float;
  explicit Singles(const Context& context) : table_(context.table) { table_->single_ops(&ops_); }

  void load(ElementType type, const void* source, int64_t at, int64_t stride, int64_t n, float* to)
      const {
    if (stride == 1) return table_->load_f32({source, type}, at, n, to);
    table_->load_strided({source, type}, at, stride, n, to);
  }
  void store(ElementType type, const float* from, int64_t n, void* target, int64_t at) const {
    ops_->store[static_cast<int>(type)](from, n,
                                        static_cast<char*>(target) + at * element_bytes(type));
  }
  void apply(uint32_t, const float*, const float*, const float*, uint32_t, int64_t, float*) const {}
  CompareOp<float> comparison(uint32_t) const { return nullptr; }

 private:
  const KernelTable* table_;
  const SingleOps* ops_ = nullptr;
};

// N: int64_t, or int32_t or int8_t for types of no more bits.
template <class N>
class Integers {
 public:
  using Number = N;
  Integers(const Context& context, bool is_unsigned) : is_unsigned_(is_unsigned) {
    if constexpr (sizeof(N) == 8)
      context.table->integer_ops(&ops_);
    else if constexpr (sizeof(N) == 4)
      context.table->word_ops(&ops_);
    else
      context.table->byte_ops(&ops_);
  }

  void load(
      ElementType type, const void* source, int64_t at, int64_t stride, int64_t n, N* to) const {
    const char* from = static_cast<const char*>(source) + at * element_bytes(type);
    ops_->load[static_cast<int>(type)](from, stride, n, to);
  }
  void store(ElementType type, const N* from, int64_t n, void* target, int64_t at) const {
    ops_->store[static_cast<int>(type)](from, n,
                                        static_cast<char*>(target) + at * element_bytes(type));
  }
  void apply(
      uint32_t op, const N* a, const N* b, const N* c, uint32_t bits, int64_t n, N* out) const {
    (is_unsigned_ ? ops_->of_unsigned : ops_->of_signed)[op](a, b, c, bits, n, out);
  }
  bool knows(uint32_t op) const { return ops_->of_signed[op] != nullptr; }
  CompareOp<N> comparison(uint32_t op) const {
    return (is_unsigned_ ? ops_->compare_unsigned : ops_->compare_signed)[op];
  }

 private:
  bool is_unsigned_;
  const IntegerOps<N>* ops_ = nullptr;
};

// Of an unsigned number the bits.
template <class N>
N constant(double number) {
  if constexpr (std::is_floating_point_v<N>)
    return static_cast<N>(number);
  else
    return static_cast<N>(static_cast<int64_t>(number));
}

template <class N>
constexpr int64_t kTile = kExactTile * 8 / static_cast<int64_t>(sizeof(N));

bool is_signed(ElementType type) {
  return type == ElementType::kS8 || type == ElementType::kS16 || type == ElementType::kI32 ||
         type == ElementType::kI64;
}

// Whether integers of so many bytes hold every number of the program as 64 bits would: of what is
// read, of the constants, and of results, which wrap to the type.
bool fits_bytes(const ExactSpec& spec, int64_t bytes) {
  if (spec.domain == TN_EXPR_DOMAIN_FLOAT || spec.bits > 8 * bytes) return false;
  const bool has_sign = spec.domain == TN_EXPR_DOMAIN_INT;
  const double span = std::ldexp(1.0, static_cast<int>(8 * bytes));
  const double least = has_sign ? -span / 2 : 0.0;
  auto fits = [&](const tn_expr_node& node) {
    if (node.op == TN_EXPR_CONST) return node.imm >= least && node.imm < least + span;
    if (node.op != TN_EXPR_INPUT) return true;
    const ElementType type = spec.inputs[node.a].type;
    if (type == ElementType::kBool) return true;
    if (element_bytes(type) < bytes) return has_sign || !is_signed(type);
    return element_bytes(type) == bytes && is_signed(type) == has_sign;
  };
  return std::ranges::all_of(spec.nodes, fits) &&
         std::ranges::all_of(spec.results, [bytes](const ExactResult& r) {
           return element_bytes(r.type) <= bytes;
         });
}

// Whether nothing but integers are made of nothing but f32, or of what f32 holds.
bool is_of_singles(const ExactSpec& spec) {
  if (spec.nodes.size() != 1 || spec.nodes[0].op != TN_EXPR_INPUT) return false;
  const ElementType from = spec.inputs[spec.nodes[0].a].type;
  return is_real(from) && from != ElementType::kF64 &&
         std::ranges::none_of(spec.results, [](const ExactResult& r) {
           return is_real(r.type) || r.type == ElementType::kBool;
         });
}

// The type that numbers have in a tile.
ElementType own_type(const ExactSpec& spec) {
  if (is_of_singles(spec)) return ElementType::kF32;
  if (spec.domain == TN_EXPR_DOMAIN_FLOAT) return ElementType::kF64;
  if (fits_bytes(spec, 1)) return ElementType::kS8;
  return fits_bytes(spec, 4) ? ElementType::kI32 : ElementType::kI64;
}

// Whether numbers of this type have the bits of those in a tile.
bool has_bits_of(ElementType type, ElementType own) {
  return element_bytes(type) == element_bytes(own) && is_real(type) == is_real(own);
}

// Whether an instruction makes 0 or 1.
bool makes_truths(uint32_t op) {
  return op == TN_EXPR_NOT || (op >= TN_EXPR_EQ && op <= TN_EXPR_XOR);
}

std::string why_not(const ExactSpec& spec) {
  if (spec.nodes.empty() || spec.nodes.size() > ExactPlan::kMostNodes)
    return "exact: 1 to 96 nodes";
  if (spec.inputs.size() > ExactPlan::kMostInputs) return "exact: at most 64 inputs";
  if (spec.results.empty()) return "exact: a result at least";
  const bool is_real = spec.domain == TN_EXPR_DOMAIN_FLOAT;
  const Context context = make_context(Level::kBaseline);
  const Integers<int64_t> integers(context, false);
  const Reals reals(context);
  for (const tn_expr_node& node : spec.nodes) {
    if (node.op == TN_EXPR_CONST) continue;
    if (node.op == TN_EXPR_INPUT) {
      if (!is_real && kernels::is_real(spec.inputs[node.a].type))
        return "exact: a real among integers";
      continue;
    }
    if (node.op >= 256 || !(is_real ? reals.knows(node.op) : integers.knows(node.op)))
      return "exact: opcode " + std::to_string(node.op) + " has no kernel";
  }
  const bool has_real = std::any_of(spec.results.begin(), spec.results.end(),
                                    [](const ExactResult& r) { return kernels::is_real(r.type); });
  return !is_real && has_real ? "exact: a real of integers" : "";
}

}  // namespace

std::string ExactPlan::make(const ExactSpec& spec) {
  if (std::string why = why_not(spec); !why.empty()) return why;
  nodes_.assign(spec.nodes.begin(), spec.nodes.end());
  domain_ = spec.domain;
  bits_ = spec.bits;
  own_ = own_type(spec);
  results_.assign(spec.results.begin(), spec.results.end());
  is_compared_.assign(nodes_.size(), false);
  for (const ExactResult& result : results_)
    is_compared_[result.node] = is_only_compared(result);
  for (const ExactEdge& edge : spec.inputs)
    types_.push_back(edge.type);
  strides_.resize(spec.inputs.size());
  // Neighbouring axes that every input runs through without a gap are one.
  for (size_t axis = 0; axis < spec.dims.size(); ++axis) {
    if (spec.dims[axis] == 1) continue;
    bool merges = !dims_.empty();
    for (size_t i = 0; i < strides_.size(); ++i)
      merges = merges && strides_[i].back() == spec.inputs[i].strides[axis] * spec.dims[axis];
    if (merges) {
      dims_.back() *= spec.dims[axis];
    } else {
      dims_.push_back(spec.dims[axis]);
    }
    for (size_t i = 0; i < strides_.size(); ++i) {
      if (merges) strides_[i].pop_back();
      strides_[i].push_back(spec.inputs[i].strides[axis]);
    }
  }
  if (dims_.empty()) {
    dims_.push_back(1);
    for (std::vector<int64_t>& strides : strides_)
      strides.push_back(0);
  }
  in_place_ = is_made_in_place();
  return {};
}

// Whether the one result is what the last node makes, in its bits: an operand that lies under the
// target is not read again.
bool ExactPlan::is_made_in_place() const {
  if (results_.size() != 1 || results_[0].node + 1 != nodes_.size()) return false;
  const tn_expr_node& node = nodes_.back();
  if (node.op == TN_EXPR_CONST || is_compared_.back() || lies_ready(node)) return false;
  const ElementType type = results_[0].type;
  return has_bits_of(type, own_) && (type != ElementType::kBool || makes_truths(node.op));
}

// Whether a result is a comparison that nothing else needs as a number.
bool ExactPlan::is_only_compared(const ExactResult& result) const {
  const uint32_t op = nodes_[result.node].op;
  const bool is_comparison = op >= TN_EXPR_EQ && op <= TN_EXPR_GE;
  if (!is_comparison || result.type != ElementType::kBool) return false;
  const auto is_other = [&](const ExactResult& r) { return r.node == result.node; };
  if (std::count_if(results_.begin(), results_.end(), is_other) > 1) return false;
  return std::none_of(nodes_.begin(), nodes_.end(), [&](const tn_expr_node& node) {
    const uint32_t operands[] = {node.a, node.b, node.c};
    return std::count(operands, operands + arity(node.op), result.node) > 0;
  });
}

// Tiles of a row are equally long, so that none is a short remainder.
int64_t ExactPlan::tiles_of_row() const {
  const int64_t tile = kExactTile * 8 / element_bytes(own_);
  return std::max<int64_t>(1, (dims_.back() + tile - 1) / tile);
}

// Whether the numbers of an input are used where they lie: of their width, one behind the other.
bool ExactPlan::lies_ready(const tn_expr_node& node) const {
  return node.op == TN_EXPR_INPUT && strides_[node.a].back() == 1 &&
         has_bits_of(types_[node.a], own_);
}

template <class N>
struct ExactPlan::Frame {
  alignas(64) N room[kMostNodes * kTile<N>];
  N* values[kMostNodes];
  const void* const* sources;
  int64_t at[kMostInputs];  // of the tile, in elements of each input
};

template <class Domain>
void ExactPlan::run_tile(const Domain& domain,
                         Frame<typename Domain::Number>& frame,
                         int64_t n) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const tn_expr_node& node = nodes_[i];
    if (node.op == TN_EXPR_CONST || is_compared_[i] || lies_ready(node)) continue;
    if (node.op == TN_EXPR_INPUT) {
      domain.load(types_[node.a], frame.sources[node.a], frame.at[node.a], strides_[node.a].back(),
                  n, frame.values[i]);
      continue;
    }
    const auto* a = frame.values[node.a];
    const auto* b = arity(node.op) > 1 ? frame.values[node.b] : a;
    const auto* c = arity(node.op) > 2 ? frame.values[node.c] : a;
    domain.apply(node.op, a, b, c, bits_, n, frame.values[i]);
  }
}

// Comparisons first: what they read where it lies may be overwritten by another result.
template <class Domain>
void ExactPlan::store_tile(const Domain& domain,
                           const Frame<typename Domain::Number>& frame,
                           int64_t n,
                           void* const* targets,
                           int64_t at) const {
  for (size_t i = 0; i < results_.size(); ++i) {
    const tn_expr_node& node = nodes_[results_[i].node];
    if (is_compared_[results_[i].node])
      domain.comparison(node.op)(frame.values[node.a], frame.values[node.b], n,
                                 static_cast<uint8_t*>(targets[i]) + at);
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    const auto [node, type] = results_[i];
    if (!is_compared_[node]) domain.store(type, frame.values[node], n, targets[i], at);
  }
}

// Tiles [lo, hi), counted over the rows of the innermost axis.
template <class Domain>
void ExactPlan::run_tiles(const Domain& domain,
                          const void* const* sources,
                          void* const* targets,
                          int64_t lo,
                          int64_t hi) const {
  using N = typename Domain::Number;
  Frame<N> frame;
  frame.sources = sources;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    frame.values[i] = frame.room + static_cast<int64_t>(i) * kTile<N>;
    if (nodes_[i].op == TN_EXPR_CONST)
      std::fill_n(frame.values[i], kTile<N>, constant<N>(nodes_[i].imm));
  }
  const int64_t inner = dims_.back();
  const int64_t tiles = tiles_of_row();
  const int64_t length = (inner + tiles - 1) / tiles;
  for (int64_t tile = lo; tile < hi; ++tile) {
    const int64_t column = tile % tiles * length;
    const int64_t n = std::min(length, inner - column);
    if (n <= 0) continue;
    for (size_t i = 0; i < strides_.size(); ++i) {
      int64_t rest = tile / tiles;
      frame.at[i] = column * strides_[i].back();
      for (size_t axis = dims_.size() - 1; axis-- > 0; rest /= dims_[axis])
        frame.at[i] += rest % dims_[axis] * strides_[i][axis];
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!lies_ready(nodes_[i])) continue;
      // Only read: no instruction writes an input.
      frame.values[i] =
          const_cast<N*>(static_cast<const N*>(sources[nodes_[i].a])) + frame.at[nodes_[i].a];
    }
    const int64_t at = tile / tiles * inner + column;
    if (in_place_) frame.values[nodes_.size() - 1] = static_cast<N*>(targets[0]) + at;
    run_tile(domain, frame, n);
    if (!in_place_) store_tile(domain, frame, n, targets, at);
  }
}

void ExactPlan::run(const Context& context,
                    const void* const* sources,
                    void* const* targets) const {
  int64_t n = tiles_of_row();
  for (size_t axis = 0; axis + 1 < dims_.size(); ++axis)
    n *= dims_[axis];
  const int64_t length = dims_.back() / tiles_of_row() + 1;
  const int64_t tile_bytes = length * element_bytes(own_) * static_cast<int64_t>(nodes_.size());
  auto run_in = [&](const auto& domain) {
    parallel_for(context.parallel, n, grain_rows(tile_bytes),
                 [&](int64_t lo, int64_t hi) { run_tiles(domain, sources, targets, lo, hi); });
  };
  if (own_ == ElementType::kF32) return run_in(Singles(context));
  if (own_ == ElementType::kF64) return run_in(Reals(context));
  const bool is_unsigned = domain_ != TN_EXPR_DOMAIN_INT;
  if (own_ == ElementType::kS8) return run_in(Integers<int8_t>(context, is_unsigned));
  if (own_ == ElementType::kI32) return run_in(Integers<int32_t>(context, is_unsigned));
  run_in(Integers<int64_t>(context, is_unsigned));
}

}  // namespace tenon::onednn::kernels
