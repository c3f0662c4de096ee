// SPDX-License-Identifier: Apache-2.0
// Scan and Loop: a Scan in the other direction, whose steps compute again what a step computes and
// go back through it. For that the loop keeps the states that its steps begin with, as further scan
// outputs. Products of small steps are kept as well, and the gradients of what they multiply with
// are one product behind the Scan, not a sum that each step adds to.
#include "control_grad.hpp"

#include <algorithm>

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/steps.hpp"

#include "branch_grad.hpp"
#include "loop_products.hpp"
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
    products_ = products_to_keep(body_, parts_);
    TN_CHECK(add_inputs(body));
    TN_TRY(results, body.copy(body_, ours_, &products_));
    TN_CHECK(go_back(body, results));
    TN_CHECK(services.edit->set_scope(body.edit.raw, 0, {}));
    TN_CHECK(body.finish());
    TN_CHECK(drop_unused(body));
    TN_CHECK(keep_states());
    return add_scan(body);
  }

 private:
  // What a step of the Scan back reads: an outer value, the axis and the direction of the walk.
  struct Scanned {
    enum From { kState, kIndex, kProduct, kOuter } from;
    uint64_t state;
    Value outer;  // of kProduct: a value of the forward body
    int64_t axis, backwards;
    bool is_walked = true, is_read_behind = false;
  };
  // One side of a product over all steps: what is scanned, or an output of the Scan.
  struct Side {
    std::optional<size_t> scanned;
    size_t output = 0;
  };
  struct Sunk {
    uint64_t input;
    Side left, right;
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
    for (Value product : products_) {
      TN_TRY(kept, body.input(product.type()));
      placeholders_.push_back(kept);
      scanned_.push_back({Scanned::kProduct, 0, product, 0, 1});
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

  // Once the gradient is there: what it reads of products is what was kept of them.
  Status read_products(const Body& body, std::vector<Value>* gradients) {
    for (size_t i = 0; i < products_.size(); ++i) {
      for (Value& gradient : *gradients)
        if (gradient && gradient.id == products_[i].id) gradient = placeholders_[i];
      TN_CHECK(body.edit.replace(products_[i], placeholders_[i]));
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
    TN_CHECK(read_products(body, &gradients));
    Builder b(body.edit);
    std::vector<std::pair<size_t, RowsProduct>> sunk;  // by gradient
    for (size_t i = 0; i < wrt.size(); ++i) {
      bool sum = i >= n_carried && i < carried_.size();
      std::optional<RowsProduct> product = sum ? sinkable(gradients, i) : std::nullopt;
      if (product) {
        sunk.emplace_back(i, *product);
        continue;
      }
      if (sum) gradients[i] = gradients[i] ? b.add(carried_[i], gradients[i]) : carried_[i];
      TN_CHECK(b.status());
      TN_CHECK(add_gradient(body, gradients[i], wrt[i]));
    }
    for (size_t i = 0; i < parts_.n_scanned; ++i) {
      if (!g_.wanted(parts_.scanned() + i)) continue;
      out_axes_.push_back(attr("scan_input_axes", i));
      out_ways_.push_back(1 - attr("scan_input_directions", i));
    }
    for (auto& [i, product] : sunk) {
      // Both sides lie in the order of the left one, where that is scanned.
      auto scanned = place_of(body, product.left);
      int64_t way = scanned ? scanned_[*scanned].backwards : 1;
      TN_TRY(left, side_of(body, product.left, way));
      TN_TRY(right, side_of(body, product.right, way));
      sunk_.push_back({input_of(wrt[i]), left, right});
    }
    for (size_t k = sunk.size(); k-- > 0;) {
      auto at = static_cast<std::ptrdiff_t>(sunk[k].first);
      TN_CHECK(services.edit->remove_input(body.edit.raw, sunk[k].first));
      carried_.erase(carried_.begin() + at);
      first_.erase(first_.begin() + at);
    }
    return {};
  }

  std::optional<RowsProduct> sinkable(const std::vector<Value>& gradients, size_t i) const {
    if (is_loop_ && !known_steps(node(), body_)) return {};
    return worth_a_product(gradients[i], std::span(gradients).subspan(carried_.size()));
  }

  uint64_t input_of(Value ours) const {
    auto same = [ours](Value v) { return v && v.id == ours.id; };
    return static_cast<uint64_t>(std::find_if(ours_.begin(), ours_.end(), same) - ours_.begin());
  }

  // Which of what is scanned along its first axis this slice is of.
  std::optional<size_t> place_of(const Body& body, Value slice) const {
    std::vector<Value> inputs = body.edit.graph().inputs();
    for (size_t i = 0; i < scanned_.size(); ++i)
      if (inputs[carried_.size() + i].id == slice.id && scanned_[i].axis == 0) return i;
    return {};
  }

  Result<Side> side_of(const Body& body, Value value, int64_t way) {
    Side out;
    out.scanned = place_of(body, value);
    if (out.scanned && scanned_[*out.scanned].backwards == way) {
      scanned_[*out.scanned].is_read_behind = true;
      return out;
    }
    out.scanned.reset();
    std::vector<Value> outputs = body.edit.graph().outputs();
    size_t n_slices = out_ways_.size(), first = outputs.size() - n_slices;
    for (size_t i = 0; i < n_slices; ++i) {
      out.output = first + i;
      if (outputs[first + i].id == value.id && out_axes_[i] == 0 && out_ways_[i] == way) return out;
    }
    out.output = outputs.size();
    TN_CHECK(body.output(value));
    out_axes_.push_back(0);
    out_ways_.push_back(way);
    return out;
  }

  // Slices that no node reads are not walked along; one stays, for the number of steps. What a
  // product behind the Scan reads is kept in any case.
  Status drop_unused(const Body& body) {
    TN_TRY(edit, Edit::begin(body.graph.get()));
    size_t n_walked = scanned_.size();
    for (size_t i = scanned_.size(); i-- > 0 && n_walked > 1;) {
      Value slice = edit.graph().inputs()[carried_.size() + i];
      bool counts = scanned_[i].from == Scanned::kIndex;
      if (counts || slice.consumer_count() > 0 || slice.is_output()) continue;
      TN_CHECK(services.edit->remove_input(edit.raw, carried_.size() + i));
      scanned_[i].is_walked = false;
      --n_walked;
    }
    return edit.commit();
  }

  // The node again, with what the backward pass reads of its steps as scan outputs.
  Status keep_states() {
    auto is_kept = [](const Scanned& s) {
      return s.from != Scanned::kOuter && (s.is_walked || s.is_read_behind);
    };
    if (std::none_of(scanned_.begin(), scanned_.end(), is_kept)) return {};
    TN_TRY(body, OwnedGraph::copy_of(body_.raw));
    size_t n_outputs = body_.outputs().size() - parts_.n_results, n_more = 0;
    TN_TRY(edit, Edit::begin(body.get()));
    for (const Scanned& s : scanned_) {
      if (!is_kept(s)) continue;
      size_t at = s.from == Scanned::kIndex ? 0 : state_input(s.state);
      Value value = s.from == Scanned::kProduct ? edit.graph().find(s.outer.name())
                                                : edit.graph().inputs()[at];
      TN_TRY(copy, edit.op("Identity", {value}));
      TN_CHECK(edit.output({}, copy));
      ++n_more;
    }
    TN_CHECK(edit.commit());
    std::vector<Attr> attrs;
    std::vector<int64_t> axes = node().attr_ints("scan_output_axes"),
                         ways = node().attr_ints("scan_output_directions");
    attrs.emplace_back("body", any_graph(body.get()));
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
    for (Scanned& s : scanned_)
      if (is_kept(s)) s.outer = made.output(n_outputs++);
    return {};
  }

  Status add_scan(const Body& body) {
    std::vector<Value> inputs = first_;
    std::vector<int64_t> axes, ways;
    for (const Scanned& s : scanned_) {
      if (!s.is_walked) continue;
      inputs.push_back(s.outer);
      axes.push_back(s.axis);
      ways.push_back(s.backwards);
    }
    inputs.insert(inputs.end(), captured_.begin(), captured_.end());
    Node made = g_.node({.type = "Scan",
                         .inputs = inputs,
                         .attrs = {{"body", any_graph(body.graph.get())},
                                   {"num_scan_inputs", static_cast<int64_t>(axes.size())},
                                   {"captures", static_cast<int64_t>(captured_.size())},
                                   {"scan_input_axes", axes},
                                   {"scan_input_directions", ways},
                                   {"scan_output_axes", out_axes_},
                                   {"scan_output_directions", out_ways_}},
                         .n_outputs = first_.size() + out_axes_.size()});
    TN_CHECK(g_.status());
    size_t at = 0;
    for (size_t i = 0; i < parts_.n_states; ++i) {
      if (!active_[state_input(i)]) continue;
      if (g_.wanted(state_input(i))) g_.set(state_input(i), made.output(at));
      ++at;
    }
    auto is_sunk = [this](uint64_t i) {
      return std::ranges::any_of(sunk_, [i](const Sunk& one) { return one.input == i; });
    };
    for (bool captures : {true, false})
      for (size_t i = parts_.scanned(); i < node().n_inputs(); ++i)
        if ((i >= parts_.captures()) == captures && g_.wanted(i) && !is_sunk(i))
          g_.set(i, made.output(at++));
    auto of = [&](const Side& side) {
      return side.scanned ? scanned_[*side.scanned].outer : made.output(side.output);
    };
    for (const Sunk& one : sunk_)
      g_.set(one.input, product_over_steps(g_, of(one.left), of(one.right)));
    return g_.status();
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
  std::vector<Value> products_, placeholders_;  // those that are kept, and what is scanned of them
  std::vector<Sunk> sunk_;
  std::vector<int64_t> out_axes_, out_ways_;      // of the scan outputs of the Scan back
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
