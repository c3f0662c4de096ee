// SPDX-License-Identifier: Apache-2.0
// "quantizer.correct_bias": rounding shifts the mean of what a layer gives; here each layer's bias
// takes the shift back, channel by channel (Nagel et al., ICCV 2019, section 4.2). Layers are
// corrected in the order of computation, each on what the corrected layers before it give: shifts
// measured for all layers at once contain those of the layers before, and their corrections add up
// to more than the fault. The 8-bit model and the float one run side by side, piece by piece, so
// all of it costs one run of each over the data. What stands between pieces is in files (Stages).
#include <algorithm>
#include <cmath>
#include <span>

#include <nlohmann/json.hpp>

#include "tenon/sdk/padding.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "calibration.hpp"
#include "calibration_options.hpp"
#include "channels.hpp"
#include "layer_bias.hpp"
#include "pointwise_values.hpp"
#include "repair_pass.hpp"
#include "role.hpp"
#include "stages.hpp"

namespace tenon::quantizer {
namespace {

// The channels' axis of the result: behind the batch for what slides, else the last.
int64_t channel_axis(Node node, const Product& product, int64_t rank) {
  Type weight = product.weight_of(node).type();
  return weight.rank() > 2 ? 1 : rank - 1;
}

// Whether the node keeps numbers as they are within two bounds, and gives these beyond them: Relu,
// Clip. A range in 8 bits may stand for it.
bool is_clamp(tn_ctx* ctx, Node node) {
  if (!is_pointwise_of_one(node)) return false;
  const std::vector<float> points = points_of_all_sizes();
  Result<Tensor> made = values_at(ctx, {&node, 1}, points, {std::ssize(points)});
  if (!made.ok() || dtype_of(made->dl()) != TN_F32 ||
      element_count(made->dl()) != std::ssize(points))
    return false;
  const std::span<const float> y(made->data<float>(), points.size());
  const auto [low, high] = std::ranges::minmax(y);
  return std::ranges::equal(points, y, [low = low, high = high](float x, float given) {
    return std::clamp(x, low, high) == given;
  });
}

// What the float model has in the place of a layer's result. Where a quantizer lets the range stand
// for a Relu, the layer's own result has the name of the Relu's: then it is what the Relu reads.
Value float_result(tn_ctx* ctx, Graph original, Value result) {
  Value found = original.find(result.name());
  while (found && found.producer() && !is_clamp(ctx, result.producer()) &&
         is_clamp(ctx, found.producer()))
    found = found.producer().input(0);
  return found;
}

class CorrectBias : private RepairPass {
 public:
  static Result<CorrectBias> create(tn_ctx* ctx, const Options& options) {
    CorrectBias out;
    TN_CHECK(out.take(ctx, options));
    return Result<CorrectBias>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    // The graph that runs stays as it is: what changes is written into the result at the end.
    TN_TRY(rounded, OwnedGraph::copy_of(raw));
    TN_TRY(feed, Feed::make(ctx_, data_.data, {raw}, calibration_feed(data_)));
    TN_CHECK(find_mask({raw}, &feed));
    TN_TRY(small, Stages::make(ctx_, rounded.view(), &feed, backends_));
    TN_TRY(whole, Stages::make(ctx_, original_.view(), &feed, backends_));
    TN_TRY(edit, Edit::begin(raw));
    nlohmann::ordered_json corrected = nlohmann::ordered_json::array(), left = corrected;
    std::vector<Node> nodes = rounded.view().nodes();
    Progress progress(ctx_, "correcting biases", nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      TN_CHECK(cancel.check());
      progress.update(i);
      Role role = role_of(nodes[i]);
      if (role.kind != Kind::kCompute || !is_rounded(nodes[i], role)) continue;
      LayerBias bias = bias_of(nodes[i], role);
      Value right = float_result(ctx_, original_.view(), bias.result);
      if (bias.why.empty() && (!right || !right.producer()))
        bias.why = "the original has no value of its result's name";
      if (!bias.why.empty()) {
        left.push_back({{"node", nodes[i].name()}, {"why", bias.why}});
        continue;
      }
      TN_CHECK(small.reach(bias.result, cancel).in(nodes[i].name()));
      TN_CHECK(whole.reach(right, cancel).in(nodes[i].name()));
      const int64_t axis =
          channel_axis(nodes[i], role.products[0], std::ssize(small.shape(bias.result, 0)));
      TN_TRY(shift, shift_of(small, whole, right, axis, bias));
      if (shift.empty()) {
        left.push_back(
            {{"node", nodes[i].name()}, {"why", "its bias is not one for each channel"}});
        continue;
      }
      TN_CHECK(shift_bias(edit, bias, &shift).in(nodes[i].name()));
      TN_CHECK(shift_result(small, bias.result, axis, shift));
      corrected.push_back({{"node", nodes[i].name()}, {"largest", largest_of(shift)}});
    }
    if (corrected.empty() && left.empty())
      return {TN_FAILED_PRECONDITION,
              "nothing to correct: expected a model with rounded weights, as quantizer.static "
              "writes it"};
    TN_CHECK(padding_.check_covers());
    TN_CHECK(edit.commit());
    return sink.write(nlohmann::ordered_json{
        {"corrected", corrected}, {"left", left}, {"samples", feed.samples()}}
                          .dump());
  }

