// SPDX-License-Identifier: Apache-2.0
// "trainer.drop_layers": progressive layer dropping (Zhang & He 2020, arXiv 2010.13369, section 4),
// on a model as it trains, before the loss. Layer i of L runs with probability
//
//   p_i = 1 - i/L (1 - keep)        and then x + (layer(x) - x) / p_i goes on,
//
// else x does: the mean over draws is layer(x), so the model as a whole is what inference runs.
// Layers go in sets (layer_sets.hpp), and the pass makes the graph of one of them: those that it
// leaves out are not there at all. Which set a step has is drawn by whoever runs the graphs.
// The authors' code counts from 0 (rule "reference": the first layer always runs), and divides by
// the probability of the next layer (rule "deepspeed", biased by up to 8 % of the last layer at
// keep 0.5).
#include "drop_layers.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/pass.hpp"
#include "tenon/sdk/setting.hpp"

#include "gradients.hpp"
#include "layer_regions.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

// Values that nothing but this layer reads, itself or by way of other nodes: what rounds a weight
// or makes its scale stands outside of the layer.
class OwnValues {
 public:
  OwnValues(Graph graph, const LayerRegion& region) {
    for (Node node : region.nodes)
      inside_.insert(node.id);
    known_[region.around.id] = false;  // it goes on where the layer is left out
    for (Value state : graph.list(TN_LIST_STATES, 1))
      known_[state.id] = false;
  }
  bool has(Value value) {
    if (auto at = known_.find(value.id); at != known_.end()) return at->second;
    bool is_own = value.consumer_count() > 0 && !value.is_output();
    for (uint64_t k = 0; is_own && k < value.consumer_count(); ++k)
      is_own = leads_inside(value.consumer(k));
    return known_[value.id] = is_own;
  }

 private:
  bool leads_inside(Node node) {
    if (inside_.contains(node.id)) return true;
    const tn_op* row = node.row();
    if (!row || (row->traits & TN_OP_STATEFUL)) return false;
    std::vector<Value> outputs = node.outputs();
    return std::all_of(outputs.begin(), outputs.end(), [&](Value v) { return !v || has(v); });
  }

  std::unordered_set<tn_node_id> inside_;
  std::unordered_map<tn_value_id, bool> known_;
};

class DropLayers {
 public:
  static Result<DropLayers> create(tn_ctx*, const Options& options) {
    return DropLayers{options.texts("layers"), options.number("keep"), options.text("rule"),
                      static_cast<size_t>(options.integer("sets")),
                      static_cast<size_t>(options.integer("set"))};
  }

  Status run(tn_graph* raw, const Cancel&, Sink& report) {
    TN_TRY(regions, layer_regions({raw}, layers_));
    if (regions.empty())
      return invalid("option layers: expected names or scopes of layers, got none");
    const LayerSets drawn = sets_for(regions.size());
    if (set_ >= drawn.sets().size())
      return invalid(cat("option set: expected one of ", drawn.sets().size(), " sets, got ", set_));
    const std::vector<size_t>& without = drawn.sets()[set_].without;
    TN_TRY(edit, Edit::begin(raw));
    for (const LayerRegion& region : regions)
      TN_CHECK(note_parameters(edit, region));
    // Later ones first: what goes around a layer is the result of the one before it.
    for (size_t i = regions.size(); i-- > 0;) {
      bool is_left_out = std::binary_search(without.begin(), without.end(), i);
      double share = scaled_share(drawn.shares(), i);
      TN_CHECK((is_left_out ? leave_out(edit, regions[i]) : scale(edit, regions[i], share))
                   .in(cat("layer ", regions[i].name)));
    }
    TN_CHECK(edit.commit());
    return report.write(summary(regions, drawn).dump());
  }

 private:
  // For layer i (from 0) of n: how deep it counts as, from 0 to 1.
  LayerSets sets_for(size_t n) const {
    std::vector<double> shares;
    for (size_t i = 0; i < n; ++i) {
      double above = static_cast<double>(i) + (rule_ == "paper" ? 1 : 0);
      shares.push_back(above / static_cast<double>(n) * (1 - keep_));
    }
    return {shares, most_};
  }

  double scaled_share(const std::vector<double>& shares, size_t i) const {
    if (rule_ != "deepspeed") return shares[i];
    return i + 1 < shares.size() ? shares[i + 1] : 1 - keep_;
  }

  // An update without the layer leaves its own parameters alone.
  static Status note_parameters(EditView edit, const LayerRegion& region) {
    OwnValues own(edit.graph(), region);
    for (Value value : edit.graph().constants())
      if (own.has(value)) TN_CHECK(edit.set_note(value.id, kRestsWithNote, any_text(region.name)));
    return {};
  }

  static Status leave_out(EditView edit, const LayerRegion& region) {
    TN_CHECK(edit.replace(region.result, region.around));
    for (size_t k = region.nodes.size(); k-- > 0;)
      TN_CHECK(edit.erase(region.nodes[k]));
    return {};
  }

