// SPDX-License-Identifier: Apache-2.0
// "quantizer.correct_bias_by_norms": the shift of means that rounded weights cause, taken back
// without data (Nagel et al., ICCV 2019, section 4.2): a layer's error is what rounding changed in
// its weights times the mean of what it reads, and a BatchNormalization in front of that says the
// mean. Padding and what rounding of activations does are not seen: with data,
// `quantizer.correct_bias` sees them.
#include <map>

#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "layer_bias.hpp"
#include "normal_inputs.hpp"
#include "repair_pass.hpp"
#include "stored_weights.hpp"

namespace tenon::quantizer {
namespace {

class CorrectBiasByNorms {
 public:
  static Result<CorrectBiasByNorms> create(tn_ctx* ctx, const Options& options) {
    CorrectBiasByNorms out;
    out.ctx_ = ctx;
    TN_TRY(original, graph_option(options, "original"));
    TN_TRY(norms, graph_option(options, "norms"));
    out.original_ = std::move(original);
    out.norms_ = std::move(norms);
    return Result<CorrectBiasByNorms>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    auto leave = [this](Node node, std::string_view why) {
      left_.push_back({{"node", node.name()}, {"why", why}});
    };
    std::vector<StoredWeight> weights = stored_weights({raw}, original_.view(), leave);
    if (weights.empty())
      return {
          TN_FAILED_PRECONDITION,
          "nothing to correct: expected a model with rounded weights, whose nodes are in option "
          "original as well"};
    std::map<std::string, Node, std::less<>> by_name;
    for (Node node : original_.view().nodes())
      by_name[std::string(node.name())] = node;
    TN_TRY(edit, Edit::begin(raw));
    for (const StoredWeight& one : weights) {
      TN_CHECK(cancel.check());
      Node node = one.layer.node;
      std::string why;
      Value read = one.layer.product.act_of(by_name.at(std::string(node.name())));
      TN_TRY(shift, shift_of(one, read, &why));
      LayerBias bias = bias_of(node, role_of(node));
      if (why.empty()) why = bias.why;
      if (why.empty() && bias.numbers.type().dims[0] != static_cast<int64_t>(shift.size()))
        why = "its bias is not one for each channel";
      if (!why.empty()) {
        leave(node, why);
        continue;
      }
      TN_CHECK(shift_bias(edit, bias, &shift).in(node.name()));
      corrected_.push_back({{"node", node.name()}, {"largest", largest_of(shift)}});
    }
    TN_CHECK(edit.commit());
    return sink.write(nlohmann::ordered_json{{"corrected", corrected_}, {"left", left_}}.dump());
  }

 private:
  // (W - W rounded) times the means of what the layer reads: [groups * rows].
  Result<std::vector<double>> shift_of(const StoredWeight& one, Value read, std::string* why) {
    const WeightForm& form = one.layer.form;
    Value there = norms_.view().find(read.name());
    if (!there) {
      *why = cat("option norms has no value ", read.name());
      return std::vector<double>();
    }
    TN_TRY(means, channel_means(ctx_, there, why));
    if (why->empty()) follow_factors(original_.view(), there, &means, why);
    std::vector<double> shift;
    if (!why->empty()) return shift;
    if (!form.layer.slides && there.type().rank() > 2) {
      *why = "its sums do not go over the channels of its BatchNormalization";
      return shift;
    }
    const auto seen = static_cast<int64_t>(means.size());
    if (form.groups > seen || form.groups * form.columns % seen != 0 || seen % form.groups != 0) {
      *why = "its sums do not go over the channels of its BatchNormalization";
      return shift;
    }
    const int64_t of_group = seen / form.groups, window = form.columns / of_group;
    std::vector<float> quantized = quantized_of(one.dq.input(0).constant());
    for (int64_t g = 0; g < form.groups; ++g) {
      WeightGrid grid = grid_of(one, g, quantized);
      for (int64_t r = 0; r < form.rows; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < form.columns; ++c) {
          double q = grid.dequantized(r, c, quantized[static_cast<size_t>(form.at(g, r, c))]);
          double w = static_cast<double>(grid.weight[static_cast<size_t>(r * form.columns + c)]);
          sum += (w - q) * means[static_cast<size_t>(g * of_group + c / window)];
        }
        shift.push_back(sum);
      }
    }
    return shift;
  }

  tn_ctx* ctx_ = nullptr;
  OwnedGraph original_, norms_;
  nlohmann::ordered_json corrected_ = nlohmann::ordered_json::array(), left_ = corrected_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(correct_bias_by_norms,
           tenon::quantizer::CorrectBiasByNorms,
           "quantizer.correct_bias_by_norms",
           "biases take back what rounded weights shift, without data: by batch normalization",
           R"({"required": ["original", "norms"], "properties": {
    "original": {"type": "graph", "description": "the float model that this one was made of"},
    "norms": {"type": "graph", "description": "the same before its normalizations were folded"}}})")
