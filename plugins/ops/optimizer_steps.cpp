// SPDX-License-Identifier: Apache-2.0
// ONNX's training steps: Adagrad (Duchi et al. 2011), Adam (Kingma and Ba 2015), Momentum. Inputs
// are the rate, the count of steps, then all parameters, all gradients, and all of each state.
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// What one element has: a parameter, its gradient, and up to two states; they become the next.
struct Element {
  double x, gradient, first, second;
};
struct Step {
  double rate;
  int64_t count;
  Node node;
  double number(const char* name, double fallback = 0) const {
    return node.attr_float(name, fallback);
  }
};
using Rule = void (*)(const Step&, Element&);

void adagrad(const Step& s, Element& e) {
  double rate = s.rate / (1 + static_cast<double>(s.count) * s.number("decay_factor"));
  double gradient = s.number("norm_coefficient") * e.x + e.gradient;
  e.first += gradient * gradient;
  e.x -= rate * gradient / (std::sqrt(e.first) + s.number("epsilon", 1e-6));
}

void adam(const Step& s, Element& e) {
  double alpha = s.number("alpha", 0.9), beta = s.number("beta", 0.999), rate = s.rate;
  double gradient = s.number("norm_coefficient") * e.x + e.gradient;
  e.first = alpha * e.first + (1 - alpha) * gradient;
  e.second = beta * e.second + (1 - beta) * gradient * gradient;
  if (s.count > 0) {
    auto t = static_cast<double>(s.count);
    rate *= std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(alpha, t));
  }
  e.x -= rate * e.first / (std::sqrt(e.second) + s.number("epsilon", 1e-6));
  e.x *= 1 - s.number("norm_coefficient_post");
}

void momentum(const Step& s, Element& e) {
  double gradient = s.number("norm_coefficient") * e.x + e.gradient;
  double alpha = s.number("alpha"), beta = s.count > 0 ? s.number("beta") : 1;
  e.first = alpha * e.first + beta * gradient;
  bool nesterov = s.node.attr_text("mode") == "nesterov";
  e.x -= s.rate * (nesterov ? gradient + alpha * e.first : e.first);
}

// The same on tensors, for `decompose`.
struct TensorStep {
  Builder& b;
  Node node;
  Value rate, count;  // of the parameters' type
  Value x, gradient, first, second;
  Value number(double v) const { return b.number(v, x.dtype()); }
  Value attr(const char* name, double fallback = 0) const {
    return number(node.attr_float(name, fallback));
  }
  // share*a + (1-share)*z
  Value mixed(const char* share, double fallback, Value a, Value z) const {
    double part = node.attr_float(share, fallback);
    return b.add(b.mul(number(part), a), b.mul(number(1 - part), z));
  }
};
using TensorRule = void (*)(TensorStep&);

void adagrad_parts(TensorStep& s) {
  Builder& b = s.b;
  Value rate = b.div(s.rate, b.add(s.number(1), b.mul(s.count, s.attr("decay_factor"))));
  s.first = b.add(s.first, b.mul(s.gradient, s.gradient));
  Value root = b.add(b.op("Sqrt", {s.first}), s.attr("epsilon", 1e-6));
  s.x = b.sub(s.x, b.div(b.mul(rate, s.gradient), root));
}
void adam_parts(TensorStep& s) {
  Builder& b = s.b;
  s.first = s.mixed("alpha", 0.9, s.first, s.gradient);
  s.second = s.mixed("beta", 0.999, s.second, b.mul(s.gradient, s.gradient));
  auto left = [&](const char* name, double fallback) {
    return b.sub(s.number(1), b.op("Pow", {s.attr(name, fallback), s.count}));
  };
  Value begun = b.op("Greater", {s.count, s.number(0)});
  Value bias = b.div(b.op("Sqrt", {left("beta", 0.999)}), left("alpha", 0.9));
  Value rate = b.mul(s.rate, b.op("Where", {begun, bias, s.number(1)}));
  Value root = b.add(b.op("Sqrt", {s.second}), s.attr("epsilon", 1e-6));
  s.x = b.sub(s.x, b.div(b.mul(rate, s.first), root));
  s.x = b.mul(s.x, s.number(1 - s.node.attr_float("norm_coefficient_post")));
}
void momentum_parts(TensorStep& s) {
  Builder& b = s.b;
  Value begun = b.op("Greater", {s.count, s.number(0)});
  Value beta = b.op("Where", {begun, s.attr("beta"), s.number(1)});
  s.first = b.add(b.mul(s.attr("alpha"), s.first), b.mul(beta, s.gradient));
  bool nesterov = s.node.attr_text("mode") == "nesterov";
  Value way = nesterov ? b.add(s.gradient, b.mul(s.attr("alpha"), s.first)) : s.first;
  s.x = b.sub(s.x, b.mul(s.rate, way));
}

