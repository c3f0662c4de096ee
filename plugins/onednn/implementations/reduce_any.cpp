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

  void add(int64_t dim, int64_t stride) {
    dims[rank] = dim;
    strides[rank++] = stride;
    count *= dim;
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

  template <class A>
  A first() const;
  template <class A>
  A join(A sum, A x) const;
  template <class A>
  A last(A sum, int64_t n) const;
  const char* split(const void* axes_data, Walk* outer, Walk* inner) const;
  const char* run(const kernels::Context& context, void* const* pointers) const;
  template <class T>
  T one(const T* src, const Walk& inner) const;
};

template <class A>
A Reduce::first() const {
  constexpr bool kReal = std::is_same_v<A, double>;
  if (kind == Kind::kProd) return A(1);
  if (kind == Kind::kMax) return kReal ? A(-HUGE_VAL) : std::numeric_limits<A>::lowest();
  if (kind == Kind::kMin) return kReal ? A(HUGE_VAL) : std::numeric_limits<A>::max();
  return A(0);
}

// Integers wrap around.
template <class A>
A Reduce::join(A sum, A x) const {
  switch (kind) {
    case Kind::kProd:
      return wrapping_mul(sum, x);
    case Kind::kMax:
      return x > sum || x != x ? x : sum;
    case Kind::kMin:
      return x < sum || x != x ? x : sum;
    case Kind::kL1:
      return x < A(0) ? wrapping_sub(sum, x) : wrapping_add(sum, x);
    case Kind::kL2:
    case Kind::kSumSquare:
      return wrapping_add(sum, wrapping_mul(x, x));
    default:
      return wrapping_add(sum, x);
  }
}

template <class A>
A Reduce::last(A sum, int64_t n) const {
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
T Reduce::one(const T* src, const Walk& inner) const {
  if (kind == Kind::kLogSumExp) {
    double most = -HUGE_VAL;
    for (int64_t i = 0; i < inner.count; ++i)
      most = std::max(most, static_cast<double>(src[inner.offset(i)]));
    double shift = std::isfinite(most) ? most : 0;
    double sum = 0;
    for (int64_t i = 0; i < inner.count; ++i)
      sum += std::exp(static_cast<double>(src[inner.offset(i)]) - shift);
    return kernels::number_cast<T>(std::log(sum) + shift);
  }
  using A = std::conditional_t<kernels::kIsReal<T>, double,
                               std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>>;
  if constexpr (!kernels::kIsReal<T>) {  // of an empty set: the type's own bounds
    if (inner.count == 0 && kind == Kind::kMax) return std::numeric_limits<T>::lowest();
    if (inner.count == 0 && kind == Kind::kMin) return std::numeric_limits<T>::max();
  }
  A sum = first<A>();
  for (int64_t i = 0; i < inner.count; ++i)
    sum = join<A>(sum, kernels::number_cast<A>(src[inner.offset(i)]));
  return kernels::number_cast<T>(last<A>(sum, inner.count));
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
    kernels::parallel_for(context.parallel, outer.count, kernels::grain_rows(inner.count * 8),
                          [&](int64_t lo, int64_t hi) {
                            for (int64_t i = lo; i < hi; ++i) {
                              const T* src = static_cast<const T*>(pointers[0]) + outer.offset(i);
                              static_cast<T*>(target)[i] = one(src, inner);
                            }
                          });
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
