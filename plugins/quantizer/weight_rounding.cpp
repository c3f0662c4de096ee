// SPDX-License-Identifier: Apache-2.0
#include "weight_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "blocks.hpp"
#include "calibration.hpp"

namespace tenon::quantizer {
namespace {

bool is_quantized(uint32_t dtype) {
  return dtype == TN_I8 || dtype == TN_U8 || dtype == TN_I4 || dtype == TN_U4;
}

std::vector<float> quantized_of(const Tensor& tensor) {
  DLTensor t = tensor.dl();
  auto n = static_cast<size_t>(element_count(t));
  const uint32_t dtype = dtype_of(t);
  std::vector<float> out;
  if (TN_DTYPE_BITS(dtype) == 4) {
    std::vector<int8_t> small = unpacked(data_of<const uint8_t>(t), n, dtype == TN_I4);
    return {small.begin(), small.end()};
  }
  for (size_t i = 0; i < n; ++i)
    out.push_back(dtype == TN_I8 ? static_cast<float>(data_of<const int8_t>(t)[i])
                                 : static_cast<float>(data_of<const uint8_t>(t)[i]));
  return out;
}

// The weight of one group with its grid.
WeightGrid grid_of(const WeightForm& form,
                   Value original,
                   Node dq,
                   int64_t group,
                   const std::vector<float>& quantized) {
  WeightGrid out;
  out.rows = form.rows;
  out.columns = form.columns;
  Tensor weight = original.constant(), scale = dq.input(1).constant();
  std::vector<float> zeros;
  if (dq.input(2)) zeros = quantized_of(dq.input(2).constant());
  const auto n_scales = element_count(scale.dl());
  const bool in_blocks = scale.dl().ndim == 2 && dq.attr_int("block_size") > 0;
  out.block = in_blocks ? dq.attr_int("block_size") : form.columns;
  const int64_t blocks = (form.columns + out.block - 1) / out.block;
  for (int64_t r = 0; r < form.rows; ++r)
    for (int64_t b = 0; b < blocks; ++b) {
      int64_t at = n_scales == 1    ? 0
                   : !in_blocks     ? group * form.rows + r
                   : form.is_turned ? b * form.rows + r
                                    : r * blocks + b;
      out.scale.push_back(scale.data<float>()[at]);
      out.zero.push_back(zeros.empty() ? 0 : zeros[static_cast<size_t>(at)]);
    }
  out.weight.resize(static_cast<size_t>(form.rows * form.columns));
  for (int64_t r = 0; r < form.rows; ++r)
    for (int64_t c = 0; c < form.columns; ++c)
      out.weight[static_cast<size_t>(r * form.columns + c)] =
          weight.data<float>()[form.at(group, r, c)];
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
      out.low = -std::min(most, 127.0F), out.high = std::min(most, 127.0F);
  }
  return out;
}

Status put(EditView edit, Node dq, const std::vector<float>& quantized) {
  Value old = edit.value(dq.input(0).id);
  const uint32_t dtype = old.dtype();
  std::vector<uint8_t> bytes;
  if (TN_DTYPE_BITS(dtype) == 4) {
    bytes = packed({quantized.begin(), quantized.end()});
  } else {
    for (float q : quantized)
      bytes.push_back(static_cast<uint8_t>(static_cast<int>(q)));
  }
  TN_TRY(made, edit.constant<uint8_t>(dtype, old.type().dims, bytes, cat(dq.name(), "_rounded")));
  return edit.set_input(edit.node(dq.id), 0, made);
}

}  // namespace

Result<WeightRounding> WeightRounding::create(tn_ctx* ctx, const Options& options, Round round) {
  WeightRounding out;
  TN_CHECK(out.take(ctx, options));
  out.round_ = std::move(round);
  return Result<WeightRounding>(std::move(out));
}