template <uint64_t kStates, TensorRule kRule>
Result<std::vector<Value>> step_parts(EditView edit, Node node) {
  Builder b(edit);
  uint64_t n = (node.n_inputs() - 2) / (2 + kStates);
  std::vector<Value> out(node.n_outputs());
  for (uint64_t p = 0; p < n; ++p) {
    auto input = [&](uint64_t k) { return node.input(2 + k * n + p); };
    uint32_t dtype = input(0).dtype();
    TensorStep s{
        b,        node,     b.cast(node.input(0), dtype),    b.cast(node.input(1), dtype), input(0),
        input(1), input(2), kStates > 1 ? input(3) : Value{}};
    s.gradient = b.add(b.mul(s.attr("norm_coefficient"), s.x), s.gradient);
    kRule(s);
    const Value results[] = {s.x, s.first, s.second};
    for (uint64_t k = 0; k < 1 + kStates; ++k)
      out[k * n + p] = results[k];
  }
  TN_CHECK(b.status());
  return out;
}

// kStates per parameter: the outputs are the parameters, then those.
template <uint64_t kStates>
Status step_shape(EditView edit, Node node) {
  TN_CHECK(check_operands(node, "rate: float[one], count: int[one], tensors: any..."));
  uint64_t n = node.n_inputs() < 2 ? 0 : (node.n_inputs() - 2) / (2 + kStates);
  if (node.n_inputs() != 2 + n * (2 + kStates) || node.n_outputs() != n * (1 + kStates))
    return invalid(cat("expected rate, count, and ", 2 + kStates, " tensors for each parameter"));
  for (uint64_t p = 0; p < n; ++p) {
    Type of = node.input(2 + p).type();
    for (uint64_t k = 1; k < 2 + kStates; ++k) {
      Type type = node.input(2 + k * n + p).type();
      bool known = of.is_static() && type.is_static();
      if (!node.input(2 + k * n + p) || (known && of.dims != type.dims))
        return invalid(cat("parameter ", p, ": expected gradient and states of its shape"));
    }
  }
  for (uint64_t i = 0; i < node.n_outputs(); ++i)
    TN_CHECK(set_output(edit, node, i, node.input(i < n ? 2 + i : 2 + n + i).type()));
  return {};
}

