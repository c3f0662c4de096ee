// SPDX-License-Identifier: Apache-2.0
#include "measured_chooser.hpp"

#include <algorithm>
#include <utility>

#include "tenon/sdk/backend/report.hpp"

namespace tenon::onednn {

Decision MeasuredChooser::decide(Contest contest) {
  std::vector<std::string> names;
  for (const Contestant& contestant : contest.contestants)
    names.push_back(contestant.implementation);
  const std::string key = contest.key;
  const uint64_t begin = backend::now_ns();
  const Times times = measure_(std::move(contest), left_ns_);
  left_ns_ -= static_cast<int64_t>(backend::now_ns() - begin);
  const std::vector<int64_t> best = best_times(times);
  Decision decision{names[verdict(times)]};
  for (size_t i = 0; i < best.size(); ++i)
    decision.measured.push_back({names[i], best[i]});
  // What is not kept may be measured otherwise the next time.
  return store_.keep(key, decision).value_or(Decision{names[0]});
}

Decision MeasuredChooser::keep_ruled(const std::string& key, const std::string& ruled) {
  const Decision decision{ruled};
  if (!is_measuring_) return decision;
  return store_.keep(key, decision).value_or(decision);
}

}  // namespace tenon::onednn
