// SPDX-License-Identifier: Apache-2.0
#include "reduce_any.hpp"

#include <algorithm>
#include <array>

#include "tenon/wrapping.hpp"

#include "dense.hpp"

namespace tenon::onednn {
namespace {

constexpr size_t kMostAxes = 8;

enum class Kind : uint8_t {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kSumSquare,
  kLogSum,
  kLogSumExp
};
struct KindRow {
  std::string_view op;
  Kind kind;
};
constexpr KindRow kKinds[] = {
    {"ReduceSum", Kind::kSum},       {"ReduceMean", Kind::kMean},
    {"ReduceMax", Kind::kMax},       {"ReduceMin", Kind::kMin},
    {"ReduceProd", Kind::kProd},     {"ReduceL1", Kind::kL1},
    {"ReduceL2", Kind::kL2},         {"ReduceSumSquare", Kind::kSumSquare},
    {"ReduceLogSum", Kind::kLogSum}, {"ReduceLogSumExp", Kind::kLogSumExp},
};

// The axes of one part of the tensor, outermost first.
struct Walk {
  std::array<int64_t, kMostAxes> dims = {};
  std::array<int64_t, kMostAxes> strides = {};
  size_t rank = 0;
  int64_t count = 1;

  // Axes that lie end to end are one.
  void add(int64_t dim, int64_t stride) {
    count *= dim;
    if (dim == 1) return;
    if (rank > 0 && strides[rank - 1] == dim * stride) {
      dims[rank - 1] *= dim;
      strides[rank - 1] = stride;
      return;
    }
    dims[rank] = dim;
    strides[rank++] = stride;
  }
  int64_t offset(int64_t flat) const {
    int64_t at = 0;
    for (size_t axis = rank; axis-- > 0; flat /= dims[axis])
      at += flat % dims[axis] * strides[axis];
    return at;
  }
};

struct Reduce {
  Kind kind = Kind::kSum;
  ElementType type = ElementType::kF32;
  ElementType axes_type = ElementType::kI64;
  Dims dims;
  Dims result;
  Dims axes;            // when no input has them
  int64_t n_axes = -1;  // of the input; -1: absent
  bool keeps_dims = true;
  bool is_noop_without_axes = false;

  const char* split(const void* axes_data, Walk* outer, Walk* inner) const;
  const char* run(const kernels::Context& context, void* const* pointers) const;
};

// In what elements of T are joined; integers wrap around.
template <class T>
using Sum = std::conditional_t<kernels::kIsReal<T>,
                               double,
                               std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>>;

// What the elements of a kind have in common while they are joined.
enum class Join : uint8_t { kSum, kMax, kMin, kProd, kL1, kSquares };

Join join_of(Kind kind) {
  switch (kind) {
    case Kind::kMax:
      return Join::kMax;
    case Kind::kMin:
      return Join::kMin;
    case Kind::kProd:
      return Join::kProd;
    case Kind::kL1:
      return Join::kL1;
    case Kind::kL2:
    case Kind::kSumSquare:
      return Join::kSquares;
    default:
      return Join::kSum;
  }
}

// Calls f.operator()<kJoin>().
template <class F>
auto with_kind(Join join, const F& f) {
  switch (join) {
    case Join::kMax:
      return f.template operator()<Join::kMax>();
    case Join::kMin:
      return f.template operator()<Join::kMin>();
    case Join::kProd:
      return f.template operator()<Join::kProd>();
    case Join::kL1:
      return f.template operator()<Join::kL1>();
    case Join::kSquares:
      return f.template operator()<Join::kSquares>();
    default:
      return f.template operator()<Join::kSum>();
  }
}

template <Join kJoin, class A>
A first() {
  constexpr bool kReal = std::is_same_v<A, double>;
  if constexpr (kJoin == Join::kProd) return A(1);
  if constexpr (kJoin == Join::kMax) return kReal ? A(-HUGE_VAL) : std::numeric_limits<A>::lowest();
  if constexpr (kJoin == Join::kMin) return kReal ? A(HUGE_VAL) : std::numeric_limits<A>::max();
  return A(0);
}

// A sum and an element.
template <Join kJoin, class A>
A joined(A sum, A x) {
  if constexpr (kJoin == Join::kProd) return wrapping_mul(sum, x);
  if constexpr (kJoin == Join::kMax) return x > sum || x != x ? x : sum;
  if constexpr (kJoin == Join::kMin) return x < sum || x != x ? x : sum;
  if constexpr (kJoin == Join::kL1) return x < A(0) ? wrapping_sub(sum, x) : wrapping_add(sum, x);
  if constexpr (kJoin == Join::kSquares) return wrapping_add(sum, wrapping_mul(x, x));
  return wrapping_add(sum, x);
}

// Two sums.
template <Join kJoin, class A>
A both(A a, A b) {
  constexpr bool kAdds = kJoin == Join::kL1 || kJoin == Join::kSquares;
  return joined<kAdds ? Join::kSum : kJoin>(a, b);
}

template <class A>
A last(Kind kind, A sum, int64_t n) {
  switch (kind) {
    case Kind::kMean:
      return n == 0 && !std::is_same_v<A, double> ? A(0) : sum / static_cast<A>(n);
    case Kind::kL2:
      return static_cast<A>(std::sqrt(static_cast<double>(sum)));
    case Kind::kLogSum:
      return static_cast<A>(std::log(static_cast<double>(sum)));
    default:
      return sum;
  }
}

template <class T>
T finished(Kind kind, Sum<T> sum, int64_t n) {
  if constexpr (!kernels::kIsReal<T>) {  // of an empty set: the type's own bounds
    if (n == 0 && kind == Kind::kMax) return std::numeric_limits<T>::lowest();
    if (n == 0 && kind == Kind::kMin) return std::numeric_limits<T>::max();
  }
  return kernels::number_cast<T>(last(kind, sum, n));
}

template <Join kJoin, class T>
Sum<T> sum_of_run(const T* src, int64_t n, int64_t stride) {
  using A = Sum<T>;
  A sum = first<kJoin, A>();
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i)
      sum = joined<kJoin>(sum, kernels::number_cast<A>(src[i]));
    return sum;
  }
  for (int64_t i = 0; i < n; ++i)
    sum = joined<kJoin>(sum, kernels::number_cast<A>(src[i * stride]));
  return sum;
}

