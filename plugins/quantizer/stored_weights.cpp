// SPDX-License-Identifier: Apache-2.0
#include "stored_weights.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tenon/narrow.hpp"

namespace tenon::quantizer {
namespace {

bool is_quantized(uint32_t dtype) {
  return dtype == TN_I8 || dtype == TN_U8 || dtype == TN_I4 || dtype == TN_U4;
}

}  // namespace

std::vector<float> quantized_of(const Tensor& tensor) {
  const DLTensor t = tensor.dl();
  std::vector<float> out;
  for (int64_t i = 0, n = element_count(t); i < n; ++i)
    out.push_back(static_cast<float>(packed_integer_at(data_of<const void>(t), dtype_of(t), i)));
  return out;
}

WeightGrid grid_of(const StoredWeight& one, int64_t group, const std::vector<float>& quantized) {
  const WeightForm& form = one.layer.form;
  Node dq = one.dq;
  WeightGrid out;
  out.rows = form.rows;
  out.columns = form.columns;
  Tensor weight = one.original.constant(), scale = dq.input(1).constant();
  std::vector<float> zeros;
  if (dq.input(2)) zeros = quantized_of(dq.input(2).constant());
  const auto n_scales = element_count(scale.dl());
  const bool in_blocks = scale.dl().ndim == 2 && dq.attr_int("block_size") > 0;
  out.block = in_blocks ? dq.attr_int("block_size") : form.columns;
  const int64_t blocks = (form.columns + out.block - 1) / out.block;
  for (int64_t r = 0; r < form.rows; ++r)
    for (int64_t b = 0; b < blocks; ++b) {
      // All groups may share the scales of one: % n_scales.
      int64_t at = !in_blocks           ? (group * form.rows + r) % n_scales
                   : form.is_transposed ? b * form.rows + r
                                        : r * blocks + b;
      out.scale.push_back(scale.data<float>()[at]);
      out.zero.push_back(zeros.empty() ? 0 : zeros[static_cast<size_t>(at)]);
    }
  out.weight.resize(static_cast<size_t>(form.rows * form.columns));
  for (int64_t r = 0; r < form.rows; ++r)
    for (int64_t c = 0; c < form.columns; ++c)
      out.weight[static_cast<size_t>(r * form.columns + c)] =
          weight.data<float>()[form.at(group, r, c)] /
          (one.factors.empty() ? 1 : one.factors[static_cast<size_t>(c)]);
  // The quantized values that are there show how many of them are in use (as `weight_bits` has it).
  float most = 0;
  for (float q : quantized)
    most = std::max(most, std::abs(q));
  switch (dq.input(0).dtype()) {
    case TN_I4:
      out.low = -8, out.high = 7;
      break;
    case TN_U4:
      out.low = 0, out.high = 15;
      break;
    case TN_U8:
      out.low = 0, out.high = 255;
      break;
    default:
      out.high = std::min(most, 127.0F);
      out.low = -out.high;
      if (std::ranges::any_of(zeros, [](float zero) { return zero != 0; }))
        out.low = -128, out.high = 127;  // from one end of a range to the other
  }
  return out;
}

std::map<std::string, Node, std::less<>> nodes_by_name(Graph graph) {
  std::map<std::string, Node, std::less<>> out;
  for (Node node : graph.nodes())
    out[std::string(node.name())] = node;
  return out;
}

bool is_stored_weight(Node dq) {
  return dq && dq.is("DequantizeLinear") && dq.input(0).is_constant() &&
         is_quantized(dq.input(0).dtype()) && dq.input(1).is_constant() &&
         (!dq.input(2) || dq.input(2).is_constant());
}

bool stands_for(Value original, Node dq) {
  return original && original.is_constant() && original.dtype() == TN_F32 &&
         original.type().dims == dq.input(0).type().dims;
}

std::string_view scales_refusal(Node dq, int64_t channels, int64_t sums) {
  const Type scale = dq.input(1).type();
  if (scale.dtype != TN_F32) return "its scales are not float32";
  const int64_t axis = positive_axis(dq.attr_int("axis", 1), dq.input(0).type().rank());
  if (dq.attr_int("block_size") > 0) {
    if (axis != sums) return "its blocks do not lie along what is summed over";
  } else if (scale.elements() != 1 && axis != channels) {
    return "its scales are not those of channels";
  }
  return "";
}

std::vector<StoredWeight> stored_weights(Graph quantized,
                                         Graph original,
                                         const std::function<void(Node, std::string_view)>& left) {
  const std::map<std::string, Node, std::less<>> by_name = nodes_by_name(original);
  std::vector<StoredWeight> out;
  for (Node node : quantized.nodes()) {
    Role role = role_of(node);
    for (const Product& product : role.products) {
      Value read = product.weight_of(node);
      Node dq = read ? read.producer() : Node{};
      if (!is_stored_weight(dq)) continue;
      std::string why;
      std::optional<WeightForm> form = weight_form(node, product, &why);
      auto before = by_name.find(node.name());
      Value weight = before == by_name.end() ? Value() : product.weight_of(before->second);
      if (form && !stands_for(weight, dq)) {
        form.reset();
        why = "the original has no float weight of its name and shape";
      }
      if (form && dq.output().consumer_count() > 1) {
        form.reset();
        why = "several nodes share its weight";
      }
      if (form) {
        const int64_t sums = form->layer.is_product() ? form->layer.weight_in : -1;
        why = scales_refusal(dq, product.axis, sums);
        if (!why.empty()) form.reset();
      }
      if (form) {
        out.push_back({.dq = dq, .layer = {node, product, *form}, .original = weight});
      } else {
        left(node, why);
      }
    }
  }
  return out;
}

}  // namespace tenon::quantizer
