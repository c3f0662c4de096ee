// SPDX-License-Identifier: Apache-2.0
// "pruner.regrow": sparse training that moves its weights (Evci et al., "Rigging the lottery", ICML
// 2020, section 3): of the weights that stay those of least size go, and as many come back where
// the loss would change fastest, at zero. Between two trainings of a model with masks.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tenon/sdk/original.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "batch_values.hpp"
#include "masks.hpp"
#include "removal.hpp"
#include "report.hpp"
#include "scoring.hpp"

namespace tenon::pruner {
namespace {

using nlohmann::ordered_json;

struct Sparse {
  Weight weight;
  Mask mask;
};

// Positions of those for which `counts`, by what they score, the highest first.
template <class Counts>
std::vector<size_t> ranked(const std::vector<double>& scores, Counts&& counts) {
  std::vector<size_t> order;
  for (size_t i = 0; i < scores.size(); ++i)
    if (counts(i)) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

class Regrow {
 public:
  static Result<Regrow> create(tn_ctx* ctx, const Options& options) {
    Regrow out;
    out.ctx_ = ctx;
    out.is_random_ = options.text("by") == "random";
    out.seed_ = static_cast<uint64_t>(options.integer("seed"));
    const int64_t step = options.integer("step"), steps = options.integer("steps");
    if (step > steps)
      return invalid(cat("option step: expected at most steps (", steps, "), got ", step));
    const double part = static_cast<double>(step) / static_cast<double>(steps);
    out.share_ = options.number("share") / 2 * (1 + std::cos(std::numbers::pi * part));
    out.selected_ = Selected::read(options);
    TN_TRY(plan, batch_plan(ctx, options));
    out.plan_ = std::move(plan);
    return Result<Regrow>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_CHECK(selected_.check({raw}));
    TN_TRY(folded, Edit::begin(raw));
    TN_CHECK(keep_original(folded, raw));
    const std::vector<NamedMask> masks = masks_of(folded.graph());
    TN_CHECK(fold_masks(folded));
    TN_CHECK(folded.commit());
    Groups groups = Groups::of(Graph{raw});
    TN_TRY(found, sparse_weights(groups, masks));
    std::vector<Sparse> all = std::move(found);
    TN_TRY(growth, growth_of(raw, all, cancel));
    ordered_json rows = ordered_json::array();
    std::vector<std::string> chosen;
    TN_TRY(edit, Edit::begin(raw));
    for (size_t i = 0; i < all.size(); ++i) {
      Value constant = edit.value(all[i].weight.value.id);
      const size_t moved = move(constant.constant(), growth[i], &all[i].mask);
      rows.push_back({{"node", all[i].weight.node.name()},
                      {"weight", constant.name()},
                      {"elements", all[i].mask.size()},
                      {"kept", std::count(all[i].mask.begin(), all[i].mask.end(), 1)},
                      {"moved", moved}});
      TN_TRY(zeroed, apply_mask(ctx_, constant.constant(), all[i].mask));
      const std::string name(constant.name());
      TN_CHECK(replace_constant(edit, constant, zeroed));
      TN_CHECK(insert_mask(edit, edit.graph().find(name), all[i].mask));
      chosen.push_back(name);
    }
    TN_CHECK(put_back_masks(edit, masks, chosen));
    TN_CHECK(edit.commit());
    return sink.write(ordered_json{{"share", share_}, {"weights", rows}}.dump());
  }

 private:
  // Those whose mask has zeros; of a model without masks those that have zeros themselves: beside
  // masks a weight that is zero by chance makes no layer sparse.
  Result<std::vector<Sparse>> sparse_weights(const Groups& groups,
                                             const std::vector<NamedMask>& masks) const {
    std::vector<Sparse> out;
    for (const Weight& weight : groups.weights()) {
      if (!selected_.why_left(weight.node).empty()) continue;
      auto named = std::find_if(masks.begin(), masks.end(), [&](const NamedMask& one) {
        return one.weight == weight.value.name();
      });
      if (!masks.empty() && named == masks.end()) continue;
      TN_TRY(zeros, mask_of_zeros(weight.value.constant()));
      Sparse one{weight, named == masks.end() ? std::move(zeros) : named->mask};
      if (std::count(one.mask.begin(), one.mask.end(), 0) > 0) out.push_back(std::move(one));
    }
    if (out.empty())
      return Status(TN_FAILED_PRECONDITION,
                    "no weight has zeros to move: prune with pruner.unstructured first");
    return Result<std::vector<Sparse>>(std::move(out));
  }

  // How fast the loss changes with each weight, those at zero among them; or random numbers.
  Result<std::vector<std::vector<double>>> growth_of(const tn_graph* graph,
                                                     const std::vector<Sparse>& all,
                                                     const Cancel& cancel) const {
    std::vector<std::vector<double>> out;
    for (size_t i = 0; is_random_ && i < all.size(); ++i) {
      std::vector<double>& draws = out.emplace_back(all[i].mask.size());
      services.random->uniform(seed_, i, 0, draws.data(), draws.size());
    }
    if (is_random_) return Result<std::vector<std::vector<double>>>(std::move(out));
    std::vector<Value> constants;
    for (const Sparse& one : all) {
      if (one.weight.value.dtype() != TN_F32)
        return invalid(cat(one.weight.value.name(), ": expected float32 for gradients, got ",
                           dtype_name(one.weight.value.dtype())));
      constants.push_back(one.weight.value);
    }
    TN_TRY(gradients, BatchValues::gradients(ctx_, graph, constants, plan_, cancel));
    TN_TRY(means, gradients.means(ctx_, constants, cancel));
    for (const Tensor& mean : means) {
      std::vector<double>& sizes = out.emplace_back();
      const float* data = mean.data<float>();
      for (int64_t at = 0; at < element_count(mean.dl()); ++at)
        sizes.push_back(std::abs(double{data[at]}));
    }
    return Result<std::vector<std::vector<double>>>(std::move(out));
  }

  // The paper lets what has just gone come back at once, with its value.
  size_t move(const Tensor& weight, const std::vector<double>& growth, Mask* mask) const {
    std::vector<double> sizes;
    with_numbers(weight.dl(), [&](const auto* numbers) {
      for (size_t i = 0; i < mask->size(); ++i)
        sizes.push_back(std::abs(static_cast<double>(numbers[i])));
    });
    std::vector<size_t> kept = ranked(sizes, [&](size_t i) { return (*mask)[i] != 0; });
    const auto moved =
        static_cast<size_t>(std::floor(share_ * static_cast<double>(kept.size()) + 1e-9));
    for (size_t i = kept.size() - moved; i < kept.size(); ++i)
      (*mask)[kept[i]] = 0;
    std::vector<size_t> grown = ranked(growth, [&](size_t i) { return (*mask)[i] == 0; });
    for (size_t i = 0; i < std::min(moved, grown.size()); ++i)
      (*mask)[grown[i]] = 1;
    return moved;
  }

  tn_ctx* ctx_ = nullptr;
  bool is_random_ = false;
  uint64_t seed_ = 0;
  double share_ = 0;  // of the weights that stay
  Selected selected_;
  BatchPlan plan_;
};

}  // namespace
}  // namespace tenon::pruner

TENON_PASS(regrow,
           tenon::pruner::Regrow,
           "pruner.regrow",
           "moves the weights of a model with masks to where the loss asks for them",
           R"({
  "properties": {
    "share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.3,
              "description": "of the weights that stay, how many move"},
    "step": {"type": "integer", "minimum": 0, "default": 0, "description": "of the way on which share falls to 0, as a cosine"},
    "steps": {"type": "integer", "minimum": 1, "default": 1, "description": "how many there are"},
    "by": {"type": "string", "enum": ["gradient", "random"], "default": "gradient",
           "description": "random: the control; no data is read"},
    "seed": {"needs": {"by": ["random"]}, "type": "integer", "minimum": 0, "default": 0, "description": "of random places"},
    )" PRUNER_LOSS_OPTIONS(R"(, "needs": {"by": ["gradient"]})") R"(,
    )" TENON_SELECTED_OPTIONS("layers whose weights move") "}}")
