// SPDX-License-Identifier: Apache-2.0
// "trainer.sharpness": sharpness-aware minimization (Foret et al. 2021, equation 2) on a joint
// graph. The gradient is that at the worst point near the weights w,
//   w + e,  e = radius g / |g|, |g| the norm of all gradients together;
// adaptive (ASAM, Kwon et al. 2021, equation 5): e = radius w^2 g / | |w| g |. Forward and backward
// pass are written again on w + e: everything that depends on no parameter is shared, so masks of
// Dropout are the same, and states that the forward pass moves (running statistics) are moved once,
// by the pass on w. What is written again and draws by its name gets a seed first: both passes are
// of one loss, with the same noise. The update is of w.
#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "gradients.hpp"

namespace tenon::trainer {
namespace {

class Sharpness {
 public:
  static Result<Sharpness> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(seed, Component::create(ctx, "tenon.pass/1", "autodiff.seed_draws"));
    return Sharpness(std::move(seed), options.number("radius"), options.flag("adaptive"));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& report) {
    StringSink seeded;
    TN_CHECK(Status(seed_.table<tn_pass>()->run(seed_.self(), raw, cancel.raw(), seeded.get())));
    TN_TRY(edit, Edit::begin(raw));
    TN_TRY(gradients, gradients_of(edit.graph()));
    std::vector<Value> parameters;
    for (const Gradient& one : gradients) {
      std::string_view name = edit.graph().output_name(one.place).substr(kGradient.size());
      Value of = edit.graph().find(name);
      if (!of || of.producer())
        return invalid(cat("output grad/", name, ": expected an input or constant of this name"));
      parameters.push_back(of);
    }
    std::vector<Node> wanted = nodes_between(edit.graph(), parameters, gradients);
    Builder b(edit);
    std::map<tn_value_id, Value> moved = worst(b, parameters, gradients);
    TN_CHECK(b.status());
    for (Node node : wanted) {
      TN_CHECK(cancel.check());
      TN_CHECK(write_again(b, node, moved).in(cat("node ", node.name())));
    }
    for (const Gradient& one : gradients)
      if (auto at = moved.find(one.value.id); at != moved.end())
        TN_CHECK(Status(services.edit->set_output(edit.raw, one.place, at->second.id)));
    TN_CHECK(edit.commit());
    nlohmann::json made{{"parameters", parameters.size()}, {"nodes_again", wanted.size()}};
    return report.write(made.dump());
  }

 private:
  Sharpness(Component seed, double radius, bool adapts)
      : seed_(std::move(seed)), radius_(radius), adapts_(adapts) {}

  // In order: what depends on a parameter, and a gradient on it.
  static std::vector<Node> nodes_between(Graph graph,
                                         const std::vector<Value>& parameters,
                                         const std::vector<Gradient>& gradients) {
    std::set<tn_value_id> follows, needed;
    for (Value one : parameters)
      follows.insert(one.id);
    std::vector<Node> nodes = graph.nodes(), out;
    auto any_in = [](const std::vector<Value>& values, const std::set<tn_value_id>& set) {
      return std::ranges::any_of(values, [&](Value v) { return v && set.contains(v.id); });
    };
    for (Node node : nodes)
      if (any_in(node.inputs(), follows))
        for (Value v : node.outputs())
          if (v) follows.insert(v.id);
    for (const Gradient& one : gradients)
      needed.insert(one.value.id);
    for (size_t i = nodes.size(); i-- > 0;) {
      if (!any_in(nodes[i].outputs(), needed)) continue;
      for (Value v : nodes[i].inputs())
        if (v) needed.insert(v.id);
      if (any_in(nodes[i].inputs(), follows)) out.push_back(nodes[i]);
    }
    return {out.rbegin(), out.rend()};
  }

  // w + e for each parameter.
  std::map<tn_value_id, Value> worst(Builder& b,
                                     const std::vector<Value>& parameters,
                                     const std::vector<Gradient>& gradients) const {
    auto is_double = [](const Gradient& one) { return one.value.dtype() == TN_F64; };
    const uint32_t type = std::ranges::all_of(gradients, is_double) ? TN_F64 : TN_F32;
    Value squares;
    for (size_t i = 0; i < parameters.size(); ++i) {
      Value g = b.cast(gradients[i].value, type);
      if (adapts_) g = b.mul(g, b.cast(parameters[i], type));
      Value sum = b.op("ReduceSum", {b.mul(g, g)}, {{"keepdims", 0}});
      squares = squares ? b.add(squares, sum) : sum;
    }
    Value norm = b.add(b.op("Sqrt", {squares}), b.number(1e-12, type));
    Value factor = b.div(b.number(radius_, type), norm);
    std::map<tn_value_id, Value> out;
    for (size_t i = 0; i < parameters.size(); ++i) {
      Value w = parameters[i], e = b.mul(gradients[i].value, b.cast(factor, w.dtype()));
      if (adapts_) e = b.mul(b.mul(w, w), e);
      out[w.id] = b.add(w, e);
    }
    return out;
  }

  static Status write_again(Builder& b, Node node, std::map<tn_value_id, Value>& moved) {
    std::vector<Value> inputs = node.inputs();
    for (Value& input : inputs)
      if (auto at = input ? moved.find(input.id) : moved.end(); at != moved.end())
        input = at->second;
    Node made = again(b, node, inputs);
    TN_CHECK(b.status());
    for (uint64_t i = 0; i < node.n_outputs(); ++i)
      if (node.output(i)) moved[node.output(i).id] = made.output(i);
    return {};
  }

  Component seed_;
  double radius_;
  bool adapts_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(sharpness,
           tenon::trainer::Sharpness,
           "trainer.sharpness",
           "sharpness-aware minimization: gradients at the worst point near the weights",
           R"({
  "properties": {
    "radius": {"type": "number", "exclusiveMinimum": 0, "default": 0.05, "description": "radius of the neighbourhood (rho): 0.05, adaptive 0.5 to 2"},
    "adaptive": {"type": "boolean", "default": false, "description": "adaptive: the neighbourhood is relative to each weight, as in ASAM"}}})")
