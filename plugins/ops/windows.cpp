// SPDX-License-Identifier: Apache-2.0
// What goes before and after a spectrum: HannWindow, HammingWindow, BlackmanWindow (sums of
// cosines), and MelWeightMatrix.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "numbers.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

uint32_t output_type(Node node) {
  tn_any any = node.attr("output_datatype");
  return any.tag == TN_ANY_DTYPE ? static_cast<uint32_t>(any.v.u) : TN_F32;
}

Status window_shape(EditView edit, Node node) {
  std::optional<Dims> size = contents(node.input(0));
  return set_output(edit, node, 0, output_type(node),
                    {size && size->size() == 1 ? (*size)[0] : Dim()});
}

struct Weights {
  double zero, one, two;  // zero - one*cos(t) + two*cos(2t)
};
constexpr Weights kHann{0.5, 0.5, 0}, kHamming{25.0 / 46, 21.0 / 46, 0}, kBlackman{0.42, 0.5, 0.08};

template <const Weights& kWeights>
Status window_ref(const Call& call) {
  int64_t size = read_ints(call.in(0)).at(0);
  if (size < 0) return invalid(cat("size: expected a number from 0, got ", size));
  TN_TRY(out, call.out(0, output_type(call.node()), {size}));
  int64_t period = call.node().attr_int("periodic", 1) ? size : size - 1;
  if (size == 1 && period == 0)  // 1, as in NumPy, SciPy and PyTorch; the formula says 0/0
    store_number(data_of<char>(out), dtype_of(out), 0, 1);
  if (period <= 0) return {};
  for (int64_t i = 0; i < size; ++i) {
    double t = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
    double value = kWeights.zero - kWeights.one * std::cos(t) + kWeights.two * std::cos(2 * t);
    store_number(data_of<char>(out), dtype_of(out), i, value);
  }
  return {};
}

Result<Node> window_sample(EditView edit, uint64_t seed, const char* type) {
  Sampler random(edit, seed);
  TN_TRY(size, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(1, 9)}));
  return edit.add({.type = type, .inputs = {size}, .attrs = {{"periodic", random.integer(0, 1)}}});
}
Result<Node> hann_sample(EditView edit, uint64_t seed) {
  return window_sample(edit, seed, "HannWindow");
}
Result<Node> hamming_sample(EditView edit, uint64_t seed) {
  return window_sample(edit, seed, "HammingWindow");
}
Result<Node> blackman_sample(EditView edit, uint64_t seed) {
  return window_sample(edit, seed, "BlackmanWindow");
}

Status mel_shape(EditView edit, Node node) {
  std::optional<std::vector<int64_t>> bins = known_ints(node.input(0));
  std::optional<std::vector<int64_t>> length = known_ints(node.input(1));
  bool known = bins && length && bins->size() == 1 && length->size() == 1;
  return set_output(edit, node, 0, output_type(node),
                    known ? Dims{length->at(0) / 2 + 1, bins->at(0)} : Dims(2));
}

double hertz_to_mel(double hertz) {
  return 2595 * std::log10(1 + hertz / 700);
}
double mel_to_hertz(double mel) {
  return 700 * (std::pow(10, mel / 2595) - 1);
}

// Triangles that are evenly spaced in mel, over the bins of a spectrum.
Status mel_ref(const Call& call) {
  auto number = [&](uint64_t i) { return load_number(call.data<char>(i), call.dtype(i), 0); };
  int64_t bins = read_ints(call.in(0)).at(0), length = read_ints(call.in(1)).at(0);
  double rate = number(2), low = hertz_to_mel(number(3)), high = hertz_to_mel(number(4));
  if (bins < 1 || length < 1 || !(rate > 0) || !(number(3) >= 0) || !(high > low))
    return invalid("expected bins, length and rate from 1, and edges that rise from 0");
  TN_CHECK(expect_moderate("num_mel_bins and dft_length", {bins, length}, 1));
  int64_t rows = length / 2 + 1;
  // Before anything is made of its size: it says no to one that there is no memory for.
  TN_TRY(out, call.out(0, output_type(call.node()), {rows, bins}));
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double mel = low + static_cast<double>(i) * (high - low) / static_cast<double>(bins + 2);
    double edge = std::floor(static_cast<double>(length + 1) * mel_to_hertz(mel) / rate);
    if (!(edge < static_cast<double>(rows)))  // infinities too, before they become an integer
      return invalid(cat("upper_edge_hertz: expected at most half of the rate, got ", number(4)));
    edges.push_back(static_cast<int64_t>(edge));
  }
  std::vector<double> weights(static_cast<size_t>(rows * bins));
  for (int64_t i = 0; i < bins; ++i) {
    auto at = [&](int64_t row) -> double& { return weights[static_cast<size_t>(row * bins + i)]; };
    int64_t left = edges[static_cast<size_t>(i)], center = edges[static_cast<size_t>(i + 1)],
            right = edges[static_cast<size_t>(i + 2)];
    for (int64_t j = left; j < center; ++j)
      at(j) = static_cast<double>(j - left) / static_cast<double>(center - left);
    at(center) = 1;
    for (int64_t j = center; j < right; ++j)
      at(j) = static_cast<double>(right - j) / static_cast<double>(right - center);
  }
  for (size_t i = 0; i < weights.size(); ++i)
    store_number(data_of<char>(out), dtype_of(out), static_cast<int64_t>(i), weights[i]);
  return {};
}

Result<Node> mel_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<Value> inputs;
  for (int64_t number : std::array<int64_t, 3>{random.integer(1, 6), random.integer(8, 32), 8000}) {
    TN_TRY(value, edit.constant<int64_t>(TN_I64, {}, std::vector{number}));
    inputs.push_back(value);
  }
  for (float edge : {0.0f, 3500.0f}) {
    TN_TRY(value, edit.constant<float>(TN_F32, {}, std::vector{edge}));
    inputs.push_back(value);
  }
  return edit.add({.type = "MelWeightMatrix", .inputs = inputs});
}

constexpr tn_op window_row(const char* type,
                           decltype(tn_op::ref) ref_column,
                           decltype(tn_op::sample) sample_column) {
  return op_row({.type = type,
                 .since = 17,
                 .traits = TN_OP_DATA_SHAPE,
                 .attributes = R"([{"name": "output_datatype", "type": "dtype"},
                                   {"name": "periodic", "type": "int", "default": 1}])",
                 .shape = shape<window_shape, "size: int[one]">,
                 .cost = cost<move_cost>,
                 .ref = ref_column,
                 .sample = sample_column});
}
constexpr tn_op kHannWindow = window_row("HannWindow", ref<window_ref<kHann>>, sample<hann_sample>);
constexpr tn_op kHammingWindow =
    window_row("HammingWindow", ref<window_ref<kHamming>>, sample<hamming_sample>);
constexpr tn_op kBlackmanWindow =
    window_row("BlackmanWindow", ref<window_ref<kBlackman>>, sample<blackman_sample>);
constexpr tn_op kMel =
    op_row({.type = "MelWeightMatrix",
            .since = 17,
            .traits = TN_OP_DATA_SHAPE,
            .attributes = R"([{"name": "output_datatype", "type": "dtype"}])",
            .shape = shape<mel_shape,
                           "bins: int[one], length: int[one], rate: int[one], low: float[one], "
                           "high: float[one]">,
            .cost = cost<move_cost>,
            .ref = ref<mel_ref>,
            .sample = sample<mel_sample>});

}  // namespace

TENON_OPS(windows, &kHannWindow, &kHammingWindow, &kBlackmanWindow, &kMel)

}  // namespace tenon::ops
