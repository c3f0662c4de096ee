// SPDX-License-Identifier: Apache-2.0
#include "recurrent.hpp"

#include "cells.hpp"
#include "cost.hpp"
#include "numbers.hpp"

namespace tenon::ops {
namespace {

enum Input : uint64_t { kX, kW, kR, kB, kLengths, kH, kC, kP };

Result<int64_t> n_directions(Node node) {
  std::string_view text = node.attr_text("direction", "forward");
  if (text == "forward" || text == "reverse") return 1;
  if (text == "bidirectional") return 2;
  return invalid(
      cat("direction: expected one of forward, reverse, bidirectional, got '", text, "'"));
}

// n numbers of input i from `from` on; zeros where it is absent.
std::vector<double> numbers(const Call& call, uint64_t i, int64_t from, int64_t n) {
  std::vector<double> out(static_cast<size_t>(n));
  for (int64_t k = 0; call.has(i) && k < n; ++k)
    out[static_cast<size_t>(k)] = load_number(call.data<char>(i), call.dtype(i), from + k);
  return out;
}

Status expect(const Call& call, uint64_t i, const char* what, std::vector<int64_t> shape) {
  if (!call.has(i) || to_vector(call.shape(i)) == shape) return {};
  std::string text;
  for (int64_t dim : shape)
    text += cat(text.empty() ? "" : ", ", dim);
  return invalid(cat(what, ": expected [", text, "]"));
}

Result<Recurrent> recurrent_of(const Call& call,
                               int64_t gates,
                               const std::vector<std::string>& defaults) {
  Node node = call.node();
  std::span<const int64_t> x = call.shape(kX), r = call.shape(kR);
  if (x.size() != 3 || r.size() != 3)
    return invalid("expected x [steps, batch, input] and r [directions, gates*hidden, hidden]");
  bool batch_first = node.attr_int("layout") != 0;
  TN_TRY(directions, n_directions(node));
  Recurrent out;
  out.steps = x[batch_first ? 1 : 0], out.batch = x[batch_first ? 0 : 1], out.input = x[2];
  out.hidden = r[2], out.gates = gates, out.clip = node.attr_float("clip");
  int64_t rows = gates * out.hidden, d = directions, h = out.hidden, b = out.batch;
  std::vector<int64_t> state = batch_first ? std::vector{b, d, h} : std::vector{d, b, h};
  TN_CHECK(expect(call, kW, "w", {d, rows, out.input}));
  TN_CHECK(expect(call, kR, "r", {d, rows, h}));
  TN_CHECK(expect(call, kB, "b", {d, 2 * rows}));
  TN_CHECK(expect(call, kLengths, "sequence_lens", {b}));
  TN_CHECK(expect(call, kH, "initial_h", state));
  TN_CHECK(expect(call, kC, "initial_c", state));
  TN_CHECK(expect(call, kP, "p", {d, 3 * h}));
  out.lengths.assign(static_cast<size_t>(b), out.steps);
  if (call.has(kLengths)) out.lengths = read_ints(call.in(kLengths));
  for (int64_t length : out.lengths)
    if (length < 0 || length > out.steps)
      return invalid(cat("sequence_lens: expected 0..", out.steps, ", got ", length));
  std::vector<std::string> names;
  for (int64_t i = 0; i < d; ++i)
    names.insert(names.end(), defaults.begin(), defaults.end());
  TN_TRY(activations, activations_of(node, names));
  auto each = static_cast<std::ptrdiff_t>(defaults.size());
  for (int64_t i = 0; i < d; ++i) {
    Direction one{numbers(call, kW, i * rows * out.input, rows * out.input),
                  numbers(call, kR, i * rows * h, rows * h),
                  numbers(call, kB, i * 2 * rows, rows),
                  numbers(call, kB, (2 * i + 1) * rows, rows),
                  {},
                  {activations.begin() + i * each, activations.begin() + (i + 1) * each}};
    if (call.has(kP)) one.peepholes = numbers(call, kP, i * 3 * h, 3 * h);
    out.directions.push_back(std::move(one));
  }
  return out;
}

// The outputs that the node has.
struct States {
  std::optional<DLTensor> y, h, c;
};

struct Walker {
  const Call& call;
  const Recurrent& r;
  const States& out;
  bool batch_first, backward;
  Cell cell;