 private:
  // A product whose weight is stored in fewer bits.
  static bool is_rounded(Node node, const Role& role) {
    for (const Product& product : role.products) {
      Value weight = product.weight_of(node);
      Node dq = weight ? weight.producer() : Node{};
      if (dq && dq.is("DequantizeLinear") && dq.input(0).is_constant()) return true;
    }
    return false;
  }

  // Refuses a mask that is 0 in all of the data before anything is compiled.
  Status find_mask(Graph model, Feed* feed) {
    TN_TRY(mask, PaddingMask::find(model, mask_));
    padding_ = std::move(mask);
    for (uint64_t b = 0; padding_ && b < feed->batches(); ++b) {
      TN_TRY(batch, feed->load(b));
      TN_CHECK(padding_.read(batch.inputs));
    }
    return padding_.check_counts();
  }
  Status read_mask(const Stages& from, uint64_t b) {
    if (!padding_) return {};
    TN_TRY(inputs, from.read_inputs(b));
    std::vector<DLTensor> views;
    for (const Tensor& input : inputs)
      views.push_back(input.dl());
    return padding_.read(views);
  }

  // Mean of the float result less that of the rounded one, [channels]; empty where the bias has
  // another size.
  Result<std::vector<double>> shift_of(
      const Stages& small, const Stages& whole, Value theirs, int64_t axis, const LayerBias& bias) {
    std::vector<double> sums;
    int64_t entries = 0;
    for (uint64_t b = 0; b < small.batches(); ++b) {
      TN_CHECK(read_mask(small, b));
      TN_TRY(ours, small.read(bias.result, b));
      TN_TRY(original, whole.read(theirs, b));
      DLTensor x = ours.dl(), y = original.dl();
      if (!std::ranges::equal(shape_of(x), shape_of(y)) || dtype_of(x) != TN_F32 ||
          dtype_of(y) != TN_F32)
        return invalid(cat("option original: value ", theirs.name(),
                           ": expected the shape and type that it has in the 8-bit model"));
      if (axis < 0 || axis >= x.ndim) return std::vector<double>();
      if (x.shape[axis] != bias.numbers.type().dims[0]) return std::vector<double>();
      sums.resize(static_cast<size_t>(x.shape[axis]));
      const ByChannel right = ByChannel::of(y, axis), rounded = ByChannel::of(x, axis);
      const std::vector<int64_t> counting = padding_.among(y, right.outer);
      add_channel_sums(ctx_, right, counting, 1, &sums);
      add_channel_sums(ctx_, rounded, counting, -1, &sums);
      entries += static_cast<int64_t>(counting.size()) * right.inner;
    }
    for (double& sum : sums) {
      sum /= static_cast<double>(std::max<int64_t>(entries, 1));
      if (!std::isfinite(sum)) sum = 0;
    }
    return sums;
  }

  // What follows runs on the corrected result.
  Status shift_result(Stages& small,
                      Value result,
                      int64_t axis,
                      const std::vector<double>& shift) const {
    const std::vector<float> by(shift.begin(), shift.end());
    for (uint64_t b = 0; b < small.batches(); ++b) {
      TN_TRY(numbers, small.read(result, b));
      shift_channels(ctx_, ByChannel::of(numbers.dl(), axis), by);
      TN_CHECK(small.write(result, b, numbers));
    }
    return {};
  }

  PaddingMask padding_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(correct_bias,
           tenon::quantizer::CorrectBias,
           "quantizer.correct_bias",
           "biases take back what rounding shifts, layer by layer",
           R"({"required": ["data", "original"], "properties": {)" TENON_REPAIR_OPTIONS "}}")
