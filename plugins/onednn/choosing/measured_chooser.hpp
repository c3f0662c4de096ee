// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures what has not been decided, within a budget of time, and keeps every decision: also that
// the ruled choice stays because nobody was clearly faster, or because the budget is spent. So the
// next compile, of this or another process, builds the same.

#include <atomic>
#include <functional>

#include "choice_store.hpp"
#include "verdict.hpp"

namespace tenon::onednn {

class MeasuredChooser : public Chooser {
 public:
  // As hold_contest. Tests have times of their own.
  using Measure = std::function<Times(Contest, int64_t budget_ns)>;

  // budget_ns: of all compiles together; 0: what has been kept counts, and nothing is measured.
  MeasuredChooser(ChoiceStore& store, int64_t budget_ns, Measure measure)
      : store_(store), is_measuring_(budget_ns > 0), left_ns_(budget_ns), measure_(measure) {}

  std::optional<Decision> kept(const std::string& key) override { return store_.find(key); }
  bool measures() override { return left_ns_ > 0 && store_.can_keep(); }
  Decision decide(Contest contest) override;
  Decision keep_ruled(const std::string& key, const std::string& ruled) override;

 private:
  ChoiceStore& store_;
  const bool is_measuring_;
  std::atomic<int64_t> left_ns_;
  Measure measure_;
};

}  // namespace tenon::onednn