// One element of the result: runs along the innermost axis that goes.
template <Join kJoin, class T>
Sum<T> sum_of(const T* src, const Walk& inner, int64_t lo, int64_t hi) {
  const int64_t n = inner.rank == 0 ? 1 : inner.dims[inner.rank - 1];
  const int64_t stride = inner.rank == 0 ? 1 : inner.strides[inner.rank - 1];
  Sum<T> sum = first<kJoin, Sum<T>>();
  for (int64_t i = lo; i < hi;) {
    const int64_t end = std::min(hi, (i / n + 1) * n);
    sum = both<kJoin>(sum, sum_of_run<kJoin>(src + inner.offset(i), end - i, stride));
    i = end;
  }
  return sum;
}

// The pieces of a sum over all of a tensor do not depend on the number of threads.
constexpr int64_t kMostPieces = 64;

template <Join kJoin, class T>
Sum<T> sum_of_all(const kernels::Context& context, const T* src, const Walk& inner) {
  constexpr int64_t kLeastPiece = 1 << 14;
  const int64_t n = std::clamp<int64_t>(inner.count / kLeastPiece, 1, kMostPieces);
  std::array<Sum<T>, kMostPieces> sums;
  kernels::parallel_for(context.parallel, n, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo; p < hi; ++p)
      sums[static_cast<size_t>(p)] =
          sum_of<kJoin>(src, inner, inner.count * p / n, inner.count * (p + 1) / n);
  });
  for (int64_t p = 1; p < n; ++p)
    sums[0] = both<kJoin>(sums[0], sums[static_cast<size_t>(p)]);
  return sums[0];
}

// What stays lies end to end behind one axis that goes: whole rows are joined, in blocks that stay
// in registers and the first cache.
constexpr int64_t kColumns = 256;

template <Join kJoin, class T>
void sum_rows(const Reduce& reduce, const T* src, int64_t k, int64_t stride, int64_t n, T* out) {
  std::array<Sum<T>, kColumns> sums;
  std::fill_n(sums.begin(), n, first<kJoin, Sum<T>>());
  for (int64_t row = 0; row < k; ++row)
    for (int64_t i = 0; i < n; ++i)
      sums[static_cast<size_t>(i)] = joined<kJoin>(
          sums[static_cast<size_t>(i)], kernels::number_cast<Sum<T>>(src[row * stride + i]));
  for (int64_t i = 0; i < n; ++i)
    out[i] = finished<T>(reduce.kind, sums[static_cast<size_t>(i)], k);
}

template <class T>
T log_sum_exp(const T* src, const Walk& inner) {
  double most = -HUGE_VAL;
  for (int64_t i = 0; i < inner.count; ++i)
    most = std::max(most, static_cast<double>(src[inner.offset(i)]));
  double shift = std::isfinite(most) ? most : 0;
  double sum = 0;
  for (int64_t i = 0; i < inner.count; ++i)
    sum += std::exp(static_cast<double>(src[inner.offset(i)]) - shift);
  return kernels::number_cast<T>(std::log(sum) + shift);
}

// Calls f(lo, hi) over the elements of the result.
template <class F>
void over_results(const kernels::Context& context, const Walk& outer, const Walk& inner, F f) {
  kernels::parallel_for(context.parallel, outer.count, kernels::grain_rows(inner.count * 8), f);
}

