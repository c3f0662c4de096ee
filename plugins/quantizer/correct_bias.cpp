// SPDX-License-Identifier: Apache-2.0
// "quantizer.correct_bias": rounding shifts the mean of what a layer gives; here each layer's bias
// takes the shift back, channel by channel (Nagel et al., ICCV 2019, section 4.2). Layers are
// corrected in the order of computation, each on what the corrected layers before it give: shifts
// measured for all layers at once contain those of the layers before, and their corrections add up
// to more than the fault. The 8-bit model and the float one run side by side, piece by piece, so
// all of it costs one run of each over the data.
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "calibration.hpp"
#include "calibration_options.hpp"
#include "repair_pass.hpp"
#include "role.hpp"
#include "stages.hpp"

namespace tenon::quantizer {
namespace {

// Where a layer's bias is: a constant [n], as int32 with a scale for each entry or as float32.
struct Bias {
  Node reader;  // reads it at this input
  uint64_t input = 0;
  Value numbers;         // the constant
  Value scale;           // of an int32 bias
  Value result;          // what the bias has been added to
  std::string why = {};  // when there is none that can be corrected
};

bool is_vector(Value v) {
  return v && v.is_constant() && v.type().rank() == 1;
}

// As a constant of its own, or behind a DequantizeLinear.
bool find_numbers(Value v, Bias* out) {
  if (is_vector(v) && v.dtype() == TN_F32) {
    out->numbers = v;
    return true;
  }
  Node dq = v ? v.producer() : Node{};
  if (!dq || !dq.is("DequantizeLinear") || !is_vector(dq.input(0)) || dq.input(2)) return false;
  if (dq.input(0).dtype() != TN_I32 || dq.input(1).dtype() != TN_F32) return false;
  if (!dq.input(1).is_constant()) return false;
  out->numbers = dq.input(0);
  out->scale = dq.input(1);
  return true;
}

// The bias of the layer, or what an Add that alone reads its result adds to it.
Bias bias_of(Node node, const Role& role) {
  Bias out{node, 0, {}, {}, node.output()};
  if (role.is_fused || role.products.size() != 1) {
    out.why = "it does more than a product and a bias";
    return out;
  }
  const Product& product = role.products[0];
  if (node.attr_float("beta", 1) != 1) {
    out.why = "its bias has a factor";
    return out;
  }
  out.input = static_cast<uint64_t>(std::max<int64_t>(product.bias, 0));
  if (product.bias >= 0 && find_numbers(product.bias_of(node), &out)) return out;
  Value result = node.output();
  Node add = result.consumer_count() == 1 && !result.is_output() ? result.consumer(0) : Node{};
  if (add && add.is("Add")) {
    for (uint64_t i = 0; i < 2; ++i) {
      if (!find_numbers(add.input(i), &out)) continue;
      out.reader = add;
      out.input = i;
      out.result = add.output();
      return out;
    }
  }
  out.why = "it has no constant bias";
  return out;
}

// The channels' axis of the result: behind the batch for what slides, else the last.
int64_t channel_axis(Node node, const Product& product, int64_t rank) {
  Type weight = product.weight_of(node).type();
  return weight.rank() > 2 ? 1 : rank - 1;
}

// sums[c] += what `sign` times the entries of channel c add up to; the number of entries of each.
int64_t add_means(const DLTensor& t, int64_t axis, double sign, std::vector<double>* sums) {
  int64_t channels = t.shape[axis], inner = 1;
  for (int64_t d = axis + 1; d < t.ndim; ++d)
    inner *= t.shape[d];
  int64_t outer = channels > 0 && inner > 0 ? element_count(t) / channels / inner : 0;
  const float* data = data_of<const float>(t);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < inner; ++i)
        sum += static_cast<double>(data[(o * channels + c) * inner + i]);
      (*sums)[static_cast<size_t>(c)] += sign * sum;
    }
  return outer * inner;
}

