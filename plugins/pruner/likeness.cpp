// SPDX-License-Identifier: Apache-2.0
#include "likeness.hpp"

#include <cmath>

namespace tenon::pruner {
namespace {

struct Rows {
  const float* data = nullptr;
  int64_t n = 1, width = 0;
  explicit Rows(const Tensor& value) : data(value.data<float>()) {
    DLTensor shape = value.dl();
    n = shape.ndim > 0 ? shape.shape[0] : 1;
    width = n > 0 ? element_count(shape) / n : 0;
  }
};

double product(const float* x, const float* y, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i)
    sum += double{x[i]} * y[i];
  return sum;
}

}  // namespace

double changes(const Tensor& a, const Tensor& b) {
  Rows x(a), y(b);
  double sum = 0;
  for (int64_t s = 0; s < x.n; ++s) {
    const float *p = x.data + s * x.width, *q = y.data + s * x.width;
    double pp = product(p, p, x.width), qq = product(q, q, x.width), pq = product(p, q, x.width);
    sum += 1 - (pp > 0 && qq > 0 ? pq / std::sqrt(pp * qq) : pp == qq ? 1 : 0);
  }
  return sum;
}

Gram Gram::of(const Tensor& value) {
  Rows x(value);
  Gram out;
  out.n = static_cast<size_t>(x.n);
  out.numbers.resize(out.n * out.n);
  for (int64_t i = 0; i < x.n; ++i)
    for (int64_t j = 0; j < i; ++j) {
      double one = product(x.data + i * x.width, x.data + j * x.width, x.width);
      out.numbers[static_cast<size_t>(i * x.n + j)] = one;
      out.numbers[static_cast<size_t>(j * x.n + i)] = one;
    }
  return out;
}

double hsic(const Gram& a, const Gram& b) {
  const auto n = static_cast<double>(a.n);
  double trace = 0, sum_a = 0, sum_b = 0, between = 0;
  for (size_t i = 0; i < a.n; ++i) {
    double row_a = 0, row_b = 0;
    for (size_t j = 0; j < a.n; ++j) {
      double x = a.numbers[i * a.n + j], y = b.numbers[i * a.n + j];
      trace += x * y;  // both are symmetric
      row_a += x;
      row_b += y;
    }
    sum_a += row_a;
    sum_b += row_b;
    between += row_a * row_b;
  }
  double all = trace + sum_a * sum_b / ((n - 1) * (n - 2)) - 2 * between / (n - 2);
  return all / (n * (n - 3));
}

}  // namespace tenon::pruner
