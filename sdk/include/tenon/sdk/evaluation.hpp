// SPDX-License-Identifier: Apache-2.0
#pragma once
// What evaluates: batches are run, and what comes out is measured.

#include <utility>

#include "tenon/role/metric.h"

#include "tenon/sdk/feed.hpp"

namespace tenon {

// A metric while it is shown batches.
class Metric {
 public:
  Metric() = default;
  // options: a JSON object.
  static Result<Metric> create(tn_ctx* ctx, std::string_view id, std::string_view options);
  explicit operator bool() const { return static_cast<bool>(component_); }
  std::string id() const { return component_.id(); }
  // Against a reference model's outputs, else against a field of the data set.
  bool is_against_outputs() const { return against_outputs_; }
  const std::string& label() const { return label_; }  // the field

  Status update(std::span<const DLTensor> results, std::span<const DLTensor> right) const {
    auto pointers = [](std::span<const DLTensor> tensors) {
      std::vector<const DLTensor*> out;
      for (const DLTensor& one : tensors)
        out.push_back(&one);
      return out;
    };
    auto out = pointers(results), label = pointers(right);
    return Status(
        table()->update(component_.self(), out.data(), out.size(), label.data(), label.size()));
  }
  // The value, and whether a higher one is better.
  Result<std::pair<double, bool>> value() const {
    double value = 0;
    int32_t higher = 0;
    TN_CHECK(table()->value(component_.self(), &value, &higher));
    return std::pair(value, higher != 0);
  }
  nlohmann::json details() const {
    StringSink text;
    Status failed(table()->details(component_.self(), text.get()));
    nlohmann::json out = nlohmann::json::parse(text.text, nullptr, false);
    return out.is_object() ? out : nlohmann::json::object();
  }

 private:
  const tn_metric* table() const { return component_.table<tn_metric>(); }
  Component component_;
  bool against_outputs_ = false;
  std::string label_ = "label";
};

// The first n results of a run, without the samples that padding added. They live until the next.
class Results {
 public:
  Results(const Plan& plan, size_t n, uint64_t batch, uint64_t samples) : dims_(n) {
    for (size_t i = 0; i < n; ++i) {
      all_.push_back(plan[i].dl());
      DLTensor& one = all_.back();
      if (batch == samples || one.ndim == 0 || one.shape[0] != static_cast<int64_t>(batch))
        continue;
      dims_[i].assign(one.shape, one.shape + one.ndim);
      dims_[i][0] = static_cast<int64_t>(samples);
      one.shape = dims_[i].data();
    }
  }
  Results(const Results&) = delete;
  std::span<const DLTensor> all() const { return all_; }

 private:
  std::vector<DLTensor> all_;
  std::vector<std::vector<int64_t>> dims_;
};

// The same of a plan that computes with the extras too, as one with the loss inside. load(b) gives
// batch b.
template <class Load, class Each>
Status run_batches(Plan& plan, uint64_t n, const Cancel& cancel, Load&& load, Each&& each) {
  for (uint64_t b = 0; b < n; ++b) {
    TN_CHECK(cancel.check());
    Result<Feed::Batch> batch = load(b);
    if (!batch.ok()) return std::move(batch).status();
    TN_CHECK(plan.run(batch->all, cancel.raw()));
    TN_CHECK(each(*batch));
  }
  return {};
}

// ---- definitions

inline Result<Metric> Metric::create(tn_ctx* ctx, std::string_view id, std::string_view options) {
  Metric out;
  TN_TRY(made, Component::create(ctx, "tenon.metric/1", id, options));
  out.component_ = std::move(made);
  for (const nlohmann::json& one : listed_components(ctx, "tenon.metric/1")) {
    if (one.value("id", "") != id || !one["schema"].is_object()) continue;
    out.against_outputs_ = one["schema"].value("against", "labels") == "outputs";
    if (nlohmann::json::json_pointer at("/properties/label/default"); one["schema"].contains(at))
      out.label_ = one["schema"][at].get<std::string>();
  }
  nlohmann::json given = nlohmann::json::parse(options, nullptr, false);
  if (given.is_object() && given.contains("label") && given["label"].is_string())
    out.label_ = given["label"];
  return out;
}

}  // namespace tenon
