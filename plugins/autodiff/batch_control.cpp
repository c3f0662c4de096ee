// SPDX-License-Identifier: Apache-2.0
// vmap through If, Scan and Loop: the same node on bodies that are batched themselves. A state has
// the new axis when its first value has it, or when a step gives it one.
#include "batch_choice.hpp"
#include "batching.hpp"
#include "bodies.hpp"
#include "interface.hpp"
#include "masked_loop.hpp"
#include "ragged.hpp"
#include "rules.hpp"

namespace tenon::autodiff {
namespace {

Type wide_type(Type type, int64_t size) {
  type.dims.insert(type.dims.begin(), size);
  if (!type.symbols.empty()) type.symbols.insert(type.symbols.begin(), "");
  return type;
}

using Marks = std::vector<uint8_t>;

// A body whose marked inputs have the new axis. out: marks of outputs that must have it, and on
// return all that do. types: of the inputs, without it.
Result<OwnedGraph> batched_body(
    BatchContext& c, Graph body, const std::vector<Type>& types, const Marks& in, Marks& out) {
  TN_TRY(made, Body::begin(c.edit.ctx()));
  BatchContext inner{made.edit, c.size, c.random, {}, {}, {}};
  std::vector<Value> ours, wide;
  for (size_t i = 0; i < types.size(); ++i) {
    if (in[i] && !types[i].ranked) return unsupported("body: expected inputs of known rank");
    TN_TRY(input, made.input(in[i] ? wide_type(types[i], c.size) : types[i]));
    wide.push_back(input);
  }
  for (size_t i = 0; i < types.size(); ++i) {  // stand for one example, and leave again
    ours.push_back(wide[i]);
    if (!in[i]) continue;
    TN_TRY(one, made.input(types[i]));
    ours[i] = one;
    inner.batched[one.id] = wide[i];
  }
  TN_TRY(results, made.copy(body, ours));
  Builder b(made.edit);
  std::vector<Node> readers;  // they are shown what stands for a result that has no new axis
  for (Value result : results)
    readers.push_back(b.node({.type = "Identity", .inputs = {result}}));
  TN_CHECK(b.status());
  TN_CHECK(batch_nodes(inner, results, Cancel(nullptr)));
  out.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = readers[i].input(0);
    out[i] = out[i] || inner.batched.count(results[i].id) > 0;
    Value result = out[i] ? with_axis(b, inner, results[i]) : results[i];
    TN_CHECK(b.status());
    TN_CHECK(made.output(result));
  }
  TN_CHECK(drop_dead_nodes(made.edit, inner.batched));
  for (size_t n = made.edit.graph().inputs().size(); n > types.size(); --n)
    TN_CHECK(services.edit->remove_input(made.edit.raw, n - 1));
  TN_CHECK(made.finish());
  c.loops.insert(c.loops.end(), inner.loops.begin(), inner.loops.end());
  return std::move(made.graph);
}

// Scan and Loop.
class Steps {
 public:
  Steps(BatchContext& c, Node node, Graph body, const Interface& parts)
      : c_(c), node_(node), inputs_(node.inputs()), body_(body), parts_(parts) {}
  // A Loop in its masked form, whose first state is no output of the node.
  Steps(BatchContext& c, Node node, const LoopForm& form)
      : c_(c),
        node_(node),
        inputs_(form.inputs),
        body_{form.body.get()},
        parts_(form.parts),
        n_hidden_(1),
        has_mask_(form.has_mask) {}

  // False, and nothing is changed, where the number of iterations differs by example.
  Result<bool> run() {
    find_types();
    for (Value input : inputs_)
      in_.push_back(input && c_.batched.count(input.id) > 0);
    OwnedGraph body;
    std::vector<std::string> loops = c_.loops;
    for (bool is_stable = false; !is_stable;) {
      c_.loops = loops;
      out_.assign(body_.outputs().size(), 0);
      for (size_t i = 0; i < parts_.n_states; ++i)
        out_[parts_.n_results + i] = in_[parts_.n_first + i];
      TN_TRY(made, batched_body(c_, body_, types_, in_, out_));
      is_stable = true;
      for (size_t i = 0; i < parts_.n_states; ++i) {
        bool grown = out_[parts_.n_results + i] && !in_[parts_.n_first + i];
        in_[parts_.n_first + i] = in_[parts_.n_first + i] || grown;
        is_stable = is_stable && !grown;
      }
      body = std::move(made);
    }
    bool differs = is_loop() && (in_[0] || in_[1] || out_[0]);
    if (n_hidden_ > 0) {
      TN_CHECK(join_conditions(body));
      TN_CHECK(bound_iterations());
    } else if (differs) {
      return false;
    }
    TN_CHECK(replace(body));
    return true;
  }

