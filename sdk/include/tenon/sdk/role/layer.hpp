// SPDX-License-Identifier: Apache-2.0
#pragma once
// A layer is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Result<std::vector<Value>> build(LayerUse&) const;   // all outputs, the first one first

#include <algorithm>

#include "tenon/role/initializer.h"
#include "tenon/role/layer.h"

#include "tenon/fnv.hpp"
#include "tenon/sdk/build.hpp"
#include "tenon/sdk/component.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/sized.hpp"

namespace tenon {

struct LayerParameter {
  std::string_view name;  // "weight"; empty: that of the layer
  std::vector<int64_t> shape;
  const Component* initializer = nullptr;  // of role tenon.initializer/1
  int64_t fan_in = 1, fan_out = 1;
  bool trained = true;
};

// Where a layer is built: a Builder whose nodes have the layer's name as scope.
class LayerUse : public Builder {
 public:
  LayerUse(EditView edit, const tn_layer_use& use)
      : Builder(edit), name_(view(use.name)), scope_(name_), seed_(use.seed) {
    std::replace(scope_.begin(), scope_.end(), '.', '/');
    for (uint64_t i = 0; i < use.n_inputs; ++i)
      inputs_.push_back(edit.value(use.inputs[i]));
  }
  const std::string& name() const { return name_; }
  size_t n_inputs() const { return inputs_.size(); }
  // Falsy where it is absent.
  Value input(size_t i) const { return i < inputs_.size() ? inputs_[i] : Value{}; }
  Result<std::vector<Value>> outputs(std::vector<Value> made) {
    TN_CHECK(status());
    return made;
  }

  Node scoped(NodeSpec spec) {
    spec.scope = scope_;
    return node(spec);
  }
  Value op(std::string_view type, std::vector<Value> inputs, std::vector<Attr> attrs = {}) {
    Node made = scoped({.type = type, .inputs = std::move(inputs), .attrs = std::move(attrs)});
    return made ? made.output() : Value{};
  }

  // The constant of this name, with its first values; the graph's where it has one already.
  Value parameter(const LayerParameter& wanted) {
    Result<Value> made = shared(wanted);
    return take(made.ok() ? std::move(made)
                          : std::move(made).status().in(cat("parameter ", full_name(wanted.name))));
  }

 private:
  std::string full_name(std::string_view parameter) const {
    if (name_.empty() || parameter.empty()) return cat(name_, parameter);
    return cat(name_, ".", parameter);
  }
  Result<Value> shared(const LayerParameter& wanted) const {
    std::string name = full_name(wanted.name);
    Value known = edit().graph().find(name);
    if (known && known.is_constant() && known.type().dims == wanted.shape) return known;
    if (known) return invalid("the graph has a value of this name and of another type");
    TN_TRY(tensor, Tensor::zeros(edit().ctx(), TN_F32, wanted.shape));
    tn_initial initial{};
    initial.struct_size = sizeof initial;
    initial.name = str(name);
    initial.rank = wanted.shape.size();
    initial.shape = wanted.shape.data();
    initial.fan_in = static_cast<uint64_t>(wanted.fan_in);
    initial.fan_out = static_cast<uint64_t>(wanted.fan_out);
    initial.seed = seed_;
    initial.stream = fnv1a(name);
    const auto* table = wanted.initializer->table<tn_initializer>();
    TN_CHECK(Status(table->fill(wanted.initializer->self(), &initial, tensor.data<float>())));
    TN_TRY(made, edit().constant(tensor, name));
    if (!wanted.trained) TN_CHECK(edit().set_note(made.id, "train", any_bool(false)));
    return made;
  }
  std::string name_, scope_;
  uint64_t seed_;
  std::vector<Value> inputs_;
};

template <class T>
struct LayerRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.layer/1";
  static const tn_layer* table() {
    static const tn_layer table{sizeof table, 1, build};
    return &table;
  }
  static tn_status* build(void* self, tn_edit* raw, const tn_layer_use* sized, tn_value_id* out) {
    return guard([&]() -> Status {
      Sized<tn_layer_use> given(sized);
      LayerUse use(EditView{raw}, *given);
      TN_TRY(made, object_of<T>(self).build(use));
      if (given->n_outputs < 1 || given->n_outputs > made.size())
        return invalid(cat("outputs: expected 1 to ", made.size(), ", got ", given->n_outputs));
      for (uint64_t i = 0; i < given->n_outputs; ++i)
        out[i] = made[i].id;
      return {};
    });
  }
};

}  // namespace tenon

#define TENON_LAYER(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::LayerRole<Class>, "tenon.layer/1", id, summary, schema, 0)
