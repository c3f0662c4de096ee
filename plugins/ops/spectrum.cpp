// SPDX-License-Identifier: Apache-2.0
// DFT and STFT; complex numbers are pairs along the last axis.
#include "spectrum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "tenon/sdk/alike.hpp"

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "matrices.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {

Complex turn(double sign, int64_t k, int64_t n) {
  return std::polar(1.0,
                    sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}

namespace {

Signal by_definition(const Signal& x, double sign) {
  auto n = static_cast<int64_t>(x.size());
  Signal turns(x.size()), out(x.size());
  for (int64_t k = 0; k < n; ++k)
    turns[static_cast<size_t>(k)] = turn(sign, k, n);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t t = 0; t < n; ++t)
      out[static_cast<size_t>(k)] +=
          x[static_cast<size_t>(t)] * turns[static_cast<size_t>(k * t % n)];
  return out;
}

// Bluestein (1970): as 2kt = k^2 + t^2 - (k - t)^2, it is a convolution with a chirp, which goes by
// transforms whose length is a power of two.
Signal by_chirp(const Signal& x, double sign) {
  const auto n = static_cast<int64_t>(x.size());
  const size_t padded = std::bit_ceil(2 * x.size() - 1);
  Signal chirp(x.size()), signal(padded), kernel(padded);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    chirp[at] = turn(sign, i * i % (2 * n), 2 * n);
    signal[at] = x[at] * chirp[at];
    kernel[at] = kernel[(padded - at) % padded] = std::conj(chirp[at]);
  }
  Signal product = transform(signal, -1);
  kernel = transform(kernel, -1);
  for (size_t i = 0; i < padded; ++i)
    product[i] *= kernel[i];
  product = transform(product, 1);
  for (size_t i = 0; i < x.size(); ++i)
    chirp[i] *= product[i] / static_cast<double>(padded);
  return chirp;
}

}  // namespace

