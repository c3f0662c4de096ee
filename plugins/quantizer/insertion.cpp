// SPDX-License-Identifier: Apache-2.0
#include "insertion.hpp"

#include "tenon/sdk/layer_form.hpp"

#include "bias.hpp"
#include "blocks.hpp"
#include "graph_outputs.hpp"
#include "trained_weight.hpp"

namespace tenon::quantizer {

InsertionPlan InsertionPlan::from(const Options& options) {
  InsertionPlan out;
  out.is_signed = options.text("activations") == "s8";
  out.per_channel = options.flag("per_channel");
  out.largest = (1 << (options.integer("weight_bits", 8) - 1)) - 1;
  if (options.flag("reduce_range")) out.largest = 63;
  out.integer_bias = options.text("bias") == "int32";
  return out;
}

Result<Value> add_weight(EditView edit,
                         std::string_view stated_name,
                         const Weight& weight,
                         bool per_channel) {
  std::string name(stated_name);
  std::vector<int64_t> channels;
  if (per_channel) channels.push_back(static_cast<int64_t>(weight.scale.size()));
  TN_TRY(numbers, edit.constant<int8_t>(TN_I8, weight.shape, weight.numbers, name + "_quantized"));
  TN_TRY(scale, edit.constant<float>(TN_F32, channels, weight.scale, name + "_scale"));
  std::string back = name + "_dequantized";
  std::vector<Attr> attrs;
  if (per_channel) attrs.emplace_back("axis", weight.axis);
  std::vector<Value> inputs{numbers, scale};
  if (has_zero_points(weight.shape.size())) {
    std::vector<int8_t> zeros(weight.scale.size(), 0);
    TN_TRY(zero, edit.constant<int8_t>(TN_I8, channels, zeros, name + "_zero_point"));
    inputs.push_back(zero);
  }
  TN_TRY(dq, edit.add({.type = "DequantizeLinear",
                       .inputs = inputs,
                       .attrs = attrs,
                       .name = back,
                       .output_names = {back}}));
  return dq.output();
}

Status Insertion::run(EditView edit, const std::vector<Params>& groups) {
  // Weights first: what reads a value is looked up before its uses change.
  for (const Decision& one : assignment_.nodes()) {
    for (const Product& product : one.role.products) {
      if (!one.taken || !product.weight_of(one.node).is_constant()) continue;
      Value read = product.act_of(one.node);
      const Params* act = groups.empty() ? nullptr : &groups[assignment_.group_of(read)];
      TN_CHECK(store_weights(edit, one.node, product, act).in(one.node.name()));
    }
  }
  if (groups.empty()) return {};
  for (Value v : assignment_.values())
    TN_CHECK(store_value(edit, v, groups[assignment_.group_of(v)]).in(v.name()));
  return {};
}

// Who reads the value in 8 bits. A value that an 8-bit node makes is not kept in float as well, so
// then everybody does.
std::vector<Insertion::Use> Insertion::uses_of(Value v) const {
  bool all = assignment_.is_taken(v.producer());
  std::vector<Use> out;
  for (uint64_t i = 0; i < v.consumer_count(); ++i) {
    uint64_t input = 0;
    Node user = v.consumer(i, &input);
    if (all || assignment_.reads(user, input)) out.push_back({user, input});
  }
  return out;
}

// Numbers of one scale: those of a sample.
Result<Value> Insertion::learned_scale(EditView edit, Value v, float first) const {
  const Type type = v.type();
  double numbers = plan_.is_signed ? 127 : 255;
  for (size_t d = 1; type.ranked && d < type.rank(); ++d)
    numbers *= static_cast<double>(std::max<int64_t>(type.dims[d], 1));
  Builder b(edit);
  Value step = learned_step(b, std::string(v.name()), {first}, numbers);
  Value scale = b.op("Reshape", {step, b.ints({})});
  TN_CHECK(b.status());
  return scale;
}

Status Insertion::store_value(EditView edit, Value v, const Params& params) {
  std::vector<Use> uses = uses_of(v);
  std::string name(v.name());
  Zeros& group = params_[assignment_.group_of(v)];
  if (!group.scale) {
    TN_TRY(scale, plan_.learns_values
                      ? learned_scale(edit, v, params.scale)
                      : edit.constant<float>(TN_F32, {}, {params.scale}, name + "_scale"));
    uint32_t dtype = plan_.is_signed ? TN_I8 : TN_U8;
    std::vector<uint8_t> zero{static_cast<uint8_t>(params.zero_point)};
    TN_TRY(zero_point, edit.constant<uint8_t>(dtype, {}, zero, name + "_zero_point"));
    group = {scale, zero_point};
  }
  std::string quantized = name + "_quantized", back = name + "_dequantized";
  TN_TRY(q, edit.add({.type = "QuantizeLinear",
                      .inputs = {v, group.scale, group.zero_point},
                      .name = quantized,
                      .output_names = {quantized}}));
  TN_TRY(dq, edit.add({.type = "DequantizeLinear",
                       .inputs = {q.output(), group.scale, group.zero_point},
                       .name = back,
                       .output_names = {back}}));
  for (const Use& use : uses)
    TN_CHECK(edit.set_input(use.node, use.input, dq.output()));
  if (!assignment_.is_taken(v.producer())) return {};
  return give_out(edit, v, dq.output());
}

Status Insertion::store_weights(EditView edit,
                                Node node,
                                const Product& product,
                                const Params* act) {
  TN_TRY(stored, stored_weight(edit, node, product, act));
  TN_CHECK(edit.set_input(node, static_cast<uint64_t>(product.weight), stored.value));
  WeightNote note = stored.note;
  note.node = std::string(node.name());
  note.has_bias = static_cast<bool>(product.bias_of(node));
  if (act && plan_.integer_bias) {
    TN_TRY(done, store_bias(edit, node, product, stored.scale, act->scale));
    note.integer_bias = done;
  }
  weights_.push_back(std::move(note));
  return {};
}

Result<Insertion::Stored> Insertion::stored_weight(EditView edit,
                                                   Node node,
                                                   const Product& product,
                                                   const Params* act) {
  const std::pair key{product.weight_of(node).id, product.axis};
  auto known = by_weight_.find(key);
  if (known != by_weight_.end()) return known->second;
  TN_TRY(stored, stored_anew(edit, node, product, act));
  by_weight_[key] = stored;
  by_weight_[key].note.zeros = {};  // its zeros count once
  return stored;
}

Result<Insertion::Stored> Insertion::stored_anew(EditView edit,
                                                 Node node,
                                                 const Product& product,
                                                 const Params* act) {
  Value value = product.weight_of(node);
  Stored stored;
  TN_TRY(blocks, stored_blocks(edit, node, product, &stored.note));
  if (blocks) {
    stored.value = blocks;
    return stored;
  }
  WeightPlan plan{product.axis, plan_.per_channel, plan_.largest, {}};
  plan.clips = plan_.learned && plan_.largest < 63;  // in few bits the largest numbers say little
  if (act && plan_.integer_bias) plan.at_least = bias_bounds(node, product, act->scale);
  DLTensor tensor = value.constant().dl();
  Weight weight = quantize_weight(tensor, plan);
  stored.scale = weight.scale;
  stored.note.snr_db = weight.snr_db;
  if (!plan_.trained) {
    TN_TRY(back, add_weight(edit, value.name(), weight, plan_.per_channel));
    stored.value = back;
    return stored;
  }
  const std::string name(value.name());
  TN_TRY(numbers, with_zeros_kept(edit, value, plan.axis, plan_.zeros, &stored.note.zeros));
  TN_TRY(trained, plan_.learned ? learned_weight(edit, name, numbers, plan,
                                                 first_steps(value, plan, weight.scale))
                                : trained_weight(edit, name, numbers, plan));
  stored.value = trained;
  return stored;
}

Result<Value> Insertion::stored_blocks(EditView edit,
                                       Node node,
                                       const Product& product,
                                       WeightNote* note) {
  Value value = product.weight_of(node);
  auto form =
      layer_form(node, static_cast<uint64_t>(product.act), static_cast<uint64_t>(product.weight));
  if (plan_.block == 0 || !form || !form->is_product() || value.type().rank() != 2) return Value();
  Blocks blocks =
      quantize_blocks(value.constant().dl(), {form->weight_in, plan_.block, plan_.clips});
  note->snr_db = blocks.snr_db;
  note->in_blocks = true;
  return add_blocks(edit, value.name(), blocks);
}

}  // namespace tenon::quantizer
