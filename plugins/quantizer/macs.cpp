// SPDX-License-Identifier: Apache-2.0
// "quantizer.macs": what share of a model's multiply-adds has all operands in 8 bits or fewer, by
// the operators' rows. The model stays as it is: {"macs", "int8_macs", "share", "float": [{"node",
// "op", "macs", "of_activations", "scores"}], "uncounted": [{"node", "op"}]}. Not counted are nodes
// of bodies, and operators that work on quantized values themselves (MatMulInteger), which are
// named.
#include <algorithm>

#include "tenon/sdk/multiplied.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "assignment.hpp"
#include "padded.hpp"
#include "role.hpp"

namespace tenon::quantizer {
namespace {

// Or fewer.
bool has_8_bits(Value value) {
  const uint32_t dtype = value.dtype();
  return dtype != TN_DTYPE_NONE && dtype != TN_BOOL && TN_DTYPE_BITS(dtype) <= 8;
}

// What moves elements hands on what it reads.
bool comes_in_8_bits(Value value) {
  while (!has_8_bits(value)) {
    Node maker = value.producer();
    if (!maker) return false;
    const Kind kind = role_of(maker).kind;
    if (kind == Kind::kDequantize) return has_8_bits(maker.input(0));
    if (kind != Kind::kSameScale) return false;
    value = maker.input(0);
  }
  return true;
}

// As it is, or stored in fewer bits.
bool is_weight(Value value) {
  Node maker = value.producer();
  const bool is_stored = maker && role_of(maker).kind == Kind::kDequantize;
  return value.is_constant() || (is_stored && maker.input(0).is_constant());
}

// Two operands in 8 bits that no QuantizeLinear or DequantizeLinear stands at.
bool is_of_quantized(Node node) {
  const Kind kind = role_of(node).kind;
  if (kind != Kind::kInteger && kind != Kind::kFloat) return false;
  const std::vector<Value> inputs = node.inputs();
  return std::ranges::count_if(inputs, [](Value v) { return v && has_8_bits(v); }) > 1;
}

class Macs {
 public:
  static Result<Macs> create(tn_ctx* ctx, const Options& options) {
    Macs out;
    out.ctx_ = ctx;
    TN_TRY(data, FeedOptions::read(ctx, options));
    out.data_ = std::move(data);
    return Result<Macs>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    TN_TRY(feed, Feed::make(ctx_, data_.data, {raw}, {.user = "counting", .usual = data_.batch}));
    TN_TRY(batch, feed.load(0));
    TN_TRY(known, sized({raw}, batch.inputs));
    nlohmann::ordered_json floats = nlohmann::ordered_json::array(), uncounted = floats;
    double all = 0, narrow = 0;
    for (Node node : known.view().nodes()) {
      const std::vector<Value> operands = multiplied(node);
      if (operands.empty() && !is_of_quantized(node)) continue;
      std::optional<double> macs;
      if (!operands.empty()) macs = multiply_adds(node);
      nlohmann::ordered_json row{{"node", node.name()}, {"op", node.type()}};
      if (!macs) {
        uncounted.push_back(std::move(row));
        continue;
      }
      const double count = macs.value_or(0);
      all += count;
      if (std::ranges::all_of(operands, comes_in_8_bits)) {
        narrow += count;
        continue;
      }
      row["macs"] = count;
      // An Attention is products once it is decomposed (fusion.expand).
      const bool is_attention = node.columns()->coupling == TN_COUPLING_ATTENTION;
      const bool is_product = role_of(node).kind == Kind::kCompute || is_attention;
      const bool of_activations = is_product && std::ranges::none_of(operands, is_weight);
      row["of_activations"] = of_activations;
      row["scores"] = of_activations && (is_attention || is_scores(node));
      floats.push_back(std::move(row));
    }
    return sink.write(nlohmann::ordered_json{
        {"macs", all},
        {"int8_macs", narrow},
        {"share", all > 0 ? narrow / all : 0},
        {"float", floats},
        {"uncounted",
         uncounted}}.dump());
  }

 private:
  tn_ctx* ctx_ = nullptr;
  FeedOptions data_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(macs,
           tenon::quantizer::Macs,
           "quantizer.macs",
           "the share of multiply-adds with all operands in 8 bits, as report",
           R"({"required": ["data"], "properties": {
    "data": {"type": "component", "role": "tenon.dataset/1", "description": "a sample of it says the sizes that the model leaves open"},
    "batch": {"type": "integer", "minimum": 1, "default": 1, "description": "batch size"}}})")