  // x + (y - x) / p as a sum of two shares. Where a schedule moves layer_keep, each layer is left
  // out with as much of its share as 1 - layer_keep is of 1 - keep.
  Status scale(EditView edit, const LayerRegion& region, double share) const {
    if (share == 0) return {};
    Builder b(edit);
    Value x = region.around, y = region.result;
    Value gone = b.sub(b.number(1, TN_F32), setting(b, kLayerKeep, keep_));
    Value left_out = b.mul(gone, b.number(share / (1 - keep_), TN_F32));
    Value factor = b.op("Reciprocal", {b.sub(b.number(1, TN_F32), left_out)});
    Value rest = b.cast(b.sub(b.number(1, TN_F32), factor), y.dtype());
    TN_CHECK(b.status());
    // What reads y reads the sum from here on, but for the sum itself.
    Value stand_in = b.op("Identity", {x});
    TN_CHECK(b.status());
    TN_CHECK(edit.replace(y, stand_in));
    Value sum = b.add(b.mul(y, b.cast(factor, y.dtype())), b.mul(x, rest));
    TN_CHECK(b.status());
    TN_CHECK(edit.replace(stand_in, sum));
    return edit.erase(stand_in.producer());
  }

  json summary(const std::vector<LayerRegion>& regions, const LayerSets& drawn) const {
    json out{{"keep", keep_}, {"layers", json::array()}, {"sets", json::array()}};
    for (size_t i = 0; i < regions.size(); ++i)
      out["layers"].push_back({{"name", regions[i].name},
                               {"nodes", regions[i].nodes.size()},
                               {"left_out", drawn.shares()[i]}});
    for (const LayerSets::Set& set : drawn.sets())
      out["sets"].push_back({{"without", set.without}, {"chance", set.chance}});
    return out;
  }

 public:
  std::vector<std::string> layers_;
  double keep_ = 0.5;
  std::string rule_;
  size_t most_ = 12, set_ = 0;
};

}  // namespace

Result<size_t> LayerDraws::draw(uint64_t seed, uint64_t update, double keep) const {
  if (sets.empty()) return size_t{0};
  constexpr double kRounding = 1e-9;  // of a schedule that ends there by arithmetic
  if (keep < lowest_keep - kRounding || keep > 1 + kRounding)
    return invalid(cat("option schedules: layer_keep: expected ", json(lowest_keep).dump(),
                       " (keep of drop_layers, which its sets are for) to 1, got ",
                       json(keep).dump()));
  keep = std::clamp(keep, lowest_keep, 1.0);
  constexpr uint64_t kSalt = 0x6c61796572735f5fu;  // Dropout draws by the seed itself
  uint32_t bits[2];
  services.random->bits(seed ^ kSalt, update, 0, bits, 2);
  double u = static_cast<double>((uint64_t{bits[1]} << 32 | bits[0]) >> 11) * 0x1p-53;
  return LayerSets::draw(sets, u, lowest_keep < 1 ? 1 - (1 - keep) / (1 - lowest_keep) : 1);
}

std::string LayerDraws::names_in(size_t set) const {
  std::string out;
  for (size_t layer : sets[set].without)
    out += cat(out.empty() ? "" : ", ", names[layer]);
  return out;
}

Result<LayerDraws> LayerDraws::from(std::string_view report) {
  json given = json::parse(report, nullptr, false);
  LayerDraws out;
  out.lowest_keep = given.value("keep", 1.0);
  for (const json& layer : given.value("layers", json::array()))
    out.names.push_back(layer.at("name"));
  for (const json& set : given.value("sets", json::array()))
    out.sets.push_back({set.at("without"), set.at("chance")});
  return out;
}

}  // namespace tenon::trainer

TENON_PASS(drop_layers,
           tenon::trainer::DropLayers,
           "trainer.drop_layers",
           "layers that a step leaves out, the deeper the more often: the graph of one set of them",
           R"({
  "required": ["layers"],
  "properties": {
    "layers": {"type": ["array", "string"], "items": {"type": "string"}, "description": "names or scopes of layers in order, * for one part of a name: encoder.layer.*"},
    "keep": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5, "description": "the probability that the last layer runs; layer i of L runs with 1 - i/L (1 - keep). A schedule drives it as layer_keep, from 1 to no less than this"},
    "rule": {"type": "string", "enum": ["paper", "reference", "deepspeed"], "default": "paper", "description": "reference: i counts from 0, as in the authors' code; deepspeed: and the scale is that of the next layer, which is biased"},
    "sets": {"type": "integer", "minimum": 2, "default": 12, "description": "the most sets of layers that are left out together; probabilities add up to multiples of one of so many"},
    "set": {"type": "integer", "minimum": 0, "default": 0, "description": "which of them is left out here, as the report lists them; 0: none, all others run scaled"}}})")
