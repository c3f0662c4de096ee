// SPDX-License-Identifier: Apache-2.0
// tenon:CtcLoss(scores [n, t, c], targets [n, s], lengths [n]) -> loss [n], and its gradient
// tenon:CtcLossGrad -> [n, t, c] (Graves et al. 2006, "Connectionist temporal classification",
// sections 4.1 and 4.2), over the log softmax of the scores: both know the whole path from scores
// to loss, so that nothing cancels. A target ends at its first negative number; lengths say how
// many frames of a sample count, all of them where absent. With l = blank, y1, blank, ..., blank:
//   a_t(s) = p_t(l_s) + logsumexp(a(s), a(s - 1), a(s - 2) if l_s is no blank and not l_{s-2})
// at the frame before; loss = -logsumexp of the last two at the end. b is the same from the end,
// with p_t in it as well, and d loss/d score_t(k) = softmax_t(k) - sum_{s: l_s = k} exp(a + b - p_t
// + loss).
#include <algorithm>
#include <cmath>
#include <limits>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
using Logs = std::vector<double>;

double log_add(double a, double b) {
  double high = std::max(a, b);
  if (high == kNever) return kNever;
  return high + std::log1p(std::exp(std::min(a, b) - high));
}

// One sample: logarithms of probabilities [frames, classes], and the target with its blanks.
struct Sample {
  int64_t frames, classes;
  Logs log_p;
  std::vector<int64_t> labels;

  int64_t states() const { return static_cast<int64_t>(labels.size()); }
  double p(int64_t t, int64_t s) const {
    return log_p[static_cast<size_t>(t * classes + labels[static_cast<size_t>(s)])];
  }
  // Whether a path may go from s - 2 to s: past a blank, between two classes that differ.
  bool skips(int64_t s) const {
    return s >= 2 && labels[static_cast<size_t>(s)] != labels[0] &&
           labels[static_cast<size_t>(s)] != labels[static_cast<size_t>(s - 2)];
  }
};

// a, or b of the reversed sample: [frames, states].
Logs along(const Sample& of) {
  int64_t n = of.states();
  Logs a(static_cast<size_t>(of.frames * n), kNever);
  if (of.frames == 0) return a;
  auto at = [&](int64_t t, int64_t s) -> double& { return a[static_cast<size_t>(t * n + s)]; };
  for (int64_t s = 0; s < std::min<int64_t>(n, 2); ++s)
    at(0, s) = of.p(0, s);
  for (int64_t t = 1; t < of.frames; ++t) {
    for (int64_t s = 0; s < n; ++s) {
      double sum = at(t - 1, s);
      if (s >= 1) sum = log_add(sum, at(t - 1, s - 1));
      if (of.skips(s)) sum = log_add(sum, at(t - 1, s - 2));
      at(t, s) = sum + of.p(t, s);
    }
  }
  return a;
}

double loss_of(const Sample& of, const Logs& a) {
  if (of.frames == 0) return of.states() == 1 ? 0 : -kNever;
  double last = a.back();
  return -(of.states() > 1 ? log_add(last, a[a.size() - 2]) : last);
}

Logs reversed_along(const Sample& of) {
  Sample back = of;
  std::reverse(back.labels.begin(), back.labels.end());
  for (int64_t t = 0; t < of.frames; ++t)
    std::copy_n(of.log_p.begin() + (of.frames - 1 - t) * of.classes, of.classes,
                back.log_p.begin() + t * of.classes);
  Logs b = along(back);
  std::reverse(b.begin(), b.end());
  return b;
}

struct Shapes {
  int64_t n, frames, classes, longest, blank;
  std::vector<int64_t> targets, lengths;
  bool zero_infinity;
};