// Cooley and Tukey (1965) while the length halves.
Signal transform(const Signal& x, double sign) {
  constexpr size_t kShort = 256;
  auto n = static_cast<int64_t>(x.size());
  if (n % 2 != 0 || n == 0) return x.size() > kShort ? by_chirp(x, sign) : by_definition(x, sign);
  Signal even, odd, out(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    (i % 2 ? odd : even).push_back(x[i]);
  even = transform(even, sign), odd = transform(odd, sign);
  for (int64_t k = 0; k < n / 2; ++k) {
    Complex twiddled = turn(sign, k, n) * odd[static_cast<size_t>(k)];
    out[static_cast<size_t>(k)] = even[static_cast<size_t>(k)] + twiddled;
    out[static_cast<size_t>(k + n / 2)] = even[static_cast<size_t>(k)] - twiddled;
  }
  return out;
}

Dft dft_of(Node node) {
  return {node.attr_int("inverse") != 0, node.attr_int("onesided") != 0};
}

namespace {

// What a signal becomes, the first of whose n numbers are stated.
Signal spectrum_of(const Dft& dft, Signal x, int64_t n) {
  x.resize(static_cast<size_t>(n));
  for (int64_t t = n / 2 + 1; dft.from_half() && t < n; ++t)
    x[static_cast<size_t>(t)] = std::conj(x[static_cast<size_t>(n - t)]);  // of a real signal
  Signal y = transform(x, dft.sign());
  for (Complex& value : y)
    value *= dft.inverse ? 1 / static_cast<double>(n) : 1;
  return y;
}

Status check_components(const Dim& components, const char* of) {
  if (components.known() && !components.is(1) && !components.is(2))
    return invalid(
        cat(of, ": expected 1 or 2 components along the last axis, got ", *components.value));
  return {};
}

Status dft_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  Dft dft = dft_of(node);
  std::optional<std::vector<int64_t>> stated = known_ints(node.input(2));
  if (!x.ranked || x.rank() < 2 || (node.input(2) && (!stated || stated->size() != 1)))
    return set_output(edit, node, 0, unranked(x.dtype));
  TN_TRY(axis, axis_in(node.input(2) ? stated->at(0) : -2, x.rank()));
  Dims out = dims_of(x);
  TN_CHECK(check_components(out.back(), "x"));
  Dim length = out[static_cast<size_t>(axis)];
  if (node.input(1)) {
    std::optional<Dims> given = contents(node.input(1));
    length = given && given->size() == 1 ? (*given)[0] : Dim();
  } else if (dft.inverse && dft.onesided) {
    length = length.known() ? Dim(2 * (*length.value - 1)) : Dim();
  }
  if (dft.onesided && !dft.inverse) length = length.known() ? Dim(*length.value / 2 + 1) : Dim();
  out[static_cast<size_t>(axis)] = length;
  out.back() = dft.components();
  return set_output(edit, node, 0, x.dtype, out);
}

// The size of an axis becomes another one: cut off, or padded with zeros.
Value resized(Gradients& g, Value y, int64_t axis, int64_t from, int64_t to) {
  if (from > to) return g.op("Slice", {y, g.ints({0}), g.ints({to}), g.ints({axis})});
  if (from < to) return g.op("Pad", {y, g.ints({0, to - from}), Value{}, g.ints({axis})});
  return y;
}

// By how much each number of half a spectrum counts: [made, 1, ..] over n signals.
std::vector<double> half_weights(int64_t n, int64_t made) {
  std::vector<double> weights(static_cast<size_t>(made), 2 / static_cast<double>(n));
  weights.front() = 1 / static_cast<double>(n);
  if (n % 2 == 0) weights.back() = 1 / static_cast<double>(n);
  return weights;
}

// A transform is linear: what comes back goes through the other one. The half of a real signal's
// spectrum counts twice but for its ends, which are their own conjugates.
Status dft_vjp(Gradients& g) {
  Type x = g.ranked(g.in(0), "DFT");
  std::optional<std::vector<int64_t>> stated = known_ints(g.in(2)), wanted = known_ints(g.in(1));
  if (x.rank() < 2 || (g.in(2) && !stated) || (g.in(1) && !wanted))
    return unsupported("DFT: axis and length must be known for a gradient");
  TN_TRY(axis, axis_in(stated ? stated->at(0) : -2, x.rank()));
  int64_t size = x.dims[static_cast<size_t>(axis)], in = x.dims.back();
  Dft dft = dft_of(g.of());
  bool back = dft.inverse && dft.onesided;
  int64_t n = wanted ? wanted->at(0) : back ? 2 * (size - 1) : size;
  if (size < 1 || n < 1 || in < 0)
    return unsupported("DFT: the size of its axis must be known for a gradient");
  Value y = g.op("DFT",
                 {g.cotangent(), g.number(static_cast<double>(n), TN_I64),
                  g.number(static_cast<double>(axis), TN_I64)},
                 {{"inverse", dft.inverse ? 0 : 1}, {"onesided", back ? 1 : 0}});
  int64_t made = back ? n / 2 + 1 : n;
  if (back) {
    std::vector<int64_t> dims(x.rank() - static_cast<size_t>(axis), 1);
    dims.front() = made;
    y = g.mul(y, constant_of(g, x.dtype, dims, half_weights(n, made)));
  } else {
    double by = static_cast<double>(n);
    y = g.mul(y, g.number(dft.inverse ? 1 / by : by, x.dtype));
  }
  y = resized(g, y, axis, made, size);
  if (in == 1) y = g.op("Slice", {y, g.ints({0}), g.ints({1}), g.ints({-1})});
  g.set(0, y);
  return {};
}

// Examples are more signals: the axis counts one more.
Status dft_batch(Batching& b) {
  std::optional<std::vector<int64_t>> stated = known_ints(b.of().input(2));
  if (b.batched(1) || b.batched(2) || (b.of().input(2) && !stated))
    return unsupported("by its parts");
  int64_t axis = stated ? stated->at(0) : -2;
  Value length = b.of().input(1) ? b.in(1) : Value{};
  b.set(0,
        again(b, b.of(),
              {b.in(0), length, b.number(static_cast<double>(axis < 0 ? axis : axis + 1), TN_I64)})
            .output());
  return {};
}

Status dft_ref(const Call& call) {
  std::vector<int64_t> shape = to_vector(call.shape(0));
  if (shape.size() < 2) return invalid(cat("x: expected two axes or more, got ", shape.size()));
  const int64_t components = shape.back();
  TN_CHECK(check_components(components, "x"));
  TN_TRY(axis, axis_in(call.has(2) ? read_ints(call.in(2)).at(0) : -2, shape.size()));
  if (axis + 1 == static_cast<int64_t>(shape.size()))
    return invalid("axis: expected another than the last, which has the components");
  Dft dft = dft_of(call.node());
  shape.pop_back();
  AxisSplit split(shape, axis);
  bool back = dft.inverse && dft.onesided;
  int64_t n = back ? 2 * (split.size - 1) : split.size;
  if (call.has(1)) n = read_ints(call.in(1)).at(0);
  if (n < 1) return invalid(cat("dft_length: expected a number from 1, got ", n));
  int64_t bins = dft.bins(n), given = std::min(split.size, back ? n / 2 + 1 : n);
  shape[static_cast<size_t>(axis)] = bins;
  shape.push_back(dft.components());
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  auto body = [&](uint64_t begin, uint64_t end) {
    for (auto line = static_cast<int64_t>(begin); line < static_cast<int64_t>(end); ++line) {
      int64_t o = line / split.inner, i = line % split.inner;
      Signal x(static_cast<size_t>(n));
      for (int64_t t = 0; t < given; ++t) {
        int64_t at = ((o * split.size + t) * split.inner + i) * components;
        auto part = [&](int64_t k) {
          return load_number(call.data<char>(0), call.dtype(0), at + k);
        };
        x[static_cast<size_t>(t)] = {part(0), components == 2 ? part(1) : 0};
      }
      Signal y = spectrum_of(dft, std::move(x), n);
      for (int64_t k = 0; k < bins; ++k) {
        int64_t at = ((o * bins + k) * split.inner + i) * dft.components();
        Complex value = y[static_cast<size_t>(k)];
        store_number(data_of<char>(out), call.dtype(0), at, value.real());
        if (dft.components() == 2)
          store_number(data_of<char>(out), call.dtype(0), at + 1, value.imag());
      }
    }
  };
  parallel_for(call.ctx(), static_cast<uint64_t>(split.outer * split.inner), 1, body);
  return {};
}

Result<Node> dft_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t inverse = random.integer(0, 1), onesided = random.integer(0, 1);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 2), random.integer(2, 8), random.integer(2, 6),
                                  inverse ? 2 : random.integer(1, 2)}));
  TN_TRY(axis, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(1, 2)}));
  TN_TRY(length, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(2, 9)}));
  return edit.add({.type = "DFT",
                   .inputs = {x, random.coin() ? length : Value{}, axis},
                   .attrs = {{"inverse", inverse}, {"onesided", onesided}}});
}

