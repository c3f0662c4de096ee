// SPDX-License-Identifier: Apache-2.0
// "pruner.group_lasso": another optimizer's step, and then the proximal step of the group lasso
// (Yuan and Lin 2006; of networks: Wen et al. 2016): the weights g that make a channel shrink by
// max(0, 1 - rate * strength * sqrt(size of g) / |g|), so that channels which the loss does not
// hold become zero, exactly, where a penalty in the loss would leave them small. Behind a
// normalization the norm of a filter is free: fold it, or keep its factors small as well.
#include <cmath>
#include <optional>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/component.hpp"
#include "tenon/sdk/layer_form.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/setting.hpp"

namespace tenon::pruner {
namespace {

// The axis along which the parameter makes channels: that of the first layer that multiplies with
// it, also behind nodes that only scale it; -1: none does.
int64_t channel_axis(Value parameter) {
  for (uint64_t i = 0; i < parameter.consumer_count(); ++i) {
    Node node = parameter.consumer(i);
    const tn_op_columns* columns = node.columns();
    if (!columns || columns->n_products == 0) {
      Value scaled = node.n_outputs() == 1 ? node.output() : Value{};
      if (!scaled || scaled.type().dims != parameter.type().dims) continue;
      if (int64_t axis = channel_axis(scaled); axis >= 0) return axis;
      continue;
    }
    auto act = static_cast<uint64_t>(columns->products[0].act);
    auto weight = static_cast<uint64_t>(columns->products[0].weight);
    if (!(node.input(weight) == parameter)) continue;
    std::optional<LayerForm> form = layer_form(node, act, weight);
    if (form && !form->is_stack && form->weight_out >= 0) return form->weight_out;
  }
  return -1;
}

class GroupLasso {
 public:
  static Result<GroupLasso> create(tn_ctx* ctx, const Options& options) {
    GroupLasso out;
    out.strength_ = options.number("strength");
    out.skip_ = options.texts("skip");
    TN_TRY(inner, component_option(ctx, options, "optimizer", "tenon.optimizer/1"));
    if (!inner) return invalid("option optimizer: expected what makes the step before it");
    out.inner_ = std::move(inner);
    return Result<GroupLasso>(std::move(out));
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(inner_step(edit, update, after));
    Builder b(edit);
    Value strength = tenon::setting(b, "strength", strength_);
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      int64_t axis = matched_by(skip_, one.name).empty() ? channel_axis(one.value) : -1;
      if (axis < 0) continue;
      after[i] = shrunk(b, after[i], static_cast<size_t>(axis), b.mul(strength, update.rate));
    }
    return b.status();
  }

 private:
  Status inner_step(EditView edit, const Update& update, std::span<Value> after) const {
    std::vector<tn_parameter> parameters;
    for (const Parameter& one : update.parameters)
      parameters.push_back({sizeof(tn_parameter), 0, str(one.name), one.value.id, one.gradient.id});
    std::vector<const tn_parameter*> pointers;
    for (const tn_parameter& one : parameters)
      pointers.push_back(&one);
    tn_update given{sizeof given, 0, pointers.size(), pointers.data(), update.rate.id};
    std::vector<tn_value_id> made(after.size());
    Status built(inner_.table<tn_optimizer>()->build(inner_.self(), edit.raw, &given, made.data()));
    if (!built.ok()) return std::move(built).in(cat("option optimizer: ", inner_.id()));
    for (size_t i = 0; i < after.size(); ++i)
      after[i] = edit.value(made[i]);
    return {};
  }

  static Value shrunk(Builder& b, Value w, size_t axis, Value by) {
    const uint32_t dtype = w.dtype();
    std::vector<int64_t> rest;
    double size = 1;
    Type type = w.type();
    for (size_t i = 0; i < type.rank(); ++i) {
      if (i == axis) continue;
      rest.push_back(static_cast<int64_t>(i));
      size *= static_cast<double>(type.dims[i]);
    }
    constexpr double kTiny = 1e-12;
    Value norm = b.op("Sqrt", {b.op("ReduceSum", {b.mul(w, w), b.ints(rest)}, {{"keepdims", 1}})});
    Value bound = b.mul(b.cast(by, dtype), b.number(std::sqrt(size), dtype));
    Value share = b.div(bound, b.op("Max", {norm, b.number(kTiny, dtype)}));
    Value factor = b.op("Max", {b.sub(b.number(1, dtype), share), b.number(0, dtype)});
    return b.mul(w, factor);
  }

  double strength_ = 0;
  std::vector<std::string> skip_;
  Component inner_;
};

}  // namespace
}  // namespace tenon::pruner

TENON_OPTIMIZER(group_lasso,
                tenon::pruner::GroupLasso,
                "pruner.group_lasso",
                "another optimizer's step, and channels pulled to zero as a whole",
                R"({"required": ["optimizer"], "properties": {
    "optimizer": {"type": "component", "role": "tenon.optimizer/1", "description": "what makes the step before it"},
    "strength": {"type": "number", "minimum": 0, "default": 0.001, "description": "how strongly; times the learning rate"},
    "skip": {"type": ["array", "string"], "items": {"type": "string"}, "description": "parameters to leave alone: patterns of names, with * and ?"}}})")