Result<Shapes> shapes_of(const Call& call) {
  std::span<const int64_t> x = call.shape(0), y = call.shape(1);
  if (x.size() != 3 || y.size() != 2 || x[0] != y[0])
    return invalid("expected scores [n, t, c] and targets [n, s]");
  Node node = call.node();
  Shapes out{x[0],
             x[1],
             x[2],
             y[1],
             node.attr_int("blank", 0),
             read_ints(call.in(1)),
             {},
             node.attr_int("zero_infinity", 0) != 0};
  out.lengths.assign(static_cast<size_t>(out.n), out.frames);
  if (call.has(2)) out.lengths = read_ints(call.in(2));
  if (static_cast<int64_t>(out.lengths.size()) != out.n)
    return invalid(cat("lengths: expected ", out.n, " numbers, got ", out.lengths.size()));
  if (out.blank < 0 || out.blank >= out.classes)
    return invalid(cat("blank: expected 0..", out.classes - 1, ", got ", out.blank));
  for (int64_t length : out.lengths)
    if (length < 0 || length > out.frames)
      return Status(TN_OUT_OF_RANGE, cat("lengths: expected 0..", out.frames, ", got ", length));
  for (int64_t label : out.targets)
    if (label >= out.classes || label == out.blank)
      return Status(TN_OUT_OF_RANGE, cat("targets: expected 0..", out.classes - 1, " without ",
                                         out.blank, ", the blank, got ", label));
  return out;
}

template <class T>
Sample sample_of(const Shapes& of, const T* scores, int64_t i) {
  Sample out{of.lengths[static_cast<size_t>(i)], of.classes, {}, {of.blank}};
  const int64_t* target = of.targets.data() + i * of.longest;
  for (int64_t s = 0; s < of.longest && target[s] >= 0; ++s) {
    out.labels.push_back(target[s]);
    out.labels.push_back(of.blank);
  }
  out.log_p.resize(static_cast<size_t>(out.frames * of.classes));
  for (int64_t t = 0; t < out.frames; ++t) {
    const T* row = scores + (i * of.frames + t) * of.classes;
    double high = kNever, sum = 0;
    for (int64_t c = 0; c < of.classes; ++c)
      high = std::max(high, static_cast<double>(row[c]));
    for (int64_t c = 0; c < of.classes; ++c)
      sum += std::exp(static_cast<double>(row[c]) - high);
    for (int64_t c = 0; c < of.classes; ++c)
      out.log_p[static_cast<size_t>(t * of.classes + c)] =
          static_cast<double>(row[c]) - high - std::log(sum);
  }
  return out;
}

// For each sample, beside each other.
template <class Each>
void for_samples(const Call& call, const Shapes& of, const Each& each) {
  parallel_for(call.ctx(), static_cast<uint64_t>(of.n), 1, [&](uint64_t begin, uint64_t end) {
    for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i)
      each(i);
  });
}

Status ctc_ref(const Call& call) {
  TN_TRY(of, shapes_of(call));
  TN_TRY(out, call.out(0, call.dtype(0), std::vector<int64_t>{of.n}));
  return dispatch<kFloats>(call.dtype(0), [&, &of = of, &out = out]<class T>() -> Status {
    for_samples(call, of, [&](int64_t i) {
      Sample sample = sample_of(of, call.data<T>(0), i);
      double loss = loss_of(sample, along(sample));
      bool none = of.zero_infinity && loss == -kNever;
      data_of<T>(out)[i] = static_cast<T>(none ? 0 : loss);
    });
    return {};
  });
}

// d loss / d scores of one sample, frames that count only.
Logs gradient_of(const Sample& of, bool zero_infinity) {
  Logs a = along(of), out(of.log_p.size(), 0);
  double loss = loss_of(of, a);
  if (zero_infinity && loss == -kNever) return out;
  Logs b = reversed_along(of);
  int64_t n = of.states();
  for (int64_t t = 0; t < of.frames; ++t) {
    double* row = out.data() + t * of.classes;
    for (int64_t c = 0; c < of.classes; ++c)
      row[c] = std::exp(of.log_p[static_cast<size_t>(t * of.classes + c)]);
    for (int64_t s = 0; s < n; ++s) {
      double both = a[static_cast<size_t>(t * n + s)] + b[static_cast<size_t>(t * n + s)];
      // A class of probability 0 is on no path.
      if (both != kNever || loss == -kNever)
        row[of.labels[static_cast<size_t>(s)]] -= std::exp(both - of.p(t, s) + loss);
    }
  }
  return out;
}

Status ctc_grad_ref(const Call& call) {
  TN_TRY(of, shapes_of(call));
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  return dispatch<kFloats>(call.dtype(0), [&, &of = of, &out = out]<class T>() -> Status {
    for_samples(call, of, [&](int64_t i) {
      Logs found = gradient_of(sample_of(of, call.data<T>(0), i), of.zero_infinity);
      found.resize(static_cast<size_t>(of.frames * of.classes), 0);
      T* to = data_of<T>(out) + i * of.frames * of.classes;
      std::transform(found.begin(), found.end(), to, [](double x) { return static_cast<T>(x); });
    });
    return {};
  });
}

