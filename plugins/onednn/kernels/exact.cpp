// SPDX-License-Identifier: Apache-2.0
#include "exact.h"

#include <algorithm>

#include "exact_args.h"
#include "kernel_table.h"
#include "numbers.h"

namespace tenon::onednn::kernels {
namespace {

double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
double sigmoid(double a) {
  const double e = std::exp(-std::fabs(a));
  return a >= 0 ? 1 / (1 + e) : e / (1 + e);
}

using RealOp = void (*)(const double* a, const double* b, const double* c, int64_t n, double* out);

template <class F>
void over_tile(
    const double* a, const double* b, const double* c, int64_t n, double* out, const F& f) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = f(a[i], b[i], c[i]);
}

// The loop of an opcode; nullptr where reals have none.
RealOp real_op(uint32_t op) {
  using N = double;
  switch (op) {
#define TENON_EXACT_REAL(name, formula)                                                        \
  case TN_EXPR_##name:                                                                         \
    return [](const N* x, const N* y, const N* z, int64_t n, N* out) {                         \
      over_tile(x, y, z, n, out,                                                               \
                [](N a, [[maybe_unused]] N b, [[maybe_unused]] N c) -> N { return formula; }); \
    };
#define TENON_EXACT(name, real, integer) TENON_EXACT_REAL(name, real)
#define TENON_EXACT_INTEGER(name, formula)
#include "exact_ops.def"
#undef TENON_EXACT_REAL
#undef TENON_EXACT_INTEGER
#undef TENON_EXACT
    default:
      return nullptr;
  }
}

int arity(uint32_t op) {
  if (op < 16) return 0;
  if (op < 64) return 1;
  return op < 128 ? 2 : 3;
}

// How a domain's numbers are loaded, computed and stored.
struct Reals {
  using Number = double;

  static void load(
      ElementType type, const void* source, int64_t at, int64_t stride, int64_t n, double* to) {
    visit(type, [&]<class T>() {
      const T* from = static_cast<const T*>(source) + at;
      for (int64_t i = 0; i < n; ++i)
        to[i] = number_cast<double>(from[i * stride]);
    });
  }
  static void store(ElementType type, const double* from, int64_t n, void* target, int64_t at) {
    visit(type, [&]<class T>() {
      T* to = static_cast<T*>(target) + at;
      for (int64_t i = 0; i < n; ++i)
        to[i] = number_cast<T>(from[i]);
    });
  }
  static void apply(uint32_t op,
                    const double* a,
                    const double* b,
                    const double* c,
                    uint32_t,
                    int64_t n,
                    double* out) {
    real_op(op)(a, b, c, n, out);
  }
};

class Integers {
 public:
  using Number = int64_t;
  Integers(const Context& context, bool is_unsigned) : is_unsigned_(is_unsigned) {
    context.table->integer_ops(&ops_);
  }

  void load(ElementType type,
            const void* source,
            int64_t at,
            int64_t stride,
            int64_t n,
            int64_t* to) const {
    const char* from = static_cast<const char*>(source) + at * element_bytes(type);
    ops_->load[static_cast<int>(type)](from, stride, n, to);
  }
  void store(ElementType type, const int64_t* from, int64_t n, void* target, int64_t at) const {
    ops_->store[static_cast<int>(type)](from, n,
                                        static_cast<char*>(target) + at * element_bytes(type));
  }
  void apply(uint32_t op,
             const int64_t* a,
             const int64_t* b,
             const int64_t* c,
             uint32_t bits,
             int64_t n,
             int64_t* out) const {
    (is_unsigned_ ? ops_->of_unsigned : ops_->of_signed)[op](a, b, c, bits, n, out);
  }
  bool knows(uint32_t op) const { return ops_->of_signed[op] != nullptr; }