 private:
  void find_types() {
    std::vector<Value> inputs = body_.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      Type declared = inputs[i].type(), outer = inputs_[i] ? inputs_[i].type() : Type{};
      bool state = i >= parts_.n_first + n_hidden_ && i < parts_.scanned();
      if (state) outer = node_.output(i - parts_.n_first - n_hidden_).type();
      if (i >= parts_.scanned() && i < parts_.captures())
        outer = slice_type(outer, entry(node_.attr_ints("scan_input_axes"), i - parts_.scanned()));
      bool ours = declared.is_static() || i < parts_.n_first || !outer.ranked;
      types_.push_back(ours ? declared : outer);
    }
  }
  // Axes of one example among those of all, where an input or an output has the new first one.
  std::vector<int64_t> axes(const char* name, size_t n, size_t first, const Marks& marks) const {
    std::vector<int64_t> given = node_.attr_ints(name), out;
    for (size_t i = 0; i < n; ++i) {
      int64_t axis = entry(given, i);
      out.push_back(axis >= 0 && marks[first + i] ? axis + 1 : axis);
    }
    return out;
  }
  // The whole goes on as long as one example does.
  Status bound_iterations() {
    Builder b(c_.edit);
    inputs_[1] = any_of(b, form_of(c_, inputs_[2]));
    if (Value trip = node_.input(0)) {
      Value most = b.op("ReduceMax", {form_of(c_, trip)}, {{"keepdims", 0}});
      inputs_[0] = most;
    }
    return b.status();
  }
  Status replace(const OwnedGraph& body) {
    Builder b(c_.edit);
    std::vector<Value> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs.push_back(in_[i] ? with_axis(b, c_, inputs_[i]) : inputs_[i]);
    size_t n_scans = body_.outputs().size() - parts_.n_results - parts_.n_states;
    std::vector<int64_t> in = axes("scan_input_axes", parts_.n_scanned, parts_.scanned(), in_);
    std::vector<int64_t> out =
        axes("scan_output_axes", n_scans, parts_.n_results + parts_.n_states, out_);
    std::vector<Attr> attrs{{"body", any_graph(body.get())}};
    if (is_loop()) {
      attrs.emplace_back("captures", static_cast<int64_t>(parts_.n_captures));
    } else {
      attrs.emplace_back("scan_input_axes", in);
      attrs.emplace_back("scan_output_axes", out);
    }
    Node made = b.node({.type = node_.type(),
                        .inputs = inputs,
                        .attrs = attributes_of(node_, attrs),
                        .n_outputs = node_.n_outputs() + n_hidden_ + has_mask_});
    TN_CHECK(b.status());
    if (has_mask_) TN_CHECK(mark_scans(b, made));
    for (uint64_t i = 0; i < node_.n_outputs(); ++i) {
      Value output = node_.output(i), ours = made.output(i + n_hidden_);
      if (!output) continue;
      if (!out_[parts_.n_results + n_hidden_ + i]) {
        if (auto mask = c_.ragged.find(output.id); mask != c_.ragged.end())
          c_.ragged[ours.id] = mask->second;
        TN_CHECK(c_.edit.replace(output, ours));
        continue;
      }
      if (is_loop() && i + n_hidden_ >= parts_.n_states) ours = from_second_axis(b, ours);
      TN_CHECK(b.status());
      c_.batched[output.id] = ours;
    }
    return {};
  }
  // The mask is the last of the scan outputs.
  Status mark_scans(Builder& b, Node made) {
    std::vector<Value> scans = node_.outputs();
    scans.erase(scans.begin(),
                scans.begin() + static_cast<std::ptrdiff_t>(parts_.n_states - n_hidden_));
    std::erase_if(scans, [](Value scan) { return !scan; });
    if (scans.empty()) return {};
    Value wide = from_second_axis(b, made.output(made.n_outputs() - 1));
    TN_CHECK(b.status());
    TN_TRY(mask, add_mask(c_, scans[0], wide));
    for (Value scan : scans)
      c_.ragged[scan.id] = mask;
    return {};
  }
  // Loop joins iterations along a new first axis.
  Value from_second_axis(Builder& b, Value x) const {
    std::vector<int64_t> perm;
    for (size_t i = 0; i < b.ranked(x, "Loop").rank(); ++i)
      perm.push_back(static_cast<int64_t>(i));
    if (perm.size() > 1) std::swap(perm[0], perm[1]);
    return b.transpose(x, perm);
  }

  bool is_loop() const { return parts_.n_first > 0; }

  BatchContext& c_;
  Node node_;
  std::vector<Value> inputs_;  // of the node, or of its masked form
  Graph body_;
  Interface parts_;
  size_t n_hidden_ = 0;    // states that are no outputs of the node
  bool has_mask_ = false;  // as a further scan output
  std::vector<Type> types_;
  Marks in_, out_;
};

