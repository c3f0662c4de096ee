// SPDX-License-Identifier: Apache-2.0
// "pruner.depth": takes whole residual blocks out, those first that change what goes around them
// least (block influence: Men et al., ShortGPT, 2024).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tenon/sdk/original.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "batch_values.hpp"
#include "likeness.hpp"
#include "report.hpp"
#include "residual_blocks.hpp"

namespace tenon::pruner {
namespace {

using nlohmann::ordered_json;

class Depth {
 public:
  static Result<Depth> create(tn_ctx* ctx, const Options& options) {
    Depth out;
    out.ctx_ = ctx;
    out.ratio_ = options.number("ratio");
    out.blocks_ = options.integer("blocks");
    out.is_random_ = options.text("importance") == "random";
    out.seed_ = static_cast<uint64_t>(options.integer("seed"));
    out.selected_ = Selected::read(options);
    out.is_dry_ = options.flag("dry_run");
    TN_TRY(data, FeedOptions::read(ctx, options));
    out.plan_.data = std::move(data);
    return out;
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    std::vector<Block> blocks = blocks_of(Graph{raw});
    TN_CHECK(selected_.check({raw}));
    std::erase_if(blocks, [&](const Block& one) { return is_left(one); });
    if (blocks.empty())
      return {TN_FAILED_PRECONDITION,
              "no block can go: expected sums of a value and of what layers make of it, that the "
              "options only and skip leave over"};
    TN_TRY(influence, score(raw, blocks, cancel));
    TN_TRY(gone, select(influence));
    Cost before = cost_of(raw);
    ordered_json report = describe(blocks, influence, gone);
    if (is_dry_) {
      TN_TRY(would, OwnedGraph::copy_of(raw));
      TN_CHECK(take_out(would.get(), blocks, gone, false));
      report["dry_run"] = true;
      report.update(report_costs(before, cost_of(would.get())));
      return sink.write(report.dump());
    }
    TN_CHECK(take_out(raw, blocks, gone, true));
    report.update(report_costs(before, cost_of(raw)));
    return sink.write(report.dump());
  }

 private:
  bool is_left(const Block& block) const {
    std::vector<Node> nodes = block.branch;
    nodes.push_back(block.join);
    return !selected_.why_left(nodes).empty();
  }

  static Status take_out(tn_graph* graph,
                         const std::vector<Block>& blocks,
                         const std::vector<bool>& gone,
                         bool remembers) {
    TN_TRY(edit, Edit::begin(graph));
    if (remembers) TN_CHECK(keep_original(edit, graph));
    // Later ones first: the value around a block may be the result of another, and what goes with
    // an outer block is gone.
    std::set<tn_node_id> erased;
    for (size_t i = blocks.size(); i-- > 0;) {
      if (!gone[i] || erased.contains(blocks[i].join.id)) continue;
      for (Node node : blocks[i].branch)
        erased.insert(node.id);
      TN_CHECK(drop(edit, blocks[i]));
    }
    return edit.commit();
  }

  Result<std::vector<double>> score(const tn_graph* graph,
                                    const std::vector<Block>& blocks,
                                    const Cancel& cancel) const {
    std::vector<double> out(blocks.size());
    if (is_random_) {
      services.random->uniform(seed_, 0, 0, out.data(), out.size());
      return out;
    }
    std::vector<Value> values;
    for (const Block& block : blocks)
      for (Value value : {block.around, block.result})
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    for (Value value : values)
      if (value.dtype() != TN_F32)
        return invalid(cat(value.name(), ": expected float32 for the influence of blocks, got ",
                           dtype_name(value.dtype())));
    TN_TRY(seen, BatchValues::activations(ctx_, graph, values, plan_));
    std::vector<int64_t> samples(blocks.size());  // of each block: windows of an image are more
    for (uint64_t b = 0; b < seen.batches(); ++b) {
      TN_CHECK(cancel.check());
      TN_CHECK(seen.load(b, cancel));
      for (size_t i = 0; i < blocks.size(); ++i) {
        const DLTensor around = seen.of(blocks[i].around)->dl();
        out[i] += changes(*seen.of(blocks[i].around), *seen.of(blocks[i].result));
        samples[i] += around.ndim > 0 ? around.shape[0] : 1;
      }
    }
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] /= static_cast<double>(std::max<int64_t>(samples[i], 1));
      if (std::isnan(out[i]))
        return invalid("the influence of a block is NaN: the model's values are");
    }
    return out;
  }

  Result<std::vector<bool>> select(const std::vector<double>& influence) const {
    auto n = static_cast<int64_t>(influence.size());
    int64_t count = blocks_ > 0 ? blocks_ : std::llround(ratio_ * static_cast<double>(n));
    if (count > n)
      return invalid(
          cat("option blocks: expected at most ", n, ", which the model has, got ", count));
    std::vector<size_t> order(influence.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return influence[a] < influence[b]; });
    std::vector<bool> out(influence.size());
    for (int64_t i = 0; i < count; ++i)
      out[order[static_cast<size_t>(i)]] = true;
    return out;
  }

  ordered_json describe(const std::vector<Block>& blocks,
                        const std::vector<double>& influence,
                        const std::vector<bool>& gone) const {
    ordered_json rows = ordered_json::array();
    for (size_t i = 0; i < blocks.size(); ++i) {
      ordered_json row{{"join", blocks[i].join.name()},
                       {"around", blocks[i].around.name()},
                       {"nodes", blocks[i].branch.size() + 1},
                       {"parameters", blocks[i].parameters},
                       {"dropped", static_cast<bool>(gone[i])}};
      if (!is_random_) row["influence"] = influence[i];
      rows.push_back(std::move(row));
    }
    ordered_json report{{"importance", is_random_ ? "random" : "influence"}};
    if (is_random_) report["seed"] = seed_;
    report["blocks"] = std::move(rows);
    return report;
  }

  tn_ctx* ctx_ = nullptr;
  double ratio_ = 0;
  int64_t blocks_ = 0;
  bool is_random_ = false, is_dry_ = false;
  uint64_t seed_ = 0;
  Selected selected_;
  BatchPlan plan_;
};

}  // namespace
}  // namespace tenon::pruner

TENON_PASS(depth,
           tenon::pruner::Depth,
           "pruner.depth",
           "takes whole residual blocks out",
           R"({
  "properties": {
    "ratio": {"needs": {"blocks": "absent"}, "type": "number", "minimum": 0, "maximum": 1, "default": 0.25,
              "description": "share of the blocks to take out, rounded to the nearest"},
    "blocks": {"type": "integer", "minimum": 0, "default": 0, "description": "number of blocks, instead of ratio, where not 0"},
    "importance": {"type": "string", "enum": ["influence", "random"], "default": "influence",
                   "description": "influence: 1 - cosine of what goes around a block and its result; random: the control"},
    "seed": {"needs": {"importance": ["random"]}, "type": "integer", "minimum": 0, "default": 0, "description": "of random"},
    "data": {"type": "component", "role": "tenon.dataset/1",
             "description": "for influence: a data set, an id or a file; no labels are needed"},
    "samples": {"needs": {"importance": ["influence"]}, "type": "integer", "minimum": 1, "default": 256, "description": "calibration samples, at most"},
    "batch": {"needs": {"importance": ["influence"]}, "type": "integer", "minimum": 1, "default": 16, "description": "batch size"},
    )" TENON_SELECTED_OPTIONS("blocks to take out, by their nodes") R"(,
    "dry_run": {"type": "boolean", "default": false, "description": "only report what would go and what it would save"}}})")