// signal [n, s, 1 or 2] gives [n, frames, bins, 2].
Status stft_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), window = node.input(2).type();
  Dims in = x.ranked && x.rank() == 3 ? dims_of(x) : Dims(3);
  TN_CHECK(check_components(in[2], "signal"));
  Dim length = in[1];
  if (node.input(3)) {
    std::optional<Dims> given = contents(node.input(3));
    length = given && given->size() == 1 ? (*given)[0] : Dim();
  } else if (node.input(2)) {
    length = window.ranked && window.rank() == 1 ? dims_of(window)[0] : Dim();
  }
  Dim frames, bins = length;
  std::optional<std::vector<int64_t>> step = known_ints(node.input(1));
  if (length.known() && in[1].known() && (*length.value < 1 || length.value > in[1].value))
    return invalid(cat("frame_length: expected 1 to ", *in[1].value, ", got ", *length.value));
  if (step && step->size() == 1 && step->at(0) > 0 && length.known() && in[1].known())
    frames = (*in[1].value - *length.value) / step->at(0) + 1;
  if (node.attr_int("onesided", 1)) bins = length.known() ? Dim(*length.value / 2 + 1) : Dim();
  return set_output(edit, node, 0, x.dtype, {in[0], frames, bins, 2});
}

Status stft_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  if (shape.size() != 3) return invalid("signal: expected [n, s, 1 or 2]");
  TN_CHECK(check_components(shape[2], "signal"));
  int64_t step = read_ints(call.in(1)).at(0), length = shape[1], components = shape[2];
  if (call.has(2)) length = element_count(call.in(2));
  if (call.has(3)) length = read_ints(call.in(3)).at(0);
  if (call.has(2) && element_count(call.in(2)) != length)
    return invalid(cat("window: expected ", length, " numbers, got ", element_count(call.in(2))));
  if (step < 1 || length < 1 || length > shape[1])
    return invalid("expected a frame_step from 1 and a frame_length in 1..s");
  int64_t frames = (shape[1] - length) / step + 1;
  int64_t bins = call.node().attr_int("onesided", 1) ? length / 2 + 1 : length;
  TN_TRY(out, call.out(0, call.dtype(0), {shape[0], frames, bins, 2}));
  auto number = [&](uint64_t i, int64_t at) {
    return load_number(call.data<char>(i), call.dtype(i), at);
  };
  auto body = [&](uint64_t begin, uint64_t end) {
    for (auto f = static_cast<int64_t>(begin); f < static_cast<int64_t>(end); ++f) {
      int64_t first = f / frames * shape[1] + f % frames * step;
      Signal x(static_cast<size_t>(length));
      for (int64_t t = 0; t < length; ++t) {
        int64_t at = (first + t) * components;
        double weight = call.has(2) ? number(2, t) : 1;
        x[static_cast<size_t>(t)] = {weight * number(0, at),
                                     components == 2 ? weight * number(0, at + 1) : 0};
      }
      Signal y = transform(x, -1);
      for (int64_t k = 0; k < bins; ++k) {
        int64_t at = (f * bins + k) * 2;
        store_number(data_of<char>(out), call.dtype(0), at, y[static_cast<size_t>(k)].real());
        store_number(data_of<char>(out), call.dtype(0), at + 1, y[static_cast<size_t>(k)].imag());
      }
    }
  };
  parallel_for(call.ctx(), static_cast<uint64_t>(shape[0] * frames), 1, body);
  return {};
}