Status ctc_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (node.type() == "CtcLossGrad") return set_output(edit, node, 0, x);
  Type loss(x.dtype, {x.ranked ? x.dims[0] : -1});
  if (x.ranked && !x.symbols.empty()) loss.symbols = {x.symbols[0]};
  return set_output(edit, node, 0, loss);
}

Status ctc_vjp(Gradients& g) {
  std::vector<Value> inputs{g.in(0), g.in(1)};
  if (g.in(2)) inputs.push_back(g.in(2));
  Node of = g.of(), made = g.node({.type = "CtcLossGrad",
                                   .inputs = inputs,
                                   .attrs = {{"blank", of.attr_int("blank", 0)},
                                             {"zero_infinity", of.attr_int("zero_infinity", 0)}},
                                   .domain = "tenon"});
  if (made) g.set(0, g.mul(made.output(), g.op("Unsqueeze", {g.cotangent(), g.ints({1, 2})})));
  return {};
}

template <bool kGradient>
Result<Node> ctc_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t n = random.integer(1, 3), longest = random.integer(1, 3), classes = random.integer(2, 4);
  int64_t frames = random.integer(2 * longest + 1, 2 * longest + 3);
  int64_t blank = random.integer(0, classes - 1);
  std::vector<int64_t> targets(static_cast<size_t>(n * longest), -1);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t s = 0; s < longest && random.integer(0, 3) > 0; ++s)
      targets[static_cast<size_t>(i * longest + s)] =
          (blank + 1 + random.integer(0, classes - 2)) % classes;
  TN_TRY(scores, random.input(TN_F32, {n, frames, classes}));
  TN_TRY(target, edit.constant<int64_t>(TN_I64, {n, longest}, targets));
  std::vector<Value> inputs{scores, target};
  if (random.coin()) {
    std::vector<int64_t> counts(static_cast<size_t>(n));
    for (int64_t& count : counts)
      count = random.integer(2 * longest, frames);
    TN_TRY(lengths, edit.constant<int64_t>(TN_I64, {n}, counts));
    inputs.push_back(lengths);
  }
  return edit.add({.type = kGradient ? "CtcLossGrad" : "CtcLoss",
                   .inputs = inputs,
                   .attrs = {{"blank", blank}, {"zero_infinity", random.coin() ? 1 : 0}},
                   .domain = "tenon"});
}

OpCost ctc_cost(Node node) {
  Type x = node.input(0).type(), y = node.input(1).type();
  bool known = x.is_static() && y.is_static();
  double states = known ? 2 * static_cast<double>(y.dims[1]) + 1 : 0;
  double paths = known ? 6 * static_cast<double>(x.dims[0] * x.dims[1]) * states : 0;
  double softmax = x.is_static() ? 5 * static_cast<double>(x.elements()) : 0;
  return {softmax + paths, node_bytes(node)};
}

constexpr const char* kAttributes = R"([{"name": "blank", "type": "int", "default": 0},
    {"name": "zero_infinity", "type": "int", "default": 0}])";
constexpr tn_op kCtcLoss =
    op_row({.type = "CtcLoss",
            .domain = "tenon",
            .axes = "n t~ c~, n s~, n? -> n",
            .attributes = kAttributes,
            .shape = shape<ctc_shape, "scores: T[n t c], targets: index[n s], lengths: index[n]?">,
            .cost = cost<ctc_cost>,
            .ref = ref<ctc_ref>,
            .sample = sample<ctc_sample<false>>,
            .vjp = vjp<ctc_vjp>,
            .vjp_inputs = 7,
            .cast = "cpu=fp32 cuda=fp32"});
constexpr tn_op kCtcLossGrad =
    op_row({.type = "CtcLossGrad",
            .domain = "tenon",
            .axes = "n t~ c~, n s~, n? -> n t c",
            .attributes = kAttributes,
            .shape = shape<ctc_shape, "scores: T[n t c], targets: index[n s], lengths: index[n]?">,
            .cost = cost<ctc_cost>,
            .ref = ref<ctc_grad_ref>,
            .sample = sample<ctc_sample<true>>,
            .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(ctc, &kCtcLoss, &kCtcLossGrad)

}  // namespace tenon::ops
