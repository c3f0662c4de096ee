// SPDX-License-Identifier: Apache-2.0
#include "watch.hpp"

#include <nlohmann/json.hpp>

#include "tenon/sdk/listing.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon::quantizer {
namespace {

constexpr std::string_view kPrefix = "quantizer.observer.";

std::string_view family_of(std::string_view id) {
  size_t dot = id.rfind('.');
  return dot == std::string_view::npos ? id : id.substr(0, dot);
}

Status merge(const Component& into, const Component& from) {
  StringSink saved;
  TN_CHECK(Status(from.table<tn_observer>()->save(from.self(), saved.get())));
  tn_bytes bytes{saved.text.data(), saved.text.size()};
  return Status(into.table<tn_observer>()->merge(into.self(), bytes));
}

// one(i) for each of n, on all threads; the first failure in order.
template <class One>
Status for_each(tn_ctx* ctx, size_t n, One&& one) {
  std::vector<Status> failures(n);
  parallel_for(ctx, n, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      failures[i] = Status(guard([&]() -> Status { return one(i); }));
  });
  for (Status& failure : failures)
    if (!failure.ok()) return std::move(failure);
  return {};
}

}  // namespace

Result<Watch> Watch::make(tn_ctx* ctx, const ObserverPlan& plan, size_t count) {
  nlohmann::json options{{"symmetric", plan.symmetric}, {"bits", 8}};
  if (!plan.options.empty()) options.update(nlohmann::json::parse(plan.options));
  bool is_id = plan.observer.find('.') != std::string::npos;
  std::string id = is_id ? plan.observer : cat(kPrefix, plan.observer);
  Watch out;
  for (size_t i = 0; i < count; ++i) {
    Result<Component> made = Component::create(ctx, "tenon.observer/1", id, options.dump());
    if (!made.ok()) {
      Status why = std::move(made).status();
      if (why.code() != TN_NOT_FOUND) return std::move(why).in("option observer");
      return std::move(why).in(cat("option observer: expected one of ",
                                   listed_names(ctx, "tenon.observer/1", kPrefix), ", got '",
                                   plan.observer, "'"));
    }
    out.observers_.push_back(std::move(*made));
  }
  return Result<Watch>(std::move(out));
}

bool Watch::can_take(const Watch& other) const {
  if (observers_.empty() || other.observers_.empty()) return false;
  if (family_of(id()) != family_of(other.id())) return false;
  return merge(observers_[0], other.observers_[0]).ok();
}

Status Watch::take(tn_ctx* ctx, const Watch& other) {
  return for_each(ctx, observers_.size(),
                  [&](size_t i) { return merge(observers_[i], other.observers_[i]); });
}

Result<std::vector<tn_range>> Watch::ranges(tn_ctx* ctx, const std::vector<Value>& values) const {
  std::vector<tn_range> out(observers_.size());
  TN_CHECK(for_each(ctx, observers_.size(), [&](size_t i) {
    Status asked(observers_[i].table<tn_observer>()->range(observers_[i].self(), &out[i]));
    return std::move(asked).in(cat("calibration: value ", values[i].name()));
  }));
  return Result<std::vector<tn_range>>(std::move(out));
}

}  // namespace tenon::quantizer
