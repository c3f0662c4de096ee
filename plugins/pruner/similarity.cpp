// SPDX-License-Identifier: Apache-2.0
// "pruner.similarity": changes nothing; says how alike the values of a model are, by linear centred
// kernel alignment (CKA), and how much each residual block changes what goes around it.
#include <algorithm>
#include <cmath>

#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "batch_values.hpp"
#include "likeness.hpp"
#include "report.hpp"
#include "residual_blocks.hpp"

namespace tenon::pruner {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostValues = 64;

class Similarity {
 public:
  static Result<Similarity> create(tn_ctx* ctx, const Options& options) {
    Similarity out;
    out.ctx_ = ctx;
    out.selected_ = Selected::read(options);
    TN_TRY(data, FeedOptions::read(ctx, options));
    out.plan_.data = std::move(data);
    return Result<Similarity>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_CHECK(selected_.check({raw}));
    std::vector<Block> blocks = blocks_of(Graph{raw});
    std::erase_if(blocks, [&](const Block& one) { return !selected_.takes(one.join); });
    std::vector<Value> values = values_of({raw}, blocks);
    if (values.size() < 2)
      return {TN_FAILED_PRECONDITION,
              cat("expected two values of float32 and more that layers or residual blocks make and "
                  "options only and skip take, got ",
                  values.size())};
    if (values.size() > kMostValues)
      return invalid(cat("expected at most ", kMostValues, " values that are compared, got ",
                         values.size(), ": choose by the options only and skip"));
    TN_CHECK(look(raw, blocks, values, cancel));
    return sink.write(describe(blocks, values).dump());
  }

 private:
  // What blocks begin and end with; without blocks what the layers make.
  std::vector<Value> values_of(Graph graph, const std::vector<Block>& blocks) const {
    std::vector<Value> out;
    auto add = [&](Value value) {
      if (value && value.dtype() == TN_F32 && !value.is_constant() &&
          std::find(out.begin(), out.end(), value) == out.end())
        out.push_back(value);
    };
    for (const Block& block : blocks) {
      add(block.around);
      add(block.result);
    }
    for (Node node : graph.nodes()) {
      const tn_op_columns* columns = node.columns();
      if (!blocks.empty() || !columns || columns->n_products == 0 || !selected_.takes(node))
        continue;
      Value weight = node.input(static_cast<uint64_t>(columns->products[0].weight));
      if (weight && weight.is_constant()) add(node.output());
    }
    return out;
  }

  Status look(tn_graph* raw,
              const std::vector<Block>& blocks,
              const std::vector<Value>& values,
              const Cancel& cancel) {
    TN_TRY(seen, BatchValues::activations(ctx_, raw, values, plan_));
    const size_t n = values.size();
    sums_.assign(n * n, 0);
    influence_.assign(blocks.size(), 0);
    for (uint64_t b = 0; b < seen.batches(); ++b) {
      TN_CHECK(cancel.check());
      TN_CHECK(seen.load(b, cancel));
      std::vector<Gram> grams;
      for (Value value : values)
        grams.push_back(Gram::of(*seen.of(value)));
      if (b > 0 && grams[0].n < 4) break;  // the rest of the data: too few for an estimate
      for (const Gram& one : grams)
        if (one.n != grams[0].n || one.n < 4)
          return invalid(cat("option batch: expected batches of four samples and more in front of ",
                             "every value, got ", one.n));
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j)
          sums_[i * n + j] += hsic(grams[i], grams[j]);
      for (size_t i = 0; i < blocks.size(); ++i)
        if (seen.of(blocks[i].around) && seen.of(blocks[i].result))
          influence_[i] += changes(*seen.of(blocks[i].around), *seen.of(blocks[i].result));
      samples_ += static_cast<int64_t>(grams[0].n);
    }
    return {};
  }

  double cka(size_t i, size_t j) const {
    const auto n = static_cast<size_t>(std::llround(std::sqrt(static_cast<double>(sums_.size()))));
    double both = sums_[i * n + i] * sums_[j * n + j];
    return both > 0 ? sums_[std::max(i, j) * n + std::min(i, j)] / std::sqrt(both) : 0;
  }

  ordered_json describe(const std::vector<Block>& blocks, const std::vector<Value>& values) const {
    ordered_json names = ordered_json::array(), rows = ordered_json::array();
    ordered_json found = ordered_json::array();
    for (size_t i = 0; i < values.size(); ++i) {
      names.push_back(values[i].name());
      ordered_json row = ordered_json::array();
      for (size_t j = 0; j < values.size(); ++j)
        row.push_back(cka(i, j));
      rows.push_back(std::move(row));
    }
    auto place = [&](Value value) {
      return static_cast<size_t>(std::find(values.begin(), values.end(), value) - values.begin());
    };
    for (size_t i = 0; i < blocks.size(); ++i) {
      size_t around = place(blocks[i].around), result = place(blocks[i].result);
      if (around == values.size() || result == values.size()) continue;
      found.push_back({{"join", blocks[i].join.name()},
                       {"around", blocks[i].around.name()},
                       {"parameters", blocks[i].parameters},
                       {"influence", influence_[i] / static_cast<double>(samples_)},
                       {"cka", cka(around, result)}});
    }
    return {{"samples", samples_}, {"values", names}, {"cka", rows}, {"blocks", found}};
  }

  tn_ctx* ctx_ = nullptr;
  Selected selected_;
  BatchPlan plan_;
  std::vector<double> sums_, influence_;  // sums_: [values, values], the lower half
  int64_t samples_ = 0;
};

}  // namespace
}  // namespace tenon::pruner

TENON_PASS(similarity,
           tenon::pruner::Similarity,
           "pruner.similarity",
           "reports how alike values are (CKA) and what residual blocks change, changes nothing",
           R"({"required": ["data"], "properties": {
    "data": {"type": "component", "role": "tenon.dataset/1", "description": "a data set, an id or a file; no labels are needed"},
    "samples": {"type": "integer", "minimum": 4, "default": 256, "description": "samples, at most"},
    "batch": {"type": "integer", "minimum": 4, "default": 32, "description": "samples at once, which are compared with each other"},
    )" TENON_SELECTED_OPTIONS("blocks by their sum, or layers, to compare") "}}")