template <uint64_t kStates, Rule kRule>
Status step_ref(const Call& call) {
  std::string_view mode = call.node().attr_text("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    return invalid(cat("mode: expected one of standard, nesterov, got '", mode, "'"));
  uint64_t n = (call.n_in() - 2) / (2 + kStates);
  Step step{load_number(call.data<char>(0), call.dtype(0), 0), read_ints(call.in(1)).at(0),
            call.node()};
  for (uint64_t p = 0; p < n; ++p) {
    for (uint64_t k = 1; k < 2 + kStates; ++k)
      if (to_vector(call.shape(2 + k * n + p)) != to_vector(call.shape(2 + p)))
        return invalid(cat("parameter ", p, ": expected gradient and states of its shape"));
    auto load = [&](uint64_t k, int64_t i) {
      uint64_t in = 2 + k * n + p;
      return load_number(call.data<char>(in), call.dtype(in), i);
    };
    DLTensor outs[1 + kStates];
    for (uint64_t k = 0; k < 1 + kStates; ++k) {
      TN_TRY(out, call.out(k * n + p, call.dtype(2 + p), call.shape(2 + p)));
      outs[k] = out;
    }
    for (int64_t i = 0; i < element_count(call.in(2 + p)); ++i) {
      Element e{load(0, i), load(1, i), load(2, i), kStates > 1 ? load(3, i) : 0};
      kRule(step, e);
      const double results[] = {e.x, e.first, e.second};
      for (uint64_t k = 0; k < 1 + kStates; ++k)
        store_number(data_of<char>(outs[k]), call.dtype(2 + p), i, results[k]);
    }
  }
  return {};
}

template <uint64_t kStates>
Result<Node> step_sample(EditView edit, uint64_t seed, const char* type) {
  Sampler random(edit, seed);
  TN_TRY(rate, random.input(TN_F32, {}));
  TN_TRY(count, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(0, 3)}));
  std::vector<Value> inputs{rate, count};
  std::vector<int64_t> shapes[] = {random.shape(1, 2), random.shape(1, 2)};
  auto n = static_cast<uint64_t>(random.integer(1, 2));
  for (uint64_t k = 0; k < 2 + kStates; ++k) {
    for (uint64_t p = 0; p < n; ++p) {
      TN_TRY(x, random.input(TN_F32, shapes[p]));
      if (k < 2) {
        inputs.push_back(x);
        continue;
      }
      TN_TRY(positive, edit.op("Abs", {x}));  // sums of squares
      inputs.push_back(positive);
    }
  }
  std::vector<Attr> attrs{{"norm_coefficient", 0.01}, {"epsilon", 0.1}};
  if (kStates == 1 && std::string_view(type) == "Momentum")
    attrs = {{"norm_coefficient", 0.01},
             {"alpha", 0.9},
             {"beta", 0.5},
             {"mode", random.coin() ? "nesterov" : "standard"}};
  return edit.add({.type = type,
                   .inputs = inputs,
                   .attrs = attrs,
                   .n_outputs = n * (1 + kStates),
                   .domain = "ai.onnx.preview.training"});
}

template <uint64_t kStates, Rule kRule, TensorRule kParts>
constexpr tn_op step_row(const char* type,
                         const char* attributes,
                         decltype(tn_op::sample) sample_column) {
  return op_row({.type = type,
                 .since = 1,
                 .domain = "ai.onnx.preview.training",
                 .attributes = attributes,
                 .shape = shape<step_shape<kStates>>,
                 .decompose = decompose<step_parts<kStates, kParts>>,
                 .cost = cost<move_cost>,
                 .ref = ref<step_ref<kStates, kRule>>,
                 .sample = sample_column});
}
constexpr tn_op kAdagrad = step_row<1, adagrad, adagrad_parts>(
    "Adagrad",
    R"([{"name": "decay_factor", "type": "float", "default": 0.0},
        {"name": "epsilon", "type": "float", "default": 1e-6},
        {"name": "norm_coefficient", "type": "float", "default": 0.0}])",
    sample<[](EditView e, uint64_t seed) { return step_sample<1>(e, seed, "Adagrad"); }>);
constexpr tn_op kAdam = step_row<2, adam, adam_parts>(
    "Adam",
    R"([{"name": "alpha", "type": "float", "default": 0.9},
        {"name": "beta", "type": "float", "default": 0.999},
        {"name": "epsilon", "type": "float", "default": 1e-6},
        {"name": "norm_coefficient", "type": "float", "default": 0.0},
        {"name": "norm_coefficient_post", "type": "float", "default": 0.0}])",
    sample<[](EditView e, uint64_t seed) { return step_sample<2>(e, seed, "Adam"); }>);
constexpr tn_op kMomentum = step_row<1, momentum, momentum_parts>(
    "Momentum",
    R"([{"name": "alpha", "type": "float"}, {"name": "beta", "type": "float"},
        {"name": "mode", "type": "string", "default": "standard"},
        {"name": "norm_coefficient", "type": "float"}])",
    sample<[](EditView e, uint64_t seed) { return step_sample<1>(e, seed, "Momentum"); }>);

}  // namespace

TENON_OPS(optimizer_steps, &kAdagrad, &kAdam, &kMomentum)

}  // namespace tenon::ops