Status WeightRounding::run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
  std::vector<StoredWeight> weights = find({raw});
  if (weights.empty())
    return {TN_FAILED_PRECONDITION,
            cat("nothing to round again: expected weights behind DequantizeLinear whose nodes are "
                "in option original as well",
                left_.empty() ? "" : cat("; ", left_[0].dump()))};
  TN_TRY(feed, Feed::make(ctx_, data_.data, {raw}, calibration_feed(data_)));
  std::vector<GramLayer> layers;
  for (const StoredWeight& one : weights)
    layers.push_back(one.layer);
  TN_TRY(grams, grams_of(ctx_, {raw}, layers, &feed, backends_, cancel));
  TN_TRY(edit, Edit::begin(raw));
  Progress progress(ctx_, "rounding weights", weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    TN_CHECK(cancel.check());
    TN_CHECK(round(edit, weights[i], grams[i]).in(weights[i].layer.node.name()));
    progress.update(i + 1);
  }
  TN_CHECK(edit.commit());
  return sink.write(
      nlohmann::ordered_json{{"rounded", rounded_}, {"left", left_}, {"samples", feed.samples()}}
          .dump());
}

void WeightRounding::leave(Node node, std::string_view why) {
  left_.push_back({{"node", node.name()}, {"why", why}});
}

std::vector<WeightRounding::StoredWeight> WeightRounding::find(Graph graph) {
  std::map<std::string, Node, std::less<>> by_name;
  for (Node node : original_.view().nodes())
    by_name[std::string(node.name())] = node;
  std::vector<StoredWeight> out;
  for (Node node : graph.nodes()) {
    Role role = role_of(node);
    for (const Product& product : role.products) {
      Value read = product.weight_of(node);
      Node dq = read ? read.producer() : Node{};
      if (!dq || !dq.is("DequantizeLinear") || !dq.input(0).is_constant()) continue;
      if (!is_quantized(dq.input(0).dtype()) || !dq.input(1).is_constant()) continue;
      std::string why;
      std::optional<WeightForm> form = weight_form(node, product, &why);
      auto before = by_name.find(node.name());
      Value weight = before == by_name.end() ? Value() : product.weight_of(before->second);
      if (form && (!weight || !weight.is_constant() || weight.dtype() != TN_F32 ||
                   weight.type().dims != dq.input(0).type().dims)) {
        form.reset();
        why = "the original has no float weight of its name and shape";
      }
      if (form && dq.output().consumer_count() > 1) {
        form.reset();
        why = "several nodes share its weight";
      }
      if (form) {
        out.push_back({dq, {node, product, *form}, weight});
      } else {
        leave(node, why);
      }
    }
  }
  return out;
}

Status WeightRounding::round(EditView edit, const StoredWeight& one, const Gram& gram) {
  const WeightForm& form = one.layer.form;
  Node node = one.layer.node;
  if (gram.inputs < static_cast<uint64_t>(form.columns)) {
    leave(node, cat("its inputs were ", gram.inputs, ", fewer than the ", form.columns,
                    " numbers of a sum: give more samples"));
    return {};
  }
  const bool finite =
      std::all_of(gram.sums.begin(), gram.sums.end(), [](double x) { return std::isfinite(x); });
  if (!finite) {
    leave(node, "its inputs are not finite");
    return {};
  }
  std::vector<float> quantized = quantized_of(one.dq.input(0).constant());
  double before = 0, after = 0;
  auto rows = [this](int64_t n, const std::function<void(int64_t, int64_t)>& body) {
    parallel_for(ctx_, static_cast<uint64_t>(n), 4, [&](uint64_t begin, uint64_t end) {
      body(static_cast<int64_t>(begin), static_cast<int64_t>(end));
    });
  };
  const auto square = static_cast<size_t>(form.columns * form.columns);
  for (int64_t g = 0; g < form.groups; ++g) {
    WeightGrid grid = grid_of(form, one.original, one.dq, g, quantized);
    std::span<const double> hessian(gram.sums.data() + static_cast<size_t>(g) * square, square);
    TN_TRY(better, round_(grid, hessian, rows));
    std::vector<float> plain = nearest(grid);
    double worst = output_error(grid, hessian, plain, rows);
    double error = better.empty() ? worst : output_error(grid, hessian, better, rows);
    if (better.empty() || !(error < worst)) better = plain, error = worst;
    before += worst;
    after += error;
    for (int64_t r = 0; r < form.rows; ++r)
      for (int64_t c = 0; c < form.columns; ++c)
        quantized[static_cast<size_t>(form.at(g, r, c))] =
            better[static_cast<size_t>(r * form.columns + c)];
  }
  rounded_.push_back({{"node", node.name()},
                      {"inputs", gram.inputs},
                      {"error", before > 0 ? after / before : 1}});  // of nearest rounding's
  return put(edit, one.dq, quantized);
}

}  // namespace tenon::quantizer
