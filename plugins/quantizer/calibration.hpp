// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a float model on data and shows the values that matter to observers of anyone's making: to
// those of several makings at once, so that one pass over the data serves them all.

#include <map>
#include <string>
#include <vector>

#include "tenon/sdk/feed.hpp"
#include "tenon/sdk/padding.hpp"

#include "watch.hpp"

namespace tenon::quantizer {

struct CalibrationPlan {
  ObserverPlan observer;
  std::vector<std::string> backends;  // the first that is there; empty: the machine's
  bool refuse_not_finite = true;
  std::string mask = {};  // the input that is 0 at padding, which no observer sees
  // Ranges that are known, by the name of the value: no data is needed for these.
  std::map<std::string, tn_range, std::less<>> known = {};

  static Result<CalibrationPlan> from(const Options& options);  // `symmetric` is the pass's to say
};

// Values that are not finite are the observers' to see.
inline FeedPlan calibration_feed(const FeedOptions& data) {
  FeedPlan plan = data.plan("calibration");
  plan.warns_of_nan = false;
  return plan;
}

class Calibration {
 public:
  // plan.observer is not looked at.
  static Result<Calibration> make(tn_ctx* ctx,
                                  Graph graph,
                                  std::vector<Value> values,
                                  const std::vector<ObserverPlan>& observers,
                                  const CalibrationPlan& plan);
  // Shows all batches; may be called again, with more data.
  Status see(Feed* feed, const Cancel& cancel);
  // One per value, by one of the observers, from all that has been seen.
  Result<std::vector<tn_range>> ranges(size_t observer) const;
  std::string id_of(size_t observer) const { return seats_[observer].id; }
  const std::string& backend() const { return backend_; }

 private:
  struct Seat {  // of an observer: where what it has to know is collected
    ObserverPlan plan;
    std::string id;
    size_t watch;  // of watches_; its own where `is_own`, else one whose states it takes
    bool is_own;
  };
  Status seat(const ObserverPlan& plan);
  Status show(const Plan& results, const Feed& feed, uint64_t batch);

  tn_ctx* ctx_ = nullptr;
  std::vector<Value> values_;
  bool refuses_not_finite_ = true;
  PaddingMask mask_;
  std::vector<Seat> seats_;
  std::vector<Watch> watches_;
  Plan plan_;
  std::string backend_;
};

struct Calibrated {
  std::vector<tn_range> ranges;  // one per value
  std::string observer;          // id
  std::string backend;           // that ran the model; empty where all ranges were known
};

// By plan.observer, but for values whose ranges are known.
Result<Calibrated> calibrate(tn_ctx* ctx,
                             Graph graph,
                             const std::vector<Value>& values,
                             Feed* feed,
                             const CalibrationPlan& plan,
                             const Cancel& cancel);

}  // namespace tenon::quantizer
