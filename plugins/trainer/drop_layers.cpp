// SPDX-License-Identifier: Apache-2.0
// "trainer.drop_layers": progressive layer dropping (Zhang & He 2020, arXiv 2010.13369, section 4),
// on a model as it trains, before the loss. Layer i of L becomes an If: with probability
//
//   p_i = 1 - i/L (1 - keep)        it runs, and x + (layer(x) - x) / p_i goes on,
//
// else x does, and neither the layer nor its gradient is computed. The mean over draws is layer(x),
// so the model as a whole is what inference runs. The authors' code counts from 0 (rule
// "reference": the first layer always runs), and divides by the probability of the next layer (rule
// "deepspeed", biased by up to 8 % of the last layer at keep 0.5).
#include <nlohmann/json.hpp>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/role/pass.hpp"
#include "tenon/sdk/setting.hpp"

#include "layer_regions.hpp"

namespace tenon::trainer {
namespace {

constexpr std::string_view kKeep = "layer_keep";    // as schedules name it
constexpr std::string_view kCount = "layers/step";  // how many draws there were
constexpr uint64_t kSalt = 0x6c61796572735f5fu;     // Dropout draws by the seed itself

// The branches' graphs and what they read of the outer graph.
struct Branches {
  OwnedGraph run, skip;
  std::vector<Value> captured;
};

bool is_weight(const Type& type) {
  return is_float(type.dtype) && type.rank() > 0;
}

class DropLayers {
 public:
  static Result<DropLayers> create(tn_ctx* ctx, const Options& options) {
    return DropLayers{ctx, options.texts("layers"), options.number("keep"), options.text("rule"),
                      static_cast<uint64_t>(options.integer("seed"))};
  }

  Status run(tn_graph* raw, const Cancel&, Sink& report) {
    TN_TRY(regions, layer_regions({raw}, layers_));
    if (regions.empty())
      return invalid("option layers: expected names or scopes of layers, got none");
    nlohmann::json summary{{"layers", nlohmann::json::array()}};
    TN_TRY(edit, Edit::begin(raw));
    TN_TRY(gates, draw(edit, regions.size()));
    // Later ones first: what goes around a layer is the result of the one before it.
    for (size_t i = regions.size(); i-- > 0;) {
      TN_CHECK(replace(edit, regions[i], static_cast<int64_t>(i), gates));
      summary["layers"].insert(summary["layers"].begin(),
                               {{"name", regions[i].name}, {"nodes", regions[i].nodes.size()}});
    }
    TN_CHECK(edit.commit());
    return report.write(summary.dump());
  }

 private:
  struct Gates {
    Value runs, scale;  // bool[L]; float32[L], what the change by a layer that runs counts
  };

  // For layer i (from 0) of n: how deep it counts as, from 0 to 1.
  double depth(size_t i, size_t n) const {
    double above = static_cast<double>(i) + (rule_ == "paper" ? 1 : 0);
    return above / static_cast<double>(n);
  }

  Result<Gates> draw(EditView edit, size_t n) const {
    Builder b(edit);
    std::vector<float> depths, scaled;
    for (size_t i = 0; i < n; ++i) {
      depths.push_back(static_cast<float>(depth(i, n)));
      scaled.push_back(static_cast<float>(depth(rule_ == "deepspeed" ? i + 1 : i, n)));
    }
    auto size = static_cast<int64_t>(n);
    Value gone = b.sub(b.number(1, TN_F32), setting(b, kKeep, keep_));
    auto kept = [&](const std::vector<float>& of) {
      Value depth = b.take(edit.constant<float>(TN_F32, {size}, of));
      return b.sub(b.number(1, TN_F32), b.mul(depth, gone));
    };
    Value keep = kept(depths);
    TN_TRY(count, Slot::open(edit, std::string(kCount), Type(TN_I64, {1})));
    auto seed = static_cast<int64_t>(seed_ ^ kSalt);
    Value key = b.op("Concat", {b.ints({seed}), count.before}, {{"axis", 0}});
    Node random = b.node({.type = "Random", .inputs = {b.ints({size}), key}, .domain = "tenon"});
    TN_CHECK(b.status());
    Gates out;
    out.runs = b.op("Less", {random.output(), keep});
    out.scale = b.op("Reciprocal", {rule_ == "deepspeed" ? kept(scaled) : keep});
    Value next = b.add(count.before, b.ints({1}));
    TN_CHECK(b.status());
    TN_CHECK(count.close(edit, next));
    return out;
  }

