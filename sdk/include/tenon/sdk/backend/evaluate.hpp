// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a pointwise operator, or a group of them, from its expression: elements as double or as
// 64-bit integers, the arithmetic by the host's evaluator (abi/expr.md), so that an expression has
// one meaning. Right for every program; a backend's own code is faster.

#include <algorithm>
#include <mutex>
#include <vector>

#include "tenon/sdk/backend/elements.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon::backend {

// in: dense tensors, NULL where absent; out: dense, of the broadcast shape.
Status run_program(tn_ctx* ctx,
                   const tn_expr_program& program,
                   std::span<const DLTensor* const> in,
                   const DLTensor& out);

// NumPy's broadcast of the shapes of those that are present.
Result<std::vector<int64_t>> broadcast_shape(std::span<const DLTensor* const> in);

namespace detail {

// Element strides of an input in the result's index space: 0 where it broadcasts.
inline std::vector<int64_t> broadcast_strides(const DLTensor& in, std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  int64_t stride = 1;
  for (int32_t d = in.ndim; d-- > 0;) {
    size_t at = shape.size() - static_cast<size_t>(in.ndim - d);
    if (in.shape[d] != 1) strides[at] = stride;
    stride *= in.shape[d];
  }
  return strides;
}

// Where element `flat` of the result lies in an input of these strides.
inline int64_t place_of(int64_t flat,
                        std::span<const int64_t> shape,
                        std::span<const int64_t> strides) {
  int64_t at = 0;
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d])
    at += flat % shape[d] * strides[d];
  return at;
}

constexpr int64_t kBlock = 1024;

// What the elements are computed from; one for each thread at work.
template <class Number>
struct Block {
  const tn_expr_program& program;
  std::span<const DLTensor* const> in;
  std::span<const Load<Number>> loads;
  std::span<const std::vector<int64_t>> strides;
  std::vector<std::vector<Number>> numbers = std::vector<std::vector<Number>>(in.size());
  std::vector<const void*> arrays = std::vector<const void*>(in.size(), nullptr);
  std::vector<Number> results = std::vector<Number>(kBlock);

  // The host says what a program means: elements [first, first + n) of the result, n <= kBlock.
  Status evaluate(int64_t first, int64_t n, std::span<const int64_t> shape) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (!in[i]) continue;
      numbers[i].resize(kBlock);
      arrays[i] = numbers[i].data();
      const char* data = data_of<const char>(*in[i]);
      bool is_whole = std::ranges::equal(shape_of(*in[i]), shape);
      for (int64_t k = 0; k < n; ++k)
        numbers[i][static_cast<size_t>(k)] =
            loads[i](data, is_whole ? first + k : place_of(first + k, shape, strides[i]));
    }
    return Status(services.op->evaluate(&program, arrays.data(), arrays.size(),
                                        static_cast<uint64_t>(n), results.data()));
  }
};

template <class Number>
Status run(tn_ctx* ctx,
           const tn_expr_program& program,
           std::span<const DLTensor* const> in,
           const DLTensor& out) {
  std::span<const int64_t> shape = shape_of(out);
  std::vector<Load<Number>> loads(in.size(), nullptr);
  std::vector<std::vector<int64_t>> strides(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) continue;
    loads[i] = loader<Number>(dtype_of(*in[i]));
    if (!loads[i]) return unsupported(cat("element type ", dtype_name(dtype_of(*in[i]))));
    strides[i] = broadcast_strides(*in[i], shape);
  }
  Store<Number> store = storer<Number>(dtype_of(out));
  if (!store) return unsupported(cat("element type ", dtype_name(dtype_of(out))));
  std::mutex lock;
  Status failed;
  parallel_for(ctx, static_cast<uint64_t>(element_count(shape)), kBlock,
               [&](uint64_t begin, uint64_t end) {
                 Block<Number> block{program, in, loads, strides};
                 auto last = static_cast<int64_t>(end);
                 for (auto first = static_cast<int64_t>(begin); first < last; first += kBlock) {
                   int64_t n = std::min(kBlock, last - first);
                   Status evaluated = block.evaluate(first, n, shape);
                   if (!evaluated.ok()) {
                     std::lock_guard hold(lock);
                     failed = std::move(evaluated);
                     return;
                   }
                   for (int64_t k = 0; k < n; ++k)
                     store(data_of<char>(out), first + k, block.results[static_cast<size_t>(k)]);
                 }
               });
  return failed;
}

}  // namespace detail

inline Status run_program(tn_ctx* ctx,
                          const tn_expr_program& program,
                          std::span<const DLTensor* const> in,
                          const DLTensor& out) {
  bool is_real = program.domain == TN_EXPR_DOMAIN_FLOAT;
  return (is_real ? detail::run<double> : detail::run<int64_t>)(ctx, program, in, out);
}

inline Result<std::vector<int64_t>> broadcast_shape(std::span<const DLTensor* const> in) {
  std::vector<int64_t> shape;
  for (const DLTensor* tensor : in) {
    if (!tensor) continue;
    std::span<const int64_t> dims = shape_of(*tensor);
    if (dims.size() > shape.size()) shape.insert(shape.begin(), dims.size() - shape.size(), 1);
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t& joined = shape[shape.size() - dims.size() + i];
      if (joined == 1) joined = dims[i];
      if (dims[i] != 1 && dims[i] != joined) {
        return invalid(cat("shapes do not broadcast: dimension ", dims[i], " meets ", joined));
      }
    }
  }
  return shape;
}

}  // namespace tenon::backend
