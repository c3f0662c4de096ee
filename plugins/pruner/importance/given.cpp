// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.given": scores that somebody has already: from an earlier report (option
// `scores` of the pass), or computed elsewhere.
#include <nlohmann/json.hpp>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Given {
 public:
  static constexpr uint32_t kNeeds = 0;
  static Result<Given> create(tn_ctx*, const Options& options) {
    Given out;
    out.scores_ = nlohmann::json::parse(options.text("scores"), nullptr, false);
    if (!out.scores_.is_object())
      return invalid("option scores: expected an object of lists of numbers by layer");
    return out;
  }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    auto at = scores_.find(std::string(view(group.name)));
    if (at == scores_.end())
      return invalid(cat("option scores: expected scores of ", view(group.name), ", got none"));
    if (!at->is_array() || at->size() != scores.size())
      return invalid(cat("option scores: ", view(group.name), ": expected a list of ",
                         scores.size(), " numbers, got ", at->is_array() ? at->size() : 0));
    for (size_t c = 0; c < scores.size(); ++c) {
      if (!(*at)[c].is_number())
        return invalid(
            cat("option scores: ", view(group.name), ": expected numbers, got ", (*at)[c].dump()));
      scores[c] = (*at)[c].get<double>();
    }
    return {};
  }

 private:
  nlohmann::json scores_;
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(given,
                 tenon::pruner::Given,
                 "pruner.importance.given",
                 "scores from an earlier report, or from elsewhere",
                 R"({"properties": {"scores": {"type": "object", "description":
  "a list of numbers for each layer, or weight, by its name"}}, "required": ["scores"]})")