  // The region as a graph of its own; weights enter it, so that they have gradients outside.
  Result<Branches> branches(EditView outer, const LayerRegion& region) const {
    std::vector<tn_node_id> ids;
    for (Node node : region.nodes)
      ids.push_back(node.id);
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->extract(outer.graph().raw, ids.data(), ids.size(), &raw));
    Branches out{OwnedGraph::take(raw), {}, {}};
    TN_TRY(run, Edit::begin(raw));
    size_t place = 0;  // of what goes around the layer, among the inputs
    for (Value input : run.graph().inputs())
      out.captured.push_back(outer.graph().find(input.name()));
    while (place < out.captured.size() && !(out.captured[place] == region.around))
      ++place;
    if (place == out.captured.size())
      return Status(TN_INTERNAL, cat("expected ", region.around.name(), " among its inputs"));
    Value x = run.graph().inputs()[place];
    for (Value constant : run.graph().constants()) {
      if (!is_weight(constant.type())) continue;
      out.captured.push_back(outer.graph().find(constant.name()));
      TN_TRY(input, run.input(cat("weight", out.captured.size()), constant.type()));
      TN_CHECK(run.replace(constant, input));
    }
    TN_TRY(scale, run.input("scale", Type(TN_F32, {})));
    TN_CHECK(close(run, x, scale));
    TN_CHECK(run.commit());
    TN_TRY(skip, identity(out.run.view(), place));
    out.skip = std::move(skip);
    return out;
  }

  // x + (y - x) / p as a sum of two shares: exactly y where the layer always runs.
  static Status close(const Edit& run, Value x, Value scale) {
    Builder b(run);
    Value y = run.graph().outputs()[0], share = b.cast(scale, y.dtype());
    Value rest = b.sub(b.number(1, y.dtype()), share);
    Value sum = b.add(b.mul(y, share), b.mul(x, rest));
    TN_CHECK(b.status());
    TN_CHECK(services.edit->remove_output(run.raw, 0));
    return run.output("kept", sum);
  }

  Result<OwnedGraph> identity(Graph like, size_t place) const {
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->create(ctx_, &raw));
    OwnedGraph graph = OwnedGraph::take(raw);
    TN_TRY(edit, Edit::begin(raw));
    for (Value input : like.inputs()) {
      Result<Value> made = edit.input(input.name(), input.type());
      if (!made.ok()) return std::move(made).status();
    }
    TN_TRY(same, edit.op("Identity", {edit.graph().inputs()[place]}));
    TN_CHECK(edit.output("skipped", same));
    TN_CHECK(edit.commit());
    return graph;
  }

  Status replace(EditView edit, const LayerRegion& region, int64_t i, const Gates& gates) const {
    Result<Branches> made = branches(edit, region);
    if (!made.ok()) return std::move(made).status().in(cat("layer ", region.name));
    Builder b(edit);
    TN_TRY(place, edit.constant<int64_t>(TN_I64, {}, {i}));
    std::vector<Value> inputs{b.op("Gather", {gates.runs, place})};
    inputs.insert(inputs.end(), made->captured.begin(), made->captured.end());
    inputs.push_back(b.op("Gather", {gates.scale, place}));
    Node node = b.node({.type = "If",
                        .inputs = inputs,
                        .attrs = {{"then_branch", any_graph(made->run.get())},
                                  {"else_branch", any_graph(made->skip.get())},
                                  {"captures", static_cast<int64_t>(inputs.size() - 1)}},
                        .name = cat(region.name, "/dropped"),
                        .scope = region.name});
    TN_CHECK(b.status());
    TN_CHECK(edit.replace(region.result, node.output()));
    for (size_t k = region.nodes.size(); k-- > 0;)
      TN_CHECK(edit.erase(region.nodes[k]));
    return {};
  }

 public:
  tn_ctx* ctx_;
  std::vector<std::string> layers_;
  double keep_ = 0.5;
  std::string rule_;
  uint64_t seed_ = 0;
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(drop_layers,
           tenon::trainer::DropLayers,
           "trainer.drop_layers",
           "layers that a step leaves out at random, the deeper the more often",
           R"({
  "required": ["layers"],
  "properties": {
    "layers": {"type": ["array", "string"], "items": {"type": "string"}, "description": "names or scopes of layers in order, * for one part of a name: encoder.layer.*"},
    "keep": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5, "description": "the probability that the last layer runs; layer i of L runs with 1 - i/L (1 - keep). A schedule drives it as layer_keep"},
    "rule": {"type": "string", "enum": ["paper", "reference", "deepspeed"], "default": "paper", "description": "reference: i counts from 0, as in the authors' code; deepspeed: and the scale is that of the next layer, which is biased"},
    "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "of the draws, which are a function of it and of the number of the step"}}})")
