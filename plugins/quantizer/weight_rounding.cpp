// SPDX-License-Identifier: Apache-2.0
#include "weight_rounding.hpp"

#include <algorithm>
#include <cmath>

#include "blocks.hpp"
#include "calibration.hpp"
#include "recurrent_weights.hpp"
#include "report.hpp"

namespace tenon::quantizer {
namespace {

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

// Of all quantized values those of one group, [rows, columns].
std::vector<float> group_of(const WeightForm& form, int64_t group, const std::vector<float>& all) {
  std::vector<float> out;
  for (int64_t r = 0; r < form.rows; ++r)
    for (int64_t c = 0; c < form.columns; ++c)
      out.push_back(all[static_cast<size_t>(form.at(group, r, c))]);
  return out;
}

// What rounded numbers are multiplied with where their columns have factors: those times the input.
void multiply_by_factors(const std::vector<float>& factors, std::vector<double>& hessian) {
  const size_t n = factors.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      hessian[i * n + j] *= static_cast<double>(factors[i]) * static_cast<double>(factors[j]);
}

}  // namespace

Result<WeightRounding> WeightRounding::create(tn_ctx* ctx, const Options& options, Round round) {
  WeightRounding out;
  TN_CHECK(out.take(ctx, options));
  out.round_ = std::move(round);
  out.stored_only_ = options.text("weights") == "stored";
  return Result<WeightRounding>(std::move(out));
}

Status WeightRounding::run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
  const std::vector<StoredWeight> weights = find({raw});
  if (weights.empty() && !stored_only_)
    return {TN_FAILED_PRECONDITION,
            cat("nothing to round again: expected weights behind DequantizeLinear whose nodes are "
                "in option original as well",
                first_reasons(left_, "; "))};
  TN_TRY(feed, Feed::make(ctx_, data_.data, {raw}, calibration_feed(data_)));
  std::vector<GramLayer> layers;
  for (const StoredWeight& one : weights)
    layers.push_back(one.layer);
  TN_TRY(grams, grams_of(ctx_, {raw}, layers, {&feed, backends_, mask_}, cancel));
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

std::vector<StoredWeight> WeightRounding::find(Graph graph) {
  auto left = [this](Node node, std::string_view why) { leave(node, why); };
  std::vector<StoredWeight> out = recurrent_weights(graph, original_.view(), left);
  if (!stored_only_)
    for (StoredWeight& one : stored_weights(graph, original_.view(), left))
      out.push_back(std::move(one));
  std::erase_if(out, [this](const StoredWeight& one) {
    const int64_t columns = one.layer.form.columns;
    if (columns > kMostColumns)
      leave(one.layer.node,
            cat("its sums go over ", columns, " numbers, more than ", kMostColumns));
    return columns > kMostColumns;
  });
  return out;
}

void WeightRounding::leave(Node node, std::string_view why) {
  left_.push_back({{"node", node.name()}, {"why", why}});
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
    WeightGrid grid = grid_of(one, g, quantized);
    const size_t part = gram.sums.size() > square ? static_cast<size_t>(g) : 0;
    std::vector<double> hessian(gram.sums.begin() + static_cast<int64_t>(part * square),
                                gram.sums.begin() + static_cast<int64_t>((part + 1) * square));
    multiply_by_factors(one.factors, hessian);
    TN_TRY(better, round_(grid, hessian, rows));
    std::vector<float> best = nearest(grid);
    double error = output_error(grid, hessian, best, rows);
    before += error;
    for (const std::vector<float>& other : {group_of(form, g, quantized), better}) {
      if (other.empty()) continue;
      const double its_error = output_error(grid, hessian, other, rows);
      if (its_error < error) error = its_error, best = other;
    }
    after += error;
    for (int64_t r = 0; r < form.rows; ++r)
      for (int64_t c = 0; c < form.columns; ++c)
        quantized[static_cast<size_t>(form.at(g, r, c))] =
            best[static_cast<size_t>(r * form.columns + c)];
  }
  rounded_.push_back({{"node", node.name()},
                      {"inputs", gram.inputs},
                      {"error", before > 0 ? after / before : 1}});  // of nearest rounding's
  return put(edit, one.dq, quantized);
}

}  // namespace tenon::quantizer