  int64_t state_at(int64_t d, int64_t b) const {
    auto n = static_cast<int64_t>(r.directions.size());
    return (batch_first ? b * n + d : d * r.batch + b) * r.hidden;
  }
  void store(const std::optional<DLTensor>& to, int64_t at, const std::vector<double>& from) const {
    for (size_t k = 0; to && k < from.size(); ++k)
      store_number(data_of<char>(*to), dtype_of(*to), at + static_cast<int64_t>(k), from[k]);
  }

  // All steps of one direction of one sample. Steps after its length leave zeros.
  void run(int64_t d, int64_t b) const {
    const Direction& direction = r.directions[static_cast<size_t>(d)];
    auto n = static_cast<int64_t>(r.directions.size());
    int64_t at = state_at(d, b), length = r.lengths[static_cast<size_t>(b)],
            rows = r.gates * r.hidden;
    std::vector<double> h = numbers(call, kH, at, r.hidden), c = numbers(call, kC, at, r.hidden);
    std::vector<double> gates(static_cast<size_t>(rows)), zeros(static_cast<size_t>(r.hidden));
    bool reverse = backward || d == 1;
    for (int64_t step = 0; step < r.steps; ++step) {
      int64_t t = reverse && step < length ? length - 1 - step : step;
      int64_t row = batch_first ? b * r.steps + t : t * r.batch + b;
      if (step < length) {
        std::vector<double> x = numbers(call, kX, row * r.input, r.input);
        for (int64_t g = 0; g < rows; ++g) {
          double sum = direction.bias_w[static_cast<size_t>(g)];
          for (int64_t k = 0; k < r.input; ++k)
            sum += direction.w[static_cast<size_t>(g * r.input + k)] * x[static_cast<size_t>(k)];
          gates[static_cast<size_t>(g)] = sum;
        }
        cell(r, direction, call.node(), gates, h, c);
      }
      int64_t to = batch_first ? row * n + d : (t * n + d) * r.batch + b;
      store(out.y, to * r.hidden, step < length ? h : zeros);
    }
    store(out.h, at, h);
    store(out.c, at, c);
  }
};

}  // namespace

Status run_recurrent(const Call& call,
                     int64_t gates,
                     const std::vector<std::string>& defaults,
                     Cell cell) {
  TN_TRY(recurrent, recurrent_of(call, gates, defaults));
  const Recurrent& r = recurrent;
  Node node = call.node();
  bool batch_first = node.attr_int("layout") != 0;
  auto n = static_cast<int64_t>(r.directions.size());
  States out;
  auto make = [&](uint64_t i, std::optional<DLTensor>& to, std::vector<int64_t> shape) -> Status {
    if (!node.output(i)) return {};
    TN_TRY(made, call.out(i, call.dtype(kX), shape));
    to = made;
    return {};
  };
  using Shape = std::vector<int64_t>;
  TN_CHECK(make(
      0, out.y,
      batch_first ? Shape{r.batch, r.steps, n, r.hidden} : Shape{r.steps, n, r.batch, r.hidden}));
  Shape state = batch_first ? Shape{r.batch, n, r.hidden} : Shape{n, r.batch, r.hidden};
  TN_CHECK(make(1, out.h, state));
  TN_CHECK(make(2, out.c, state));
  Walker walker{call, r, out, batch_first, node.attr_text("direction") == "reverse", cell};
  parallel_for(call.ctx(), static_cast<uint64_t>(n * r.batch), 1,
               [&](uint64_t begin, uint64_t end) {
                 for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i)
                   walker.run(i / r.batch, i % r.batch);
               });
  return {};
}

