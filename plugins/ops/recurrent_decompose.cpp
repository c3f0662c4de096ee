// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM as a Scan for each direction: the products with x of all steps are one product
// before it, a step's body is the cell. Steps beyond the length of a sample leave its state alone.
#include "recurrent_decompose.hpp"

#include "bodies.hpp"

namespace tenon::ops {
namespace {

enum Input : uint64_t { kX, kW, kR, kB, kLengths, kH, kC, kP };

class Unrolled {
 public:
  Unrolled(EditView edit, Node node, int64_t gates, CellStep step)
      : b_(edit), node_(node), gates_(gates), step_(step) {}

  Result<std::vector<Value>> run(const std::vector<std::string>& defaults) {
    Type r = node_.input(kR).type(), x = node_.input(kX).type();
    if (!r.ranked || r.rank() != 3 || r.dims[2] < 0 || r.dims[0] < 0 || !x.ranked || x.rank() != 3)
      return unsupported("decomposed only where x has rank 3 and the sizes of r are known");
    hidden_ = r.dims[2];
    batch_first_ = node_.attr_int("layout") != 0;
    n_ = r.dims[0];
    std::vector<std::string> names;
    for (int64_t d = 0; d < n_; ++d)
      names.insert(names.end(), defaults.begin(), defaults.end());
    TN_TRY(activations, activations_of(node_, names));
    x_ = batch_first_ ? b_.transpose(node_.input(kX), {1, 0, 2}) : node_.input(kX);
    batch_ = x.dims[batch_first_ ? 0 : 1];
    make_mask();
    size_t n_states = gates_ == 4 ? 2 : 1;
    std::vector<std::vector<Value>> found(3);
    for (int64_t d = 0; d < n_; ++d) {
      auto from = activations.begin() + d * static_cast<std::ptrdiff_t>(defaults.size());
      TN_TRY(scan, direction(d, {from, from + static_cast<std::ptrdiff_t>(defaults.size())}));
      found[0].push_back(scan.output(n_states));
      for (size_t i = 0; i < n_states; ++i)
        found[i + 1].push_back(scan.output(i));
    }
    std::vector<Value> out;
    for (uint64_t i = 0; i < node_.n_outputs(); ++i)
      out.push_back(i <= n_states && node_.output(i) ? joined(found[i], i == 0) : Value{});
    TN_CHECK(b_.status());
    return out;
  }

 private:
  // Of [directions, ...] the part of one direction.
  Value part(uint64_t input, int64_t d, int64_t axis = 0) {
    Value all = node_.input(input);
    if (!all) return {};
    if (n_ > 1) all = b_.op("Slice", {all, b_.ints({d}), b_.ints({d + 1}), b_.ints({axis})});
    return b_.op("Squeeze", {all, b_.ints({axis})});
  }
  Value slice(Value x, int64_t from, int64_t to, int64_t axis) {
    return b_.op("Slice", {x, b_.ints({from}), b_.ints({to}), b_.ints({axis})});
  }
  Value initial(uint64_t input, int64_t d) {
    if (node_.input(input)) return part(input, d, batch_first_ ? 1 : 0);
    Value zero = b_.number(0, x_.dtype());
    if (batch_ >= 0) return b_.op("Expand", {zero, b_.ints({batch_, hidden_})});
    Value rows = b_.op("Shape", {x_}, {{"start", 1}, {"end", 2}});
    return b_.op("Expand", {zero, b_.op("Concat", {rows, b_.ints({hidden_})}, {{"axis", 0}})});
  }
  // [steps, batch, 1]: whether a step is within the length of a sample.
  void make_mask() {
    Value lengths = node_.input(kLengths);
    if (!lengths) return;
    Value steps = b_.op("Shape", {x_}, {{"start", 0}, {"end", 1}});
    Value count =
        b_.op("Range", {b_.number(0, TN_I64), b_.op("Squeeze", {steps}), b_.number(1, TN_I64)});
    Value ends = b_.op("Unsqueeze", {b_.cast(lengths, TN_I64), b_.ints({0, 2})});
    mask_ = b_.op("Less", {b_.op("Unsqueeze", {count, b_.ints({1, 2})}), ends});
  }

