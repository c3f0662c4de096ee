// SPDX-License-Identifier: Apache-2.0
#include "exact.h"

#include <algorithm>

#include "numbers.h"

namespace tenon::onednn::kernels {
namespace {

constexpr int64_t kTile = 128;

// Cuts a 64-bit integer to the width of the node's type and extends it again.
template <class N>
struct Wrap {
  uint32_t bits;
  N operator()(uint64_t value) const {
    if (bits >= 64) return static_cast<N>(value);
    const uint32_t unused = 64 - bits;
    return static_cast<N>(static_cast<N>(value << unused) >> unused);
  }
};
template <class N>
uint64_t u(N value) {
  return static_cast<uint64_t>(value);
}

template <class N>
N divide(N a, N b, Wrap<N> w) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<N>) {
    if (b == -1) return w(-u(a));
  }
  return a / b;
}
template <class N>
N remainder(N a, N b, bool sign_of_divisor) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<N>) {
    if (b == -1) return 0;
    const N r = a % b;
    return sign_of_divisor && r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  return a % b;
}
template <class N>
N power(N base, N exponent, Wrap<N> w) {
  if constexpr (std::is_signed_v<N>) {
    if (exponent < 0) return base == 1 ? 1 : (base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0);
  }
  uint64_t result = 1;
  uint64_t factor = u(base);
  for (uint64_t left = u(exponent); left != 0; left >>= 1, factor *= factor) {
    if ((left & 1) != 0) result *= factor;
  }
  return w(result);
}
template <class N>
N shift_left(N a, N count, Wrap<N> w) {
  return u(count) >= w.bits ? N(0) : w(u(a) << count);
}
template <class N>
N shift_right(N a, N count, Wrap<N> w) {
  if (u(count) >= w.bits) return a < 0 ? N(-1) : N(0);
  return static_cast<N>(a >> count);
}
double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
double sigmoid(double a) {
  const double e = std::exp(-std::fabs(a));
  return a >= 0 ? 1 / (1 + e) : e / (1 + e);
}

template <class N>
using Instruction = void (*)(const N* a, const N* b, const N* c, uint32_t bits, N* out);

template <class N, class F>
void over_tile(const N* a, const N* b, const N* c, N* out, const F& f) {
  for (int64_t i = 0; i < kTile; ++i)
    out[i] = f(a[i], b[i], c[i]);
}

// The instruction of an opcode; nullptr where the domain has none.
template <class N>
Instruction<N> instruction(uint32_t op) {
  if constexpr (std::is_same_v<N, double>) {
    switch (op) {
#define TENON_EXACT_REAL(name, formula)                                                        \
  case TN_EXPR_##name:                                                                         \
    return [](const N* x, const N* y, const N* z, uint32_t, N* out) {                          \
      over_tile(x, y, z, out,                                                                  \
                [](N a, [[maybe_unused]] N b, [[maybe_unused]] N c) -> N { return formula; }); \
    };
#define TENON_EXACT(name, real, integer) TENON_EXACT_REAL(name, real)
#define TENON_EXACT_INTEGER(name, formula)
#include "exact_ops.def"
#undef TENON_EXACT_REAL
#undef TENON_EXACT_INTEGER
      default:
        return nullptr;
    }
  } else {
    switch (op) {
#define TENON_EXACT_REAL(name, formula)
#define TENON_EXACT_INTEGER(name, formula)                                                \
  case TN_EXPR_##name:                                                                    \
    return [](const N* x, const N* y, const N* z, uint32_t bits, N* out) {                \
      [[maybe_unused]] const Wrap<N> w{bits};                                             \
      over_tile(x, y, z, out, [w](N a, [[maybe_unused]] N b, [[maybe_unused]] N c) -> N { \
        (void)w;                                                                          \
        (void)a;                                                                          \
        return formula;                                                                   \
      });                                                                                 \
    };
#undef TENON_EXACT
#define TENON_EXACT(name, real, integer) TENON_EXACT_INTEGER(name, integer)
#include "exact_ops.def"
#undef TENON_EXACT_REAL
#undef TENON_EXACT_INTEGER
#undef TENON_EXACT
      default:
        return nullptr;
    }
  }
}

int arity(uint32_t op) {
  if (op < 16) return 0;
  if (op < 64) return 1;
  return op < 128 ? 2 : 3;
}

