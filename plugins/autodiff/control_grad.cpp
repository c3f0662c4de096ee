// SPDX-License-Identifier: Apache-2.0
// Scan and Loop: a Scan in the other direction, whose steps compute again what a step computes and
// go back through it. For that the loop keeps the states that its steps begin with, as further scan
// outputs.
#include "control_grad.hpp"

#include <algorithm>

#include "tenon/sdk/alike.hpp"

#include "branch_grad.hpp"
#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

// The backward pass of a Scan or a Loop.
class Walk {
 public:
  Walk(Gradients& g, Graph body, const Interface& parts, bool is_loop)
      : g_(g), body_(body), parts_(parts), is_loop_(is_loop) {}
  Status run() {
    find_active();
    TN_TRY(body, Body::begin(g_.edit().ctx()));
    TN_CHECK(add_inputs(body));
    TN_TRY(results, body.copy(body_, ours_));
    TN_CHECK(go_back(body, results));
    TN_CHECK(services.edit->set_scope(body.edit.raw, 0, {}));
    TN_CHECK(body.finish());
    TN_TRY(kept, drop_unused(body));
    TN_TRY(entering, keep_states(kept));
    return add_scan(body, kept, entering);
  }

 private:
  // What a step of the Scan back reads: an outer value, the axis and the direction of the walk.
  struct Scanned {
    enum From { kState, kIndex, kOuter } from;
    uint64_t state;
    Value outer;
    int64_t axis, backwards;
  };
  Node node() const { return g_.of(); }
  uint64_t state_input(size_t i) const { return parts_.n_first + i; }
  int64_t attr(const char* name, size_t i) const {
    return is_loop_ ? 0 : entry(node().attr_ints(name), i);
  }

