// SPDX-License-Identifier: Apache-2.0
// "layers.multi_head_attention": softmax(q k' / sqrt(d)) v in each head (Vaswani et al. 2017).
// Inputs: query [b, t, e], or query, key and value [b, s, e], and a mask that broadcasts to
// [b, heads, t, s]: true where attention may go, or floats that are added. Parameters are called
// and laid out as PyTorch's: in_proj_weight [3 e, e] (query, key, value), in_proj_bias,
// out_proj.weight. With dropout, weights of attention are zeroed at random while training, as in
// PyTorch: the operator has none, so its parts stand in the graph instead.
#include <set>

#include "layer.hpp"

namespace tenon::layers {
namespace {

class Attention {
 public:
  static Result<Attention> create(tn_ctx* ctx, const Options& options) {
    Attention made;
    made.heads_ = options.integer("heads");
    made.causal_ = options.flag("causal");
    made.dropout_ = options.number("dropout");
    made.has_bias_ = options.flag("bias");
    TN_TRY(init, Initializers::from(ctx, options));
    TN_TRY(out, initializer_option(ctx, options, "out_init"));
    made.init_ = std::move(init);
    made.out_ = std::move(out);
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(width, checked_width(use));
    Value weight =
        use.parameter({"in_proj_weight", {3 * width, width}, &init_.weight, width, 3 * width});
    Value bias = bias_of(use, "in_proj_bias", 3 * width, width);
    Value out = use.parameter({"out_proj.weight", {width, width}, &out_, width, width});
    Value out_bias = bias_of(use, "out_proj.bias", width, width);
    TN_CHECK(use.status());
    Value query = use.input(0);
    bool itself = use.n_inputs() < 3 || !use.input(1);
    std::vector<Value> parts =
        itself ? thirds(use, affine(use, query, weight, bias), 2) : crossed(use, weight, bias);
    TN_CHECK(use.status());
    if (use.input(3)) parts.push_back(use.input(3));
    Value mixed =
        use.op("Attention", parts,
               {{"q_num_heads", heads_}, {"kv_num_heads", heads_}, {"is_causal", causal_ ? 1 : 0}});
    TN_CHECK(use.status());
    Value result = affine(use, mixed, out, out_bias);
    TN_CHECK(use.status());
    if (dropout_ > 0) TN_CHECK(drop_weights(use, mixed.producer()));
    return use.outputs({result});
  }

 private:
  // Takes the operator apart, and puts a Dropout behind its Softmax.
  Status drop_weights(LayerUse& use, Node attention) const {
    std::set<tn_node_id> known;
    for (Node node : use.edit().graph().nodes())
      known.insert(node.id);
    TN_CHECK(Status(services.op->decompose(use.edit().raw, attention.id)).in("option dropout"));
    for (Node node : use.edit().graph().nodes()) {
      if (known.count(node.id) || node.type() != "Softmax") continue;
      Value weights = node.output();
      Value dropped = use.op("Dropout", {weights, use.number(dropout_, TN_F32)});
      TN_CHECK(use.status());
      TN_CHECK(use.edit().replace(weights, dropped));
      return use.edit().set_input(dropped.producer(), 0, weights);
    }
    return Status(TN_INTERNAL, "Attention decomposed into nodes without a Softmax");
  }

  Result<int64_t> checked_width(const LayerUse& use) const {
    size_t n = use.n_inputs();
    if (n != 1 && n != 3 && n != 4)
      return invalid(
          cat("inputs: expected query, or query, key, value and perhaps a mask, got ", n));
    if (n > 1 && !use.input(1) != !use.input(2))
      return invalid("inputs: expected both key and value, or neither, got one");
    int64_t width = 0;
    for (size_t i = 0; i < 3 && i < n; ++i) {
      if (i > 0 && !use.input(i)) continue;
      Type type = use.input(i) ? use.input(i).type() : Type{};
      bool fits = type.ranked && type.rank() == 3 && is_float(type.dtype) && type.dims[2] > 0;
      if (!fits || (i > 0 && type.dims[2] != width))
        return invalid(cat("input ", i, ": expected floats [batch, steps, ",
                           i ? cat(width) : std::string("width"), "], got ", type_text(type)));
      width = type.dims[2];
    }
    if (width % heads_)
      return invalid(
          cat("option heads: expected a divisor of the width ", width, ", got ", heads_));
    return width;
  }
  Value bias_of(LayerUse& use, std::string_view name, int64_t size, int64_t width) const {
    return has_bias_ ? use.parameter({name, {size}, &init_.bias, width, size}) : Value{};
  }
  static std::vector<Value> thirds(LayerUse& use, Value whole, int64_t axis) {
    Node made = use.scoped({.type = "Split",
                            .inputs = {whole},
                            .attrs = {{"axis", axis}, {"num_outputs", 3}},
                            .n_outputs = 3});
    return made ? made.outputs() : std::vector<Value>(3);
  }
  static std::vector<Value> crossed(LayerUse& use, Value weight, Value bias) {
    std::vector<Value> weights = thirds(use, weight, 0), made;
    std::vector<Value> biases = bias ? thirds(use, bias, 0) : std::vector<Value>(3);
    for (size_t i = 0; i < 3; ++i)
      made.push_back(affine(use, use.input(i), weights[i], biases[i]));
    return made;
  }

  int64_t heads_ = 1;
  bool causal_ = false, has_bias_ = true;
  double dropout_ = 0;
  Initializers init_;
  Component out_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(multi_head_attention,
            tenon::layers::Attention,
            "layers.multi_head_attention",
            "attention of some heads, of a sequence to itself or to another one",
            R"({"required": ["heads"],
  "properties": {
    "heads": {"type": "integer", "minimum": 1, "description": "number of heads: a divisor of the width"},
    "causal": {"type": "boolean", "default": false, "description": "causal mask"},
    "dropout": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0, "description": "probability that a weight of attention is zeroed while training; needs known numbers of steps"},
    "bias": {"type": "boolean", "default": true, "description": "adds biases"},)" TENON_INITS(
                "layers.xavier",
                "layers.zeros") ", " TENON_INITIALIZER_OPTION("out_init",
                                                              "layers.fan_uniform") "}}")
