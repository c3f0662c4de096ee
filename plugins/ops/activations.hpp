// SPDX-License-Identifier: Apache-2.0
#pragma once
// The activations of recurrent cells, by ONNX's names.

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

// f(x), with the numbers that some take.
struct Activation {
  double (*f)(double x, double alpha, double beta) = nullptr;
  double alpha = 0, beta = 0;
  const char* op = "";  // the operator that computes it; empty: alpha*x + beta
  int takes = 0;        // of alpha and beta
  double operator()(double x) const { return f(x, alpha, beta); }
};
// The same on a tensor.
Value applied(Builder& b, const Activation& f, Value x);

// The node's, or the defaults: as many as those.
Result<std::vector<Activation>> activations_of(Node node, const std::vector<std::string>& defaults);

}  // namespace tenon::ops
