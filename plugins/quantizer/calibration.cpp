// SPDX-License-Identifier: Apache-2.0
#include "calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "tenon/sdk/listing.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon::quantizer {
namespace {

uint64_t count_not_finite(const DLTensor& tensor) {
  uint64_t bad = 0;
  with_numbers(tensor, [&](const auto* data) {
    using T = std::remove_cvref_t<decltype(*data)>;
    if constexpr (std::is_floating_point_v<T>) {
      constexpr int64_t kBlock = 4096;  // counted in 32 bits, so that it runs on vectors
      for (int64_t begin = 0, n = element_count(tensor); begin < n; begin += kBlock) {
        int32_t in_block = 0;
        for (int64_t i = begin, end = std::min(n, begin + kBlock); i < end; ++i)
          in_block += !(std::abs(data[i]) <= std::numeric_limits<T>::max());
        bad += static_cast<uint64_t>(in_block);
      }
    }
  });
  return bad;
}

// Of a value whose first axis is that of the samples, the one with the first number that is not
// finite; of others the batch.
std::string place_of_first(const DLTensor& tensor, const Feed& feed, uint64_t batch) {
  const uint64_t first = batch * feed.batch();
  const bool is_by_sample =
      tensor.ndim > 0 && static_cast<uint64_t>(tensor.shape[0]) == feed.batch();
  const int64_t sample =
      is_by_sample ? first_along_axis_0(tensor, [](auto x) { return !std::isfinite(x); }) : -1;
  return sample < 0 ? feed.batch_text(batch)
                    : feed.sample_text(first + static_cast<uint64_t>(sample));
}

// The smallest and the largest number of an input of floats.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  int64_t count = 0;

  void add(const DLTensor& tensor) {
    if (!is_float(dtype_of(tensor))) return;
    const int64_t n = element_count(tensor);
    count += n;
    with_numbers(tensor, [&](const auto* data) {
      for (int64_t i = 0; i < n; ++i) {
        low = std::min(low, static_cast<double>(data[i]));
        high = std::max(high, static_cast<double>(data[i]));
      }
    });
  }
  bool is_one_number() const { return count > 1 && low == high; }
};

Result<std::map<std::string, tn_range, std::less<>>> known_ranges(const Options& options) {
  std::map<std::string, tn_range, std::less<>> out;
  std::string text = options.text("ranges");
  if (text.empty()) return out;
  const nlohmann::json given = nlohmann::json::parse(text);
  for (const auto& [name, ends] : given.items()) {
    const auto is_end = [](const nlohmann::json& end) {  // of a range of float32
      return end.is_number() && std::abs(end.get<double>()) <= std::numeric_limits<float>::max();
    };
    bool is_range = ends.is_array() && ends.size() == 2 && is_end(ends[0]) && is_end(ends[1]) &&
                    ends[0].get<double>() <= ends[1].get<double>();
    if (!is_range)
      return invalid(cat("option ranges: ", name, ": expected [low, high], two finite numbers of ",
                         "float32 in order, got ", ends.dump()));
    out[name] = {ends[0], ends[1], 0, 0};
  }
  return out;
}

}  // namespace

Result<CalibrationPlan> CalibrationPlan::from(const Options& options) {
  CalibrationPlan out;
  out.observer.observer = options.text("observer");
  out.observer.options = options.text("observer_options");
  out.backends = options.texts("backend");
  out.refuse_not_finite = options.text("non_finite") == "refuse";
  out.mask = options.text("mask");
  TN_TRY(known, known_ranges(options));
  out.known = std::move(known);
  return Result<CalibrationPlan>(std::move(out));
}

Result<Calibration> Calibration::make(tn_ctx* ctx,
                                      Graph graph,
                                      std::vector<Value> values,
                                      const std::vector<ObserverPlan>& observers,
                                      const CalibrationPlan& plan) {
  Calibration out;
  out.ctx_ = ctx;
  out.values_ = std::move(values);
  out.refuses_not_finite_ = plan.refuse_not_finite;
  TN_TRY(mask, PaddingMask::find(graph, plan.mask));
  out.mask_ = std::move(mask);
  for (const ObserverPlan& one : observers)
    TN_CHECK(out.seat(one));
  Result<Plan> compiled = Plan::on_first(ctx, graph, out.values_, plan.backends);
  if (!compiled.ok()) return std::move(compiled).status().in("calibration");
  out.plan_ = std::move(*compiled);
  out.backend_ = out.plan_.backend();
  return Result<Calibration>(std::move(out));
}

