// SPDX-License-Identifier: Apache-2.0
#include "rank.hpp"

#include <algorithm>
#include <cmath>

#include "algorithms/evbmf.hpp"

namespace tenon::decomposer {
namespace {

// The smallest rank whose dropped values have at most this share of the squared norm.
int64_t rank_for_share(const Vector& values, double dropped) {
  double total = values.squaredNorm(), tail = 0;
  int64_t rank = values.size();
  while (rank > 1) {
    tail += values[rank - 1] * values[rank - 1];
    if (tail > dropped * total) break;
    --rank;
  }
  return rank;
}

int64_t evbmf_rank(const RankRule& rule, const Vector& values, int64_t rows, int64_t cols) {
  int64_t rank = std::max<int64_t>(evbmf(values, rows, cols).rank, 1);
  double more = rule.weaken * static_cast<double>(values.size() - rank);
  return rank + static_cast<int64_t>(std::llround(more));
}

}  // namespace

Result<RankRule> RankRule::read(const Options& options) {
  RankRule rule;
  tn_any given = options.get("rank");
  if (given.tag == TN_ANY_I64) {
    rule.kind = RankKind::kFixed;
    rule.fixed = given.v.i;
  } else if (text_of(given) == "energy") {
    rule.kind = RankKind::kEnergy;
  } else if (text_of(given) == "error") {
    rule.kind = RankKind::kError;
  } else if (text_of(given) != "evbmf") {
    return invalid(
        cat("option rank: expected a number from 1, or one of energy, error, evbmf, got '",
            text_of(given), "'"));
  }
  rule.energy = options.number("energy", rule.energy);
  rule.error = options.number("error", rule.error);
  rule.weaken = options.number("weaken");
  rule.min_error = options.number("min_error");
  rule.multiple = options.integer("multiple", 1);
  return rule;
}

RankRule RankRule::at_energy(double share) const {
  RankRule out = *this;
  if (kind == RankKind::kFixed) return out;
  out.kind = RankKind::kEnergy;
  out.energy = share;
  return out;
}

std::string refuse_rank(std::string_view option, const RankRule& rule, int64_t most) {
  if (rule.kind != RankKind::kFixed || rule.fixed <= most) return "";
  return cat(option, ": expected at most ", most, ", got ", rule.fixed);
}

int64_t choose_rank(
    const RankRule& rule, const Vector& values, int64_t rows, int64_t cols, int64_t n_modes) {
  if (rule.kind == RankKind::kFixed) return rule.fixed;
  int64_t most = std::min(rows, cols);
  Vector kept = values.head(most);
  // Errors of the unfoldings add up at most (squared), so each may have its part.
  double part = rule.error * rule.error / static_cast<double>(n_modes);
  int64_t rank = rule.kind == RankKind::kEnergy  ? rank_for_share(kept, 1 - rule.energy)
                 : rule.kind == RankKind::kError ? rank_for_share(kept, part)
                                                 : evbmf_rank(rule, kept, rows, cols);
  double share = rule.min_error * rule.min_error / static_cast<double>(n_modes);
  rank = std::min(rank, rank_for_share(kept, share));
  rank = (rank + rule.multiple - 1) / rule.multiple * rule.multiple;
  return std::min(rank, most);
}

}  // namespace tenon::decomposer
