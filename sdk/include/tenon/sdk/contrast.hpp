// SPDX-License-Identifier: Apache-2.0
#pragma once
// InfoNCE, as losses and distillation build it (van den Oord, Li and Vinyals, "Representation
// learning with contrastive predictive coding", 2018, equation 4; in both directions as in CLIP,
// Radford et al. 2021).

#include "tenon/sdk/build.hpp"

namespace tenon {

// x, y: [n, d], and row i of one belongs to row i of the other; temperature: a scalar of their
// type. For each row i: -log(exp(x_i y_i / t) / sum_j exp(x_i y_j / t)), with `both` the mean of
// that and of the same for y_i among all x. [n]. B is Builder, or builds nodes as Builder does.
template <class B>
Value info_nce(B& b, Value x, Value y, Value temperature, bool both) {
  Value transposed = b.op("Transpose", {y}, {{"perm", std::vector<int64_t>{1, 0}}});
  Value scores = b.op("Div", {b.op("MatMul", {x, transposed}), temperature});
  Value products = b.op("Mul", {x, y});
  Value own = b.op("ReduceSum", {products, b.ints({-1})}, {{"keepdims", 0}});
  own = b.op("Div", {own, temperature});
  auto among = [&](int64_t axis) {
    Value all = b.op("ReduceLogSumExp", {scores, b.ints({axis})}, {{"keepdims", 0}});
    return b.op("Sub", {all, own});
  };
  Value parts = among(1);
  if (!both) return parts;
  return b.op("Mul", {b.op("Add", {parts, among(0)}), b.number(0.5, x.dtype())});
}

}  // namespace tenon