  // A state is active when its first value is, or what a step makes of it.
  void find_active() {
    active_.resize(node().n_inputs());
    for (uint64_t i = 0; i < active_.size(); ++i)
      active_[i] = g_.wanted(i);
    std::vector<Value> inputs = body_.inputs(), outputs = body_.outputs();
    std::vector<Node> nodes = nodes_behind(outputs);
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<Value> wrt;
      for (size_t i = 0; i < active_.size(); ++i)
        if (active_[i]) wrt.push_back(inputs[i]);
      Active reached = depending(nodes, wrt);
      for (size_t i = 0; i < parts_.n_states; ++i) {
        bool before = active_[state_input(i)];
        Value next = outputs[parts_.n_results + i];
        if (before || !is_float(next.dtype()) || !reached.count(next.id)) continue;
        active_[state_input(i)] = changed = true;
      }
    }
  }

  Type state_type(size_t i) const {
    Type declared = body_.inputs()[state_input(i)].type();
    return declared.is_static() ? declared : node().output(i).type();
  }

  // In the order of a Scan: cotangents of states, sums for captures; slices; captures.
  Status add_inputs(const Body& body) {
    ours_.assign(node().n_inputs(), Value{});
    for (size_t i = 0; i < parts_.n_states; ++i) {
      if (!active_[state_input(i)]) continue;
      TN_TRY(carried, body.input(state_type(i)));
      carried_.push_back(carried);
      Value cotangent = g_.cotangent(i);
      first_.push_back(cotangent ? cotangent : g_.zeros_like(node().output(i)));
    }
    for (size_t i = parts_.captures(); i < node().n_inputs(); ++i) {
      if (!g_.wanted(i)) continue;
      TN_TRY(carried, body.input(g_.in(i).type()));
      carried_.push_back(carried);
      first_.push_back(g_.zeros_like(g_.in(i)));
    }
    TN_CHECK(add_slices(body));
    for (size_t i = parts_.captures(); i < node().n_inputs(); ++i) {
      TN_TRY(value, body.capture(g_.in(i), captured_));
      ours_[i] = value;
    }
    return {};
  }
  Status add_slices(const Body& body) {
    if (is_loop_) {
      TN_TRY(index, body.input(Type(TN_I64, {})));
      TN_TRY(yes, Tensor::zeros(g_.edit().ctx(), TN_BOOL, std::vector<int64_t>{}));
      *yes.data<uint8_t>() = 1;
      TN_TRY(condition, body.edit.constant(yes));
      ours_[0] = index;
      ours_[1] = condition;
      scanned_.push_back({Scanned::kIndex, 0, {}, 0, 1});
    }
    for (size_t i = 0; i < parts_.n_states; ++i) {
      TN_TRY(state, body.input(state_type(i)));
      ours_[state_input(i)] = state;
      scanned_.push_back({Scanned::kState, i, {}, 0, 1});
    }
    for (size_t i = 0; i < parts_.n_scanned; ++i) {
      Value outer = g_.in(parts_.scanned() + i);
      int64_t axis = attr("scan_input_axes", i);
      TN_TRY(slice, body.input(slice_type(outer.type(), axis)));
      ours_[parts_.scanned() + i] = slice;
      int64_t backwards = 1 - attr("scan_input_directions", i);
      scanned_.push_back({Scanned::kOuter, 0, outer, axis, backwards});
    }
    for (size_t i = parts_.n_states; i < node().n_outputs(); ++i) {
      Value outer = g_.cotangent(i);
      if (!outer) continue;
      int64_t axis = attr("scan_output_axes", i - parts_.n_states);
      TN_TRY(slice, body.input(slice_type(outer.type(), axis)));
      slices_.emplace_back(i, slice);
      int64_t backwards = 1 - attr("scan_output_directions", i - parts_.n_states);
      scanned_.push_back({Scanned::kOuter, 0, outer, axis, backwards});
    }
    return {};
  }

  Status go_back(const Body& body, const std::vector<Value>& results) {
    std::vector<Value> outputs, cotangents, wrt;
    size_t n_carried = 0;
    for (size_t i = 0; i < parts_.n_states; ++i) {
      if (!active_[state_input(i)]) continue;
      outputs.push_back(results[parts_.n_results + i]);
      cotangents.push_back(carried_[n_carried++]);
      wrt.push_back(ours_[state_input(i)]);
    }
    for (auto& [i, slice] : slices_) {
      outputs.push_back(results[parts_.n_results + i]);
      cotangents.push_back(slice);
    }
    for (bool captures : {true, false})
      for (size_t i = parts_.scanned(); i < node().n_inputs(); ++i)
        if ((i >= parts_.captures()) == captures && g_.wanted(i)) wrt.push_back(ours_[i]);
    TN_TRY(gradients, gradients_inside(body, outputs, cotangents, wrt));
    Builder b(body.edit);
    for (size_t i = 0; i < wrt.size(); ++i) {
      bool sum = i >= n_carried && i < carried_.size();
      if (sum) gradients[i] = gradients[i] ? b.add(carried_[i], gradients[i]) : carried_[i];
      TN_CHECK(b.status());
      TN_CHECK(add_gradient(body, gradients[i], wrt[i]));
    }
    return {};
  }

  // Slices that no node reads are not walked along; one stays, for the number of steps.
  Result<std::vector<Scanned>> drop_unused(const Body& body) {
    TN_TRY(edit, Edit::begin(body.graph.get()));
    std::vector<Scanned> kept = scanned_;
    for (size_t i = kept.size(); i-- > 0 && kept.size() > 1;) {
      Value slice = edit.graph().inputs()[carried_.size() + i];
      bool counts = kept[i].from == Scanned::kIndex;
      if (counts || slice.consumer_count() > 0 || slice.is_output()) continue;
      TN_CHECK(services.edit->remove_input(edit.raw, carried_.size() + i));
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    }
    TN_CHECK(edit.commit());
    return kept;
  }

  // The node again, with the inputs of its steps that the backward pass reads as scan outputs.
  Result<std::vector<Value>> keep_states(const std::vector<Scanned>& kept) {
    std::vector<Value> entering;
    bool any = std::any_of(kept.begin(), kept.end(),
                           [](const Scanned& s) { return s.from != Scanned::kOuter; });
    if (!any) return entering;
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->clone(body_.raw, &raw));
    OwnedGraph body = OwnedGraph::take(raw);
    size_t n_outputs = body_.outputs().size() - parts_.n_results, n_more = 0;
    TN_TRY(edit, Edit::begin(raw));
    for (const Scanned& s : kept) {
      if (s.from == Scanned::kOuter) continue;
      size_t at = s.from == Scanned::kIndex ? 0 : state_input(s.state);
      TN_TRY(copy, edit.op("Identity", {edit.graph().inputs()[at]}));
      TN_CHECK(edit.output({}, copy));
      ++n_more;
    }
    TN_CHECK(edit.commit());
    std::vector<Attr> attrs;
    std::vector<int64_t> axes = node().attr_ints("scan_output_axes"),
                         ways = node().attr_ints("scan_output_directions");
    attrs.emplace_back("body", any_graph(raw));
    for (std::vector<int64_t>* list : {&axes, &ways}) {
      list->resize(n_outputs - parts_.n_states);
      list->resize(n_outputs - parts_.n_states + n_more);
    }
    if (!is_loop_) {
      attrs.emplace_back("scan_output_axes", axes);
      attrs.emplace_back("scan_output_directions", ways);
    }
    Node made = g_.node({.type = node().type(),
                         .inputs = node().inputs(),
                         .attrs = attributes_of(node(), attrs),
                         .n_outputs = n_outputs + n_more});
    TN_CHECK(g_.status());
    for (uint64_t i = 0; i < node().n_outputs(); ++i)
      TN_CHECK(g_.edit().replace(node().output(i), made.output(i)));
    for (size_t i = 0; i < n_more; ++i)
      entering.push_back(made.output(n_outputs + i));
    return entering;
  }

  Status add_scan(const Body& body,
                  const std::vector<Scanned>& kept,
                  const std::vector<Value>& entering) {
    std::vector<Value> inputs = first_;
    std::vector<int64_t> axes, ways, out_axes, out_ways;
    size_t n_entering = 0;
    for (const Scanned& s : kept) {
      inputs.push_back(s.from == Scanned::kOuter ? s.outer : entering[n_entering++]);
      axes.push_back(s.axis);
      ways.push_back(s.backwards);
    }
    inputs.insert(inputs.end(), captured_.begin(), captured_.end());
    for (size_t i = 0; i < parts_.n_scanned; ++i) {
      if (!g_.wanted(parts_.scanned() + i)) continue;
      out_axes.push_back(attr("scan_input_axes", i));
      out_ways.push_back(1 - attr("scan_input_directions", i));
    }
    Node made = g_.node({.type = "Scan",
                         .inputs = inputs,
                         .attrs = {{"body", any_graph(body.graph.get())},
                                   {"num_scan_inputs", static_cast<int64_t>(kept.size())},
                                   {"captures", static_cast<int64_t>(captured_.size())},
                                   {"scan_input_axes", axes},
                                   {"scan_input_directions", ways},
                                   {"scan_output_axes", out_axes},
                                   {"scan_output_directions", out_ways}},
                         .n_outputs = first_.size() + out_axes.size()});
    TN_CHECK(g_.status());
    size_t at = 0;
    for (size_t i = 0; i < parts_.n_states; ++i) {
      if (!active_[state_input(i)]) continue;
      if (g_.wanted(state_input(i))) g_.set(state_input(i), made.output(at));
      ++at;
    }
    for (bool captures : {true, false})
      for (size_t i = parts_.scanned(); i < node().n_inputs(); ++i)
        if ((i >= parts_.captures()) == captures && g_.wanted(i)) g_.set(i, made.output(at++));
    return {};
  }

  Gradients& g_;
  Graph body_;
  Interface parts_;
  bool is_loop_;
  std::vector<uint8_t> active_;  // by input of the node
  std::vector<Value> ours_;      // the copied body's inputs
  std::vector<Value> carried_;   // states of the Scan back, and what they begin with
  std::vector<Value> first_;
  std::vector<Scanned> scanned_;
  std::vector<std::pair<size_t, Value>> slices_;  // of cotangents, by output
  std::vector<Value> captured_;
};

Status scan_gradient(Gradients& g) {
  Graph body = body_of(g.of(), "body");
  TN_TRY(parts, scan_interface(g.of(), body));
  return Walk(g, body, parts, false).run();
}
Status loop_gradient(Gradients& g) {
  Graph body = body_of(g.of(), "body");
  TN_TRY(parts, loop_interface(g.of(), body));
  return Walk(g, body, parts, true).run();
}

struct ControlRule {
  std::string_view type;
  Status (*gradient)(Gradients&);
};
constexpr ControlRule kRules[] = {
    {"If", if_gradient}, {"Loop", loop_gradient}, {"Scan", scan_gradient}};

}  // namespace

Status control_gradient(Gradients& g) {
  for (const ControlRule& rule : kRules)
    if (g.of().is(rule.type)) return rule.gradient(g);
  return unsupported("no gradient: its row would need one of the columns vjp, decompose");
}

}  // namespace tenon::autodiff
