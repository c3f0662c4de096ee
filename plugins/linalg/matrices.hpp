// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the rows share: stacks of matrices in and out of tensors, their types, and parts of
// gradients. Kernels compute in double whatever the type is.

#include <Eigen/Core>
#include <mutex>
#include <string>
#include <vector>

#include "tenon/sdk/role/operands.hpp"
#include "tenon/sdk/splitmix.hpp"

namespace tenon::linalg {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Matrices of one size, one behind the other; leading axes count them.
struct Stack {
  std::vector<int64_t> batch;
  int64_t rows = 0, columns = 0;
  std::vector<double> numbers = {};

  Stack(std::vector<int64_t> leading, int64_t n_rows, int64_t n_columns);
  int64_t count() const { return element_count(batch); }
  Eigen::Map<Matrix> operator[](int64_t i) {
    return {numbers.data() + i * rows * columns, rows, columns};
  }
  Eigen::Map<const Matrix> operator[](int64_t i) const {
    return {numbers.data() + i * rows * columns, rows, columns};
  }
};
Result<Stack> read(const Call& call, uint64_t input);
// The numbers as output i; its axes are the batch's, then `last`.
Status write(const Call& call, uint64_t i, const Stack& from, std::vector<int64_t> last);

// body(i), which gives a Status, for the matrices of a stack; the failure of the first one in
// order.
template <class Body>
Status for_each(const Call& call, int64_t count, Body body) {
  std::mutex lock;
  int64_t first = count;
  Status failed;
  auto run = [&](uint64_t begin, uint64_t end) {
    for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
      Status status = body(i);
      if (status.ok()) continue;
      std::lock_guard hold(lock);
      if (i >= first) continue;
      first = i;
      failed = std::move(status).in(cat("matrix ", i, " of ", count));
    }
  };
  parallel_for(call.ctx(), static_cast<uint64_t>(count), 1, run);
  return failed;
}
// A power of two with whose square a matrix is divided, so that its largest number is near 1 and
// squares of numbers neither overflow nor vanish; no digit changes. Refuses infinities and NaN, of
// which the iterations would never get rid.
Result<double> factor_of(const Eigen::Ref<const Matrix>& x);

// Types: axis i of x counted from its end (1: the last), the lesser of the last two, and the
// leading axes of x with others behind them.
struct Axis {
  int64_t size = TN_DIM_UNKNOWN;
  std::string symbol = {};
};
Axis axis_from_end(const Type& x, size_t i);
Axis lesser_axis(const Type& x);
Type stacked(const Type& x, const std::vector<Axis>& last);
// Sets outputs to these types; all of unknown rank where x is.
Status set_types(EditView edit, Node node, const std::vector<std::vector<Axis>>& last);

// Parts of gradients.
Value transposed(Builder& b, Value x);
Value product(Builder& b, Value x, Value y);
Value solved(Builder& b, Value a, Value y);  // a^-1 y
// The sum of x and its transpose, halved.
Value symmetric(Builder& b, Value x);
// [n, n] of x's type by row and column.
Value pattern(Builder& b, Value x, int64_t n, double (*number)(int64_t row, int64_t column));
Value diagonal_matrix(Builder& b, Value x, int64_t n);  // of [.., n]
// Below this, [.., 1, 1], differences of x [.., n] are roundings: n of those of the largest.
Value rounding_of(Builder& b, Value x, int64_t n);
// 1/x, and 0 where x is no larger than `least`.
Value reciprocal_or_zero(Builder& b, Value x, Value least);
// How large the last axis but i - 1 is; the error says who needs it.
Result<int64_t> known_size(Value x, size_t from_end, std::string_view who);

// Batch column: examples are more matrices.
Status batch_as_matrices(Batching& b);
// Floating-point operations for n^3 * factor for each matrix, and bytes of all operands.
OpCost cubic_cost(Node node, double factor);

// A matrix [1 or 2, n, n] of random numbers as input 0; symmetric and positive definite where
// asked.
struct Sample : SampleIntegers {
  EditView edit;
  Sample(EditView into, uint64_t seed) : SampleIntegers(seed), edit(into) {}
  Result<Value> input(std::string_view name, const std::vector<int64_t>& dims) const {
    return edit.input(name, Type(TN_F32, dims));
  }
};

}  // namespace tenon::linalg