  // The Scan of one direction.
  Result<Node> direction(int64_t d, const std::vector<Activation>& activations) {
    int64_t rows = gates_ * hidden_;
    Value gates = b_.op("MatMul", {x_, b_.transpose(part(kW, d), {1, 0})});
    Value bias = part(kB, d), late;
    if (bias) {
      Value of_r = slice(bias, rows, 2 * rows, 0);
      bool apart = gates_ == 3 && node_.attr_int("linear_before_reset") != 0;
      if (apart) {  // added before the reset gate takes its share
        late = slice(of_r, 2 * hidden_, rows, 0);
        std::vector<int64_t> pads{0, hidden_};
        of_r = b_.op("Pad", {slice(of_r, 0, 2 * hidden_, 0), b_.ints(pads)});
      }
      gates = b_.add(gates, b_.add(slice(bias, 0, rows, 0), of_r));
    }
    std::vector<Value> inputs{initial(kH, d)};
    if (gates_ == 4) inputs.push_back(initial(kC, d));
    size_t n_states = inputs.size();
    inputs.push_back(gates);
    if (mask_) inputs.push_back(mask_);
    size_t n_scanned = inputs.size() - n_states;
    inputs.push_back(b_.transpose(part(kR, d), {1, 0}));
    Value peepholes = gates_ == 4 ? part(kP, d) : Value{};
    for (Value extra : {late, peepholes})
      if (extra) inputs.push_back(extra);
    TN_CHECK(b_.status());
    TN_TRY(body, make_body(b_.edit(), [&](const Edit& edit) {
             return fill(edit, inputs, n_states, n_scanned, activations);
           }));
    bool back = d == 1 || node_.attr_text("direction") == "reverse";
    const std::vector<int64_t> in_ways(n_scanned, back), out_ways{back};
    auto captures = static_cast<int64_t>(inputs.size() - n_states - n_scanned);
    return b_.edit().add({.type = "Scan",
                          .inputs = inputs,
                          .attrs = {{"body", any_graph(body.get())},
                                    {"num_scan_inputs", static_cast<int64_t>(n_scanned)},
                                    {"captures", captures},
                                    {"scan_input_directions", in_ways},
                                    {"scan_output_directions", out_ways}},
                          .n_outputs = n_states + 1});
  }

  Status fill(const Edit& edit,
              const std::vector<Value>& outer,
              size_t n_states,
              size_t n_scanned,
              const std::vector<Activation>& activations) const {
    Builder b(edit);
    std::vector<Value> in;
    for (size_t i = 0; i < outer.size(); ++i) {
      Type type = outer[i].type();
      if (i < n_states) type = Type(type.dtype, {batch_, hidden_});
      if (i >= n_states && i < n_states + n_scanned) {
        type.dims.erase(type.dims.begin());
        type.symbols.clear();
      }
      TN_TRY(input, edit.input(cat("in", i), type));
      in.push_back(input);
    }
    Step step{b,
              node_,
              activations,
              hidden_,
              in[0],
              n_states > 1 ? in[1] : Value{},
              in[n_states],
              in[n_states + n_scanned],
              {}};
    if (in.size() > n_states + n_scanned + 1) step.extra = in.back();
    std::vector<Value> before(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n_states));
    step_(step);
    Value next[] = {step.h, step.c}, y = step.h;
    for (size_t i = 0; i < n_states; ++i) {
      Value held = n_scanned > 1 ? b.op("Where", {in[n_states + 1], next[i], before[i]}) : next[i];
      TN_CHECK(b.status());
      TN_CHECK(edit.output(cat("state", i), held));
    }
    y = n_scanned > 1 ? b.op("Where", {in[n_states + 1], y, b.number(0, y.dtype())})
                      : b.op("Identity", {y});
    TN_CHECK(b.status());
    return edit.output("y", y);
  }

  // Directions side by side, with the axes where the layout has them.
  Value joined(const std::vector<Value>& parts, bool steps) {
    std::vector<Value> wide;
    int64_t axis = steps ? (batch_first_ ? 2 : 1) : (batch_first_ ? 1 : 0);
    for (Value part : parts) {
      if (steps && batch_first_) part = b_.transpose(part, {1, 0, 2});
      wide.push_back(b_.op("Unsqueeze", {part, b_.ints({axis})}));
    }
    return wide.size() == 1 ? wide[0] : b_.op("Concat", wide, {{"axis", axis}});
  }

  Builder b_;
  Node node_;
  int64_t gates_;
  CellStep step_;
  int64_t hidden_ = 0, n_ = 1, batch_ = -1;
  bool batch_first_ = false;
  Value x_, mask_;
};

}  // namespace

std::vector<Value> Step::gates(Value from, uint64_t n) const {
  Node split = b.node({.type = "Split",
                       .inputs = {from, b.ints(std::vector<int64_t>(n, hidden))},
                       .attrs = {{"axis", -1}},
                       .n_outputs = n});
  return split ? split.outputs() : std::vector<Value>(n);
}
Value Step::bent(size_t activation, Value sum) const {
  if (double limit = node.attr_float("clip"); limit > 0)
    sum = b.op("Clip", {sum, b.number(-limit, sum.dtype()), b.number(limit, sum.dtype())});
  return applied(b, activations[activation], sum);
}

Result<std::vector<Value>> recurrent_parts(EditView edit,
                                           Node node,
                                           int64_t gates,
                                           const std::vector<std::string>& defaults,
                                           CellStep step) {
  return Unrolled(edit, node, gates, step).run(defaults);
}

}  // namespace tenon::ops