Status recurrent_shape(EditView edit, Node node) {
  Type x = node.input(kX).type(), r = node.input(kR).type();
  TN_TRY(n, n_directions(node));
  bool batch_first = node.attr_int("layout") != 0;
  std::string state_form = batch_first ? cat("[b ", n, " h]") : cat("[", n, " b h]");
  int64_t gates = node.is("LSTM") ? 4 : node.is("GRU") ? 3 : 1;
  TN_CHECK(check_operands(
      node,
      cat("x: T[", batch_first ? "b t i" : "t b i", "], w: T[", n, " (", gates, " h) i], r: T[", n,
          " (", gates, " h) h], bias: T[", n, " (", 2 * gates,
          " h)]?, sequence_lens: int[b]?, initial_h: T", state_form, "?",
          gates == 4 ? cat(", initial_c: T", state_form, "?, peepholes: T[", n, " (3 h)]?") : "",
          " ; T = float", node.attr_int("hidden_size") > 0 ? ", h = hidden_size" : "")));
  const uint64_t most_outputs = gates == 4 ? 3 : 2;
  if (node.n_outputs() > most_outputs)
    return invalid(cat("expected at most ", most_outputs, " outputs, got ", node.n_outputs()));
  Dims in = x.ranked && x.rank() == 3 ? dims_of(x) : Dims(3);
  Dim steps = in[batch_first ? 1 : 0], batch = in[batch_first ? 0 : 1];
  Dim hidden = r.ranked && r.rank() == 3 ? dims_of(r)[2] : Dim();
  if (!hidden.known() && node.attr_int("hidden_size") > 0) hidden = node.attr_int("hidden_size");
  TN_CHECK(set_output(edit, node, 0, x.dtype,
                      batch_first ? Dims{batch, steps, n, hidden} : Dims{steps, n, batch, hidden}));
  Dims state = batch_first ? Dims{batch, n, hidden} : Dims{n, batch, hidden};
  for (uint64_t i = 1; i < node.n_outputs(); ++i)
    TN_CHECK(set_output(edit, node, i, x.dtype, state));
  return {};
}

OpCost recurrent_cost(Node node) {
  Type x = node.input(kX).type(), w = node.input(kW).type(), r = node.input(kR).type();
  bool known = x.is_static() && w.is_static() && r.is_static() && x.rank() == 3;
  double weights = known ? static_cast<double>(w.elements() + r.elements()) : 0;
  return {known ? 2 * weights * static_cast<double>(x.dims[0] * x.dims[1]) : 0, node_bytes(node)};
}

Result<Node> recurrent_sample(EditView edit, uint64_t seed, const char* type, int64_t gates) {
  Sampler random(edit, seed);
  constexpr const char* kDirections[] = {"forward", "reverse", "bidirectional"};
  int64_t direction = random.integer(0, 2), n = direction == 2 ? 2 : 1;
  int64_t steps = random.integer(1, 4), batch = random.integer(1, 3), input = random.integer(1, 4);
  int64_t hidden = random.integer(1, 4), layout = random.integer(0, 1);
  std::vector<int64_t> shape{steps, batch, input}, state{n, batch, hidden};
  if (layout) shape = {batch, steps, input}, state = {batch, n, hidden};
  TN_TRY(x, random.input(TN_F32, shape));
  TN_TRY(w, random.input(TN_F32, {n, gates * hidden, input}));
  TN_TRY(r, random.input(TN_F32, {n, gates * hidden, hidden}));
  std::vector<Value> inputs{x, w, r, Value{}, Value{}, Value{}};
  if (random.coin()) {
    TN_TRY(bias, random.input(TN_F32, {n, 2 * gates * hidden}));
    inputs[kB] = bias;
  }
  if (random.coin()) {
    std::vector<int32_t> lengths(static_cast<size_t>(batch));
    for (int32_t& length : lengths)
      length = static_cast<int32_t>(random.integer(1, steps));
    TN_TRY(at, edit.constant<int32_t>(TN_I32, {batch}, lengths));
    inputs[kLengths] = at;
  }
  TN_TRY(h, random.input(TN_F32, state));
  if (random.coin()) inputs[kH] = h;
  if (gates == 4 && random.coin()) {
    TN_TRY(c, random.input(TN_F32, state));
    TN_TRY(peepholes, random.input(TN_F32, {n, 3 * hidden}));
    inputs.insert(inputs.end(), {c, peepholes});
  }
  return edit.add({.type = type,
                   .inputs = inputs,
                   .attrs = {{"direction", kDirections[direction]},
                             {"hidden_size", hidden},
                             {"layout", layout}},
                   .n_outputs = gates == 4 ? 3u : 2u});
}

}  // namespace tenon::ops
