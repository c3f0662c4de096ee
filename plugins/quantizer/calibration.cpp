// SPDX-License-Identifier: Apache-2.0
#include "calibration.hpp"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "tenon/sdk/listing.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon::quantizer {
namespace {

constexpr std::string_view kPrefix = "quantizer.observer.";

Result<std::vector<Component>> make_observers(tn_ctx* ctx,
                                              const CalibrationPlan& plan,
                                              size_t count) {
  nlohmann::json options{{"symmetric", plan.symmetric}, {"bits", 8}};
  if (!plan.observer_options.empty()) options.update(nlohmann::json::parse(plan.observer_options));
  bool is_id = plan.observer.find('.') != std::string::npos;
  std::string id = is_id ? plan.observer : cat(kPrefix, plan.observer);
  std::vector<Component> out;
  for (size_t i = 0; i < count; ++i) {
    Result<Component> made = Component::create(ctx, "tenon.observer/1", id, options.dump());
    if (!made.ok()) {
      Status why = std::move(made).status();
      if (why.code() != TN_NOT_FOUND) return std::move(why).in("option observer");
      return std::move(why).in(cat("option observer: expected one of ",
                                   listed_names(ctx, "tenon.observer/1", kPrefix), ", got '",
                                   plan.observer, "'"));
    }
    out.push_back(std::move(*made));
  }
  return out;
}

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

// Shows each value to its observer, on all threads; the first failure in the values' order.
Status show(tn_ctx* ctx,
            const std::vector<Value>& values,
            const std::vector<Component>& observers,
            const Plan& results,
            bool refuse,
            const std::string& batch) {
  std::vector<Status> failures(values.size());
  parallel_for(ctx, values.size(), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      failures[i] = Status(guard([&]() -> Status {
        DLTensor tensor = results[results.n_outputs() + i].dl();
        uint64_t bad = refuse ? count_not_finite(tensor) : 0;
        if (bad > 0)
          return invalid(cat("calibration: value ", values[i].name(), ": ", bad, " of ",
                             element_count(tensor), " numbers are not finite in ", batch,
                             " (option non_finite = \"ignore\" leaves them out)"));
        auto* table = observers[i].table<tn_observer>();
        return Status(table->observe(observers[i].self(), &tensor)).in(values[i].name());
      }));
    }
  });
  for (Status& failure : failures)
    if (!failure.ok()) return std::move(failure);
  return {};
}

}  // namespace

CalibrationPlan CalibrationPlan::from(const Options& options) {
  CalibrationPlan out;
  out.observer = options.text("observer");
  out.observer_options = options.text("observer_options");
  out.backends = options.texts("backend");
  out.refuse_not_finite = options.text("non_finite") == "refuse";
  return out;
}

Result<Calibrated> calibrate(tn_ctx* ctx,
                             Graph graph,
                             const std::vector<Value>& values,
                             Feed* feed,
                             const CalibrationPlan& plan,
                             const Cancel& cancel) {
  TN_TRY(observers, make_observers(ctx, plan, values.size()));
  Calibrated out;
  Result<Plan> compiled = Plan::on_first(ctx, graph, values, plan.backends);
  if (!compiled.ok()) return std::move(compiled).status().in("calibration");
  out.backend = compiled->backend();
  Progress progress(ctx, "calibrating", feed->samples());
  for (uint64_t b = 0; b < feed->batches(); ++b) {
    TN_CHECK(cancel.check());
    TN_TRY(batch, feed->load(b));
    Status ran = compiled->run(batch.inputs, cancel.raw());
    if (!ran.ok()) return std::move(ran).in(cat("calibration: ", feed->batch_text(b)));
    TN_CHECK(show(ctx, values, observers, *compiled, plan.refuse_not_finite, feed->batch_text(b)));
    progress.update(feed->samples() * (b + 1) / feed->batches());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    tn_range range{};
    Status asked(observers[i].table<tn_observer>()->range(observers[i].self(), &range));
    if (!asked.ok()) return std::move(asked).in(cat("calibration: value ", values[i].name()));
    out.ranges.push_back(range);
  }
  if (!observers.empty()) out.observer = observers[0].id();
  return out;
}

}  // namespace tenon::quantizer