template <Join kJoin, class T>
void run_join(const kernels::Context& context,
              const Reduce& reduce,
              const Walk& outer,
              const Walk& inner,
              const T* src,
              T* out) {
  if (outer.count == 1) {
    *out = finished<T>(reduce.kind, sum_of_all<kJoin>(context, src, inner), inner.count);
    return;
  }
  const bool is_rows = inner.rank == 1 && outer.rank > 0 && outer.strides[outer.rank - 1] == 1;
  if (!is_rows) {
    over_results(context, outer, inner, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i)
        out[i] = finished<T>(
            reduce.kind, sum_of<kJoin>(src + outer.offset(i), inner, 0, inner.count), inner.count);
    });
    return;
  }
  const int64_t width = outer.dims[outer.rank - 1];
  over_results(context, outer, inner, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi;) {
      const int64_t n = std::min({hi - i, (i / width + 1) * width - i, kColumns});
      sum_rows<kJoin>(reduce, src + outer.offset(i), inner.dims[0], inner.strides[0], n, out + i);
      i += n;
    }
  });
}

// outer: the axes that stay, inner: those that go.
const char* Reduce::split(const void* axes_data, Walk* outer, Walk* inner) const {
  std::array<bool, kMostAxes> goes = {};
  int64_t n = n_axes >= 0 ? n_axes : static_cast<int64_t>(axes.size());
  for (int64_t i = 0; i < n; ++i) {
    int64_t axis = n_axes >= 0 ? integer_at(axes_data, axes_type, i) : axes[static_cast<size_t>(i)];
    axis = positive_axis(axis, dims.size());
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return "an axis is out of range";
    goes[static_cast<size_t>(axis)] = true;
  }
  if (n == 0) goes.fill(!is_noop_without_axes);
  std::array<int64_t, kMostAxes> strides = {};
  int64_t stride = 1;
  for (size_t axis = dims.size(); axis-- > 0; stride *= dims[axis])
    strides[axis] = stride;
  size_t at = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    (goes[axis] ? inner : outer)->add(dims[axis], strides[axis]);
    if (goes[axis] && !keeps_dims) continue;
    if (at >= result.size() || result[at] != (goes[axis] ? 1 : dims[axis])) {
      return "the axes give another shape than was compiled";
    }
    ++at;
  }
  return at == result.size() ? nullptr : "the axes give another shape than was compiled";
}

const char* Reduce::run(const kernels::Context& context, void* const* pointers) const {
  Walk outer;
  Walk inner;
  if (const char* why = split(n_axes >= 0 ? pointers[1] : nullptr, &outer, &inner)) return why;
  void* target = pointers[n_axes >= 0 ? 2 : 1];
  kernels::visit(type, [&]<class T>() {
    const T* src = static_cast<const T*>(pointers[0]);
    T* out = static_cast<T*>(target);
    if (kind == Kind::kLogSumExp)
      return over_results(context, outer, inner, [&](int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; ++i)
          out[i] = log_sum_exp(src + outer.offset(i), inner);
      });
    with_kind(join_of(kind),
              [&]<Join kJoin>() { run_join<kJoin>(context, *this, outer, inner, src, out); });
  });
  return nullptr;
}

}  // namespace

std::string refuse_reduce_any(const Graph& graph, const Node& node) {
  if (graph.values[node.inputs[0]].dims.size() > kMostAxes) return "more than eight axes";
  return is_integer_parameter(graph, node, 1) ? "" : "only i32 and i64 for axes";
}

std::string refuse_sum_to(const Graph& graph, const Node& node) {
  const Dims& from = graph.values[node.inputs[0]].dims;
  const Dims& to = graph.values[node.outputs[0]].dims;
  if (from.size() > kMostAxes || to.size() > from.size()) return "more than eight axes";
  for (size_t i = 0; i < to.size(); ++i) {
    int64_t extent = from[i + from.size() - to.size()];
    if (to[i] != extent && to[i] != 1) return "shapes that do not broadcast";
  }
  return {};
}

void lower_reduce_any(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& src = graph.values[node.inputs[0]];
  Reduce reduce;
  for (const KindRow& row : kKinds) {
    if (row.op == node.op) reduce.kind = row.kind;
  }
  reduce.type = src.type;
  reduce.dims = src.dims;
  reduce.result = graph.values[node.outputs[0]].dims;
  reduce.axes = node.integers("axes");
  if (node.input(1) != kNone) {
    reduce.axes_type = graph.values[node.inputs[1]].type;
    reduce.n_axes = graph.values[node.inputs[1]].count();
  }
  reduce.keeps_dims = node.integer("keepdims", 1) != 0;
  reduce.is_noop_without_axes = node.integer("noop_with_empty_axes", 0) != 0;
  bool has_slot = node.inputs.size() > 1;  // an absent axes input keeps its place
  lower_dense(lowering, index, "tenon:reduce_any",
              [reduce, has_slot](const kernels::Context& context, void* const* pointers) {
                void* without[] = {pointers[0], pointers[has_slot ? 2 : 1]};
                return reduce.run(context, reduce.n_axes >= 0 ? pointers : without);
              });
}

}  // namespace tenon::onednn