 private:
  bool is_unsigned_;
  const IntegerOps* ops_ = nullptr;
};

std::string why_not(const ExactSpec& spec) {
  if (spec.nodes.empty() || spec.nodes.size() > ExactPlan::kMostNodes)
    return "exact: 1 to 96 nodes";
  if (spec.inputs.size() > ExactPlan::kMostInputs) return "exact: at most 64 inputs";
  const bool is_real = spec.domain == TN_EXPR_DOMAIN_FLOAT;
  const Integers integers(make_context(Level::kBaseline), false);
  for (const tn_expr_node& node : spec.nodes) {
    if (node.op == TN_EXPR_CONST || node.op == TN_EXPR_INPUT) continue;
    bool is_known =
        node.op < 256 && (is_real ? real_op(node.op) != nullptr : integers.knows(node.op));
    if (!is_known) return "exact: opcode " + std::to_string(node.op) + " has no kernel";
  }
  for (const tn_expr_node& node : spec.nodes) {
    const bool reads = node.op == TN_EXPR_INPUT && !is_real;
    if (reads && kernels::is_real(spec.inputs[node.a].type)) return "exact: a real among integers";
  }
  if (!is_real && kernels::is_real(spec.output)) return "exact: a real of integers";
  return {};
}

}  // namespace

std::string ExactPlan::make(const ExactSpec& spec) {
  if (std::string why = why_not(spec); !why.empty()) return why;
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

// Tiles of a row are equally long, so that none is a short remainder.
int64_t ExactPlan::tiles_of_row() const {
  return std::max<int64_t>(1, (dims_.back() + kExactTile - 1) / kExactTile);
}

template <class Domain>
void ExactPlan::run_tile(const Domain& domain,
                         const void* const* sources,
                         const int64_t* at,
                         int64_t n,
                         typename Domain::Number* values) const {
  using N = typename Domain::Number;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const tn_expr_node& node = nodes_[i];
    N* out = values + static_cast<int64_t>(i) * kExactTile;
    if (node.op == TN_EXPR_CONST) {
      std::fill_n(out, n, static_cast<N>(node.imm));
    } else if (node.op == TN_EXPR_INPUT) {
      domain.load(types_[node.a], sources[node.a], at[node.a], strides_[node.a].back(), n, out);
    } else {
      const N* a = values + node.a * kExactTile;
      const N* b = arity(node.op) > 1 ? values + node.b * kExactTile : a;
      const N* c = arity(node.op) > 2 ? values + node.c * kExactTile : a;
      domain.apply(node.op, a, b, c, bits_, n, out);
    }
  }
}

// Tiles [lo, hi), counted over the rows of the innermost axis.
template <class Domain>
void ExactPlan::run_tiles(
    const Domain& domain, const void* const* sources, void* target, int64_t lo, int64_t hi) const {
  using N = typename Domain::Number;
  alignas(64) N values[kMostNodes * kExactTile];
  int64_t at[kMostInputs];
  const int64_t inner = dims_.back();
  const int64_t tiles = tiles_of_row();
  const int64_t length = (inner + tiles - 1) / tiles;
  for (int64_t tile = lo; tile < hi; ++tile) {
    const int64_t column = tile % tiles * length;
    for (size_t i = 0; i < strides_.size(); ++i) {
      int64_t rest = tile / tiles;
      at[i] = column * strides_[i].back();
      for (size_t axis = dims_.size() - 1; axis-- > 0; rest /= dims_[axis])
        at[i] += rest % dims_[axis] * strides_[i][axis];
    }
    const int64_t n = std::min(length, inner - column);
    if (n <= 0) continue;
    run_tile(domain, sources, at, n, values);
    const N* result = values + static_cast<int64_t>(nodes_.size() - 1) * kExactTile;
    domain.store(output_, result, n, target, tile / tiles * inner + column);
  }
}

void ExactPlan::run(const Context& context, const void* const* sources, void* target) const {
  int64_t n = tiles_of_row();
  for (size_t axis = 0; axis + 1 < dims_.size(); ++axis)
    n *= dims_[axis];
  const int64_t length = dims_.back() / tiles_of_row() + 1;
  const int64_t tile_bytes = length * 8 * static_cast<int64_t>(nodes_.size());
  auto run_in = [&](const auto& domain) {
    parallel_for(context.parallel, n, grain_rows(tile_bytes),
                 [&](int64_t lo, int64_t hi) { run_tiles(domain, sources, target, lo, hi); });
  };
  if (domain_ == TN_EXPR_DOMAIN_FLOAT) return run_in(Reals());
  run_in(Integers(context, domain_ != TN_EXPR_DOMAIN_INT));
}

}  // namespace tenon::onednn::kernels