// The frames, each weighted by the window, and their transforms.
Result<std::vector<Value>> stft_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type x = node.input(0).type(), window = node.input(2).type();
  std::optional<std::vector<int64_t>> step = known_ints(node.input(1)),
                                      stated = known_ints(node.input(3));
  if (!x.is_static() || x.rank() != 3 || !step || step->size() != 1 || step->at(0) < 1 ||
      (node.input(3) && (!stated || stated->size() != 1)) ||
      (node.input(2) && (!window.is_static() || window.rank() != 1)))
    return unsupported("STFT: composite where all sizes are known");
  int64_t length = node.input(3) ? stated->at(0) : node.input(2) ? window.dims[0] : x.dims[1];
  if (length < 1 || length > x.dims[1]) return invalid("expected a frame_length in 1..s");
  int64_t frames = (x.dims[1] - length) / step->at(0) + 1;
  TN_CHECK(check_matrix(frames, length));
  std::vector<int64_t> at;
  for (int64_t i = 0; i < frames * length; ++i)
    at.push_back(i / length * step->at(0) + i % length);
  Value places = b.take(edit.constant<int64_t>(TN_I64, {frames, length}, at));
  Value y = b.op("Gather", {node.input(0), places}, {{"axis", 1}});
  if (node.input(2)) y = b.mul(y, b.reshape(node.input(2), {length, 1}));
  y = b.op("DFT", {y, Value{}, b.number(2, TN_I64)}, {{"onesided", node.attr_int("onesided", 1)}});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> stft_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t length = random.integer(2, 6);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 2), length + random.integer(0, 6),
                                  random.integer(1, 2)}));
  TN_TRY(step, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(1, 3)}));
  TN_TRY(window, random.input(TN_F32, {length}));
  return edit.add(
      {.type = "STFT", .inputs = {x, step, window}, .attrs = {{"onesided", random.integer(0, 1)}}});
}

OpCost spectrum_cost(Node node) {
  double n = output_elements(node);
  return {n > 1 ? 5 * n * std::log2(n) : 0, node_bytes(node)};
}

constexpr tn_op kDft =
    op_row({.type = "DFT",
            .since = 20,
            .attributes = R"([{"name": "inverse", "type": "int", "default": 0},
                                                 {"name": "onesided", "type": "int", "default": 0}])",
            .shape = shape<dft_shape, "x: float, length: int[one]?, axis: int[one]?">,
            .decompose = decompose<dft_decompose>,
            .cost = cost<spectrum_cost>,
            .ref = ref<dft_ref>,
            .sample = sample<dft_sample>,
            .vjp = vjp<dft_vjp>,
            .vjp_inputs = 6,
            .vjp_outputs = 0,
            .batch = batch<dft_batch>,
            .cast = "cpu=fp32 cuda=fp32"});
constexpr tn_op kStft = op_row(
    {.type = "STFT",
     .since = 17,
     .attributes = R"([{"name": "onesided", "type": "int", "default": 1}])",
     .shape = shape<stft_shape,
                    "x: T[b l c..], step: int[one], window: T[w]?, length: int[one]? ; T = float">,
     .decompose = decompose<stft_decompose>,
     .cost = cost<spectrum_cost>,
     .ref = ref<stft_ref>,
     .sample = sample<stft_sample>,
     .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(spectrum, &kDft, &kStft)

}  // namespace tenon::ops