Result<std::vector<Node>> batch_if(BatchContext& c, Node node) {
  Graph branches[] = {body_of(node, "then_branch"), body_of(node, "else_branch")};
  for (Graph branch : branches)
    if (!branch.raw || branch.inputs().size() + 1 != node.n_inputs())
      return invalid("expected then_branch and else_branch that fit its inputs");
  if (c.batched.count(node.input(0).id)) return batch_choice(c, node, branches);
  Marks in, out(branches[0].outputs().size());
  std::vector<Type> types;
  for (uint64_t i = 1; i < node.n_inputs(); ++i) {
    in.push_back(c.batched.count(node.input(i).id) > 0);
    types.push_back(node.input(i).type());
  }
  // Twice: an output that has the axis in one branch has it in both.
  OwnedGraph made[2];
  std::vector<std::string> loops = c.loops;
  for (int round = 0; round < 2; ++round) {
    c.loops = loops;
    for (int side = 0; side < 2; ++side) {
      TN_TRY(body, batched_body(c, branches[side], types, in, out));
      made[side] = std::move(body);
    }
  }
  Builder b(c.edit);
  std::vector<Value> inputs;
  for (Value input : node.inputs())
    inputs.push_back(form_of(c, input));
  Node wide =
      again(b, node, inputs,
            {{"then_branch", any_graph(made[0].get())}, {"else_branch", any_graph(made[1].get())}});
  TN_CHECK(b.status());
  for (uint64_t i = 0; i < node.n_outputs(); ++i) {
    if (!node.output(i)) continue;
    if (out[i])
      c.batched[node.output(i).id] = wide.output(i);
    else
      TN_CHECK(c.edit.replace(node.output(i), wide.output(i)));
  }
  return std::vector<Node>{};
}

Result<std::vector<Node>> batch_scan(BatchContext& c, Node node) {
  Graph body = body_of(node, "body");
  TN_TRY(parts, scan_interface(node, body));
  TN_TRY(masked, masked_scan(c, node, body, parts));
  if (masked) return std::vector<Node>{*masked};
  TN_CHECK(Steps(c, node, body, parts).run().status());
  return std::vector<Node>{};
}
Result<std::vector<Node>> batch_loop(BatchContext& c, Node node) {
  Graph body = body_of(node, "body");
  TN_TRY(parts, loop_interface(node, body));
  TN_TRY(done, Steps(c, node, body, parts).run());
  if (done) return std::vector<Node>{};
  TN_TRY(masked, masked_loop(c.edit, node, body, parts));
  TN_CHECK(Steps(c, node, masked).run().status());
  return std::vector<Node>{};
}

struct ControlRule {
  std::string_view type;
  Result<std::vector<Node>> (*batch)(BatchContext&, Node);
};
constexpr ControlRule kRules[] = {{"If", batch_if}, {"Loop", batch_loop}, {"Scan", batch_scan}};

std::vector<Type> types_of(const std::vector<Value>& values) {
  std::vector<Type> types;
  for (Value value : values)
    types.push_back(value.type());
  return types;
}

}  // namespace

Status batch_function(BatchContext& c, Node node) {
  Called called = function_of(node);
  Graph body{called.body}, vjp{called.vjp};
  Marks in(body.inputs().size(), 1), out(body.outputs().size(), 1);
  Marks in_vjp(vjp.inputs().size(), 1), out_vjp(vjp.outputs().size(), 1);
  TN_TRY(wide, batched_body(c, body, types_of(body.inputs()), in, out));
  TN_TRY(wide_vjp, batched_body(c, vjp, types_of(vjp.inputs()), in_vjp, out_vjp));
  std::string type = cat(node.type(), "_of_", c.size < 0 ? "many" : std::to_string(c.size));
  std::string domain(node.domain());
  Status added(
      services.edit->add_function(c.edit.raw, str(domain), str(type), wide.get(), wide_vjp.get()));
  bool is_there = !added.ok() && added.code() == TN_ALREADY_EXISTS;  // called twice
  if (!is_there) TN_CHECK(std::move(added));
  Builder b(c.edit);
  std::vector<Value> inputs;
  for (Value input : node.inputs())
    inputs.push_back(with_axis(b, c, input));
  Node made =
      b.node({.type = type, .inputs = inputs, .n_outputs = node.n_outputs(), .domain = domain});
  TN_CHECK(b.status());
  for (uint64_t i = 0; i < node.n_outputs(); ++i)
    if (node.output(i)) c.batched[node.output(i).id] = made.output(i);
  return {};
}

Result<std::vector<Node>> batch_control(BatchContext& c, Node node) {
  for (const ControlRule& rule : kRules)
    if (node.is(rule.type)) return rule.batch(c, node);
  return unsupported("no batch rule: control flow that the plugin autodiff does not know");
}

}  // namespace tenon::autodiff