template <class N>
void load(ElementType type, const void* source, int64_t offset, int64_t stride, int64_t n, N* to) {
  visit(type, [&]<class T>() {
    const T* from = static_cast<const T*>(source) + offset;
    for (int64_t i = 0; i < n; ++i)
      to[i] = number_cast<N>(from[i * stride]);
  });
}

template <class N>
void store(ElementType type, const N* from, int64_t n, void* target, int64_t offset) {
  visit(type, [&]<class T>() {
    T* to = static_cast<T*>(target) + offset;
    for (int64_t i = 0; i < n; ++i)
      to[i] = number_cast<T>(from[i]);
  });
}

}  // namespace

std::string ExactPlan::make(const ExactSpec& spec) {
  if (spec.nodes.empty() || spec.nodes.size() > kMostNodes) return "exact: 1 to 96 nodes";
  if (spec.inputs.size() > kMostInputs) return "exact: at most 64 inputs";
  bool is_real = spec.domain == TN_EXPR_DOMAIN_FLOAT;
  for (const tn_expr_node& node : spec.nodes) {
    if (node.op == TN_EXPR_CONST || node.op == TN_EXPR_INPUT) continue;
    bool is_known = is_real ? instruction<double>(node.op) != nullptr
                            : instruction<int64_t>(node.op) != nullptr;
    if (!is_known) return "exact: opcode " + std::to_string(node.op) + " has no kernel";
  }
  nodes_.assign(spec.nodes.begin(), spec.nodes.end());
  domain_ = spec.domain;
  bits_ = spec.bits;
  output_ = spec.output;
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
  return {};
}

template <class N>
void ExactPlan::run_tile(const void* const* sources,
                         const int64_t* at,
                         int64_t n,
                         N* values) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const tn_expr_node& node = nodes_[i];
    N* out = values + static_cast<int64_t>(i) * kTile;
    if (node.op == TN_EXPR_CONST) {
      std::fill_n(out, kTile, static_cast<N>(node.imm));
    } else if (node.op == TN_EXPR_INPUT) {
      load(types_[node.a], sources[node.a], at[node.a], strides_[node.a].back(), n, out);
      std::fill_n(out + n, kTile - n, N(1));
    } else {
      const N* a = values + node.a * kTile;
      const N* b = arity(node.op) > 1 ? values + node.b * kTile : a;
      const N* c = arity(node.op) > 2 ? values + node.c * kTile : a;
      instruction<N>(node.op)(a, b, c, bits_, out);
    }
  }
}

// Tiles [lo, hi), counted over the rows of the innermost axis.
template <class N>
void ExactPlan::run_tiles(const void* const* sources, void* target, int64_t lo, int64_t hi) const {
  alignas(64) N values[kMostNodes * kTile];
  int64_t at[kMostInputs];
  const int64_t inner = dims_.back();
  const int64_t tiles = (inner + kTile - 1) / kTile;
  for (int64_t tile = lo; tile < hi; ++tile) {
    const int64_t column = tile % tiles * kTile;
    for (size_t i = 0; i < strides_.size(); ++i) {
      int64_t rest = tile / tiles;
      at[i] = column * strides_[i].back();
      for (size_t axis = dims_.size() - 1; axis-- > 0; rest /= dims_[axis])
        at[i] += rest % dims_[axis] * strides_[i][axis];
    }
    const int64_t n = std::min(kTile, inner - column);
    run_tile(sources, at, n, values);
    const N* result = values + static_cast<int64_t>(nodes_.size() - 1) * kTile;
    store(output_, result, n, target, tile / tiles * inner + column);
  }
}

void ExactPlan::run(const Context& context, const void* const* sources, void* target) const {
  int64_t n = (dims_.back() + kTile - 1) / kTile;
  for (size_t axis = 0; axis + 1 < dims_.size(); ++axis)
    n *= dims_[axis];
  const int64_t tile_bytes = kTile * 8 * static_cast<int64_t>(nodes_.size());
  parallel_for(context.parallel, n, grain_rows(tile_bytes), [&](int64_t lo, int64_t hi) {
    if (domain_ == TN_EXPR_DOMAIN_FLOAT) {
      run_tiles<double>(sources, target, lo, hi);
    } else if (domain_ == TN_EXPR_DOMAIN_INT) {
      run_tiles<int64_t>(sources, target, lo, hi);
    } else {
      run_tiles<uint64_t>(sources, target, lo, hi);
    }
  });
}

}  // namespace tenon::onednn::kernels