// Many observers choose from the same record, as a histogram is: one of them keeps it, and the
// others are given it when they are asked.
Status Calibration::seat(const ObserverPlan& plan) {
  TN_TRY(probe, Watch::make(ctx_, plan, std::min<size_t>(values_.size(), 1)));
  Seat seat{plan, probe.id(), watches_.size(), true};
  for (const Seat& other : seats_) {
    if (!other.is_own) continue;
    TN_TRY(theirs, Watch::make(ctx_, other.plan, std::min<size_t>(values_.size(), 1)));
    if (!probe.can_take(theirs)) continue;
    seat.watch = other.watch;
    seat.is_own = false;
    break;
  }
  if (seat.is_own) {
    TN_TRY(watch, Watch::make(ctx_, plan, values_.size()));
    watches_.push_back(std::move(watch));
  }
  seats_.push_back(std::move(seat));
  return {};
}

// Shows of each value what counts to its observers, on all threads; the first failure in the
// values' order.
Status Calibration::show(const Plan& results, const Feed& feed, uint64_t batch) {
  std::vector<Status> failures(values_.size());
  for (size_t i = 0; i < values_.size(); ++i)
    mask_.covers(shape_of(results.tap(i).dl()));
  parallel_for(ctx_, values_.size(), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      failures[i] = Status(guard([&]() -> Status {
        const Counting counting(mask_, results.tap(i).dl());
        const DLTensor& tensor = counting.dl();
        uint64_t bad = refuses_not_finite_ ? count_not_finite(tensor) : 0;
        if (bad > 0)
          return invalid(cat("value ", values_[i].name(), ": ", bad, " of ", element_count(tensor),
                             " numbers are not finite in ",
                             place_of_first(results.tap(i).dl(), feed, batch),
                             " (option non_finite = \"ignore\" leaves them out)"));
        for (Watch& watch : watches_)
          TN_CHECK(watch.observe(i, tensor).in(values_[i].name()));
        return {};
      }));
    }
  });
  for (Status& failure : failures)
    if (!failure.ok()) return std::move(failure);
  return {};
}

Status Calibration::see(Feed* feed, const Cancel& cancel) {
  Progress progress(ctx_, "calibrating", feed->samples());
  std::vector<Extent> seen(feed->inputs().size());
  auto each = [&](const Feed::Batch& batch) -> Status {
    for (size_t i = 0; i < seen.size(); ++i)
      seen[i].add(batch.inputs[i]);
    TN_CHECK(mask_.read(batch.inputs));
    return show(plan_, *feed, batch.number);
  };
  TN_CHECK(run_batches(plan_, *feed, cancel, &progress, each).in("calibration"));
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i].is_one_number())
      log_line(ctx_, TN_LOG_WARNING,
               cat("input ", feed->inputs()[i].input, " is ", seen[i].low,
                   " everywhere in the calibration data: ranges made of it fit no other data"));
  return mask_.check_used();
}

Result<std::vector<tn_range>> Calibration::ranges(size_t observer) const {
  const Seat& seat = seats_[observer];
  if (seat.is_own) return watches_[seat.watch].ranges(ctx_, values_);
  TN_TRY(watch, Watch::make(ctx_, seat.plan, values_.size()));
  TN_CHECK(watch.take(ctx_, watches_[seat.watch]));
  return watch.ranges(ctx_, values_);
}

namespace {

Status check_names(Graph graph, const std::vector<Value>& values, const CalibrationPlan& plan) {
  for (const auto& [name, range] : plan.known) {
    const Value value = graph.find(name);
    if (value && !value.is_constant()) continue;
    return invalid(cat("option ranges: '", name, "': expected an activation of the model",
                       values.empty() ? "" : cat(", such as '", values[0].name(), "'"), ", got ",
                       value ? "a constant" : "no value of it"));
  }
  return {};
}

}  // namespace

Result<Calibrated> calibrate(tn_ctx* ctx,
                             Graph graph,
                             const std::vector<Value>& values,
                             Feed* feed,
                             const CalibrationPlan& plan,
                             const Cancel& cancel) {
  TN_CHECK(check_names(graph, values, plan));
  Calibrated out;
  std::vector<Value> asked;
  std::vector<size_t> places;
  out.ranges.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    auto known = plan.known.find(values[i].name());
    if (known != plan.known.end()) {
      out.ranges[i] = known->second;
    } else {
      asked.push_back(values[i]);
      places.push_back(i);
    }
  }
  out.observer = "given";
  if (asked.empty() && !values.empty()) return Result<Calibrated>(std::move(out));
  TN_TRY(calibration, Calibration::make(ctx, graph, asked, {plan.observer}, plan));
  TN_CHECK(calibration.see(feed, cancel));
  TN_TRY(found, calibration.ranges(0));
  for (size_t i = 0; i < found.size(); ++i)
    out.ranges[places[i]] = found[i];
  out.observer = calibration.id_of(0);
  out.backend = calibration.backend();
  return Result<Calibrated>(std::move(out));
}

}  // namespace tenon::quantizer