void shift_channels(const DLTensor& t, int64_t axis, const std::vector<double>& by) {
  int64_t channels = t.shape[axis], inner = 1;
  for (int64_t d = axis + 1; d < t.ndim; ++d)
    inner *= t.shape[d];
  float* data = data_of<float>(t);
  for (int64_t k = 0, n = element_count(t); k < n; ++k)
    data[k] += static_cast<float>(by[static_cast<size_t>(k / inner % channels)]);
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
    tn_graph* copy = nullptr;
    TN_CHECK(services.graph->clone(raw, &copy));
    OwnedGraph rounded = OwnedGraph::take(copy);
    TN_TRY(feed, Feed::make(ctx_, data_.data, {raw}, calibration_feed(data_)));
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
      Bias bias = bias_of(nodes[i], role);
      Value right = original_.view().find(bias.result.name());
      if (bias.why.empty() && (!right || !right.producer()))
        bias.why = "the original has no value of its result's name";
      if (!bias.why.empty()) {
        left.push_back({{"node", nodes[i].name()}, {"why", bias.why}});
        continue;
      }
      TN_CHECK(small.reach(bias.result, cancel).in(nodes[i].name()));
      TN_CHECK(whole.reach(right, cancel).in(nodes[i].name()));
      int64_t rank = small.at(bias.result, 0).dl().ndim;
      int64_t axis = channel_axis(nodes[i], role.products[0], rank);
      TN_TRY(shift, shift_of(small, bias.result, whole, right, axis, bias));
      if (shift.empty()) {
        left.push_back(
            {{"node", nodes[i].name()}, {"why", "its bias is not one for each channel"}});
        continue;
      }
      TN_CHECK(store(edit, bias, &shift).in(nodes[i].name()));
      for (uint64_t b = 0; b < small.batches(); ++b)
        shift_channels(small.at(bias.result, b).dl(), axis, shift);
      corrected.push_back({{"node", nodes[i].name()}, {"largest", largest(shift)}});
    }
    if (corrected.empty() && left.empty())
      return {TN_FAILED_PRECONDITION,
              "nothing to correct: expected a model with rounded weights, as quantizer.static "
              "writes it"};
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

  // Mean of the float result less that of the rounded one, [channels]; empty where the bias has
  // another size.
  static Result<std::vector<double>> shift_of(const Stages& small,
                                              Value ours,
                                              const Stages& whole,
                                              Value theirs,
                                              int64_t axis,
                                              const Bias& bias) {
    std::vector<double> sums;
    int64_t entries = 0;
    for (uint64_t b = 0; b < small.batches(); ++b) {
      DLTensor x = small.at(ours, b).dl(), y = whole.at(theirs, b).dl();
      if (!std::ranges::equal(shape_of(x), shape_of(y)) || dtype_of(x) != TN_F32 ||
          dtype_of(y) != TN_F32)
        return invalid(cat("option original: value ", theirs.name(),
                           ": expected the shape and type that it has in the 8-bit model"));
      if (axis < 0 || axis >= x.ndim) return std::vector<double>();
      if (x.shape[axis] != bias.numbers.type().dims[0]) return std::vector<double>();
      sums.resize(static_cast<size_t>(x.shape[axis]));
      entries += add_means(y, axis, 1, &sums);
      add_means(x, axis, -1, &sums);
    }
    for (double& sum : sums) {
      sum /= static_cast<double>(std::max<int64_t>(entries, 1));
      if (!std::isfinite(sum)) sum = 0;
    }
    return sums;
  }

  // Adds the shift to the bias; `shift` becomes what was added when the bias had been rounded.
  Status store(EditView edit, const Bias& bias, std::vector<double>* shift) {
    Value numbers = edit.value(bias.numbers.id);
    std::string name = cat(bias.reader.name(), "_corrected_bias");
    std::vector<int64_t> shape{static_cast<int64_t>(shift->size())};
    Node reader = edit.node(bias.reader.id);
    if (!bias.scale) {
      std::vector<float> all;
      const float* old = numbers.constant().data<float>();
      for (size_t c = 0; c < shift->size(); ++c) {
        all.push_back(old[c] + static_cast<float>((*shift)[c]));
        (*shift)[c] = static_cast<double>(all.back()) - static_cast<double>(old[c]);
      }
      TN_TRY(made, edit.constant<float>(TN_F32, shape, all, name));
      return edit.set_input(reader, bias.input, made);
    }
    Tensor old = numbers.constant(), scale = edit.value(bias.scale.id).constant();
    const bool is_one = element_count(scale.dl()) == 1;
    std::vector<int32_t> all;
    for (size_t c = 0; c < shift->size(); ++c) {
      double step = static_cast<double>(scale.data<float>()[is_one ? 0 : c]);
      double before = static_cast<double>(old.data<int32_t>()[c]);
      constexpr double kMost = std::numeric_limits<int32_t>::max();
      double after = std::clamp(before + std::nearbyint((*shift)[c] / step), -kMost, kMost);
      (*shift)[c] = (after - before) * step;
      all.push_back(static_cast<int32_t>(after));
    }
    TN_TRY(made, edit.constant<int32_t>(TN_I32, shape, all, name));
    Node dq = reader.input(bias.input).producer();
    std::string back = name + "_dequantized";
    TN_TRY(again, edit.add({.type = "DequantizeLinear",
                            .inputs = {made, edit.value(bias.scale.id)},
                            .attrs = {{"axis", dq.attr_int("axis", 1)}},
                            .name = back,
                            .output_names = {back}}));
    TN_CHECK(edit.set_input(reader, bias.input, again.output()));
    return dq.output().consumer_count() == 0 ? edit.erase(dq) : Status();
  }

  static double largest(const std::vector<double>& shift) {
    double most = 0;
    for (double one : shift)
      most = std::max(most, std::abs(one));
    return most;
  }
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(correct_bias,
           tenon::quantizer::CorrectBias,
           "quantizer.correct_bias",
           "biases take back what rounding shifts, layer by layer",
           R"({"required": ["data", "original"], "properties": {)" TENON_REPAIR_OPTIONS "}}")
