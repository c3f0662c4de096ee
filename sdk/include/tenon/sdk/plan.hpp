// SPDX-License-Identifier: Apache-2.0
#pragma once
// A graph that runs, with memory for its results that is kept from run to run.
//
//   TN_TRY(plan, Plan::compile(ctx, graph, {}, R"({"backend": "reference"})"));
//   TN_CHECK(plan.run(inputs, cancel.raw()));
//   const float* scores = plan[0].data<float>();

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/exec.h"

#include "tenon/sdk/graph.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

// Memory for results that are requested again and again: kept while type and shape stay the same.
class Buffers {
 public:
  Buffers(tn_ctx* ctx, size_t count) : ctx_(ctx), tensors_(count), is_given_(count) {}
  Buffers(const Buffers&) = delete;
  // For a run; until then no result counts as given.
  const tn_outputs* outputs() {
    is_given_.assign(tensors_.size(), false);
    return &raw_;
  }
  const Tensor& operator[](size_t i) const { return tensors_[i]; }
  bool is_given(size_t i) const { return is_given_[i]; }
  Tensor take(size_t i) { return std::exchange(tensors_[i], {}); }  // the next run makes another

 private:
  static tn_status* get(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
    return guard([&] { return static_cast<Buffers*>(self)->give(i, *proto, out); });
  }
  Status give(uint64_t i, const DLTensor& proto, DLTensor* out) {
    if (i >= tensors_.size()) return {TN_OUT_OF_RANGE, cat("result ", i, " of ", tensors_.size())};
    if (!fits(tensors_[i], proto)) {
      TN_TRY(made, Tensor::zeros(ctx_, dtype_of(proto), shape_of(proto)));
      tensors_[i] = made;
    }
    *out = tensors_[i].dl();
    is_given_[i] = true;
    return {};
  }
  static bool fits(const Tensor& tensor, const DLTensor& proto) {
    if (!tensor) return false;
    DLTensor have = tensor.dl();
    auto a = shape_of(have), b = shape_of(proto);
    return dtype_of(have) == dtype_of(proto) && std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  tn_ctx* ctx_;
  std::vector<Tensor> tensors_;
  std::vector<bool> is_given_;
  tn_outputs raw_{this, get};
};

class Plan {
 public:
  Plan() = default;
  // options: a JSON object, see tn_host_eval.compile. Results: the outputs, then the taps.
  static Result<Plan> compile(tn_ctx* ctx,
                              Graph graph,
                              std::span<const Value> taps,
                              std::string_view options) {
    std::vector<tn_value_id> ids;
    for (Value v : taps)
      ids.push_back(v.id);
    tn_plan* raw = nullptr;
    TN_CHECK(services.eval->compile(ctx, graph.raw, ids.data(), ids.size(), str(options), &raw));
    return Plan(ctx, raw, graph, taps.size());
  }
  // Another graph with the backends, the options and the states of this plan.
  Result<Plan> beside(tn_ctx* ctx, Graph graph) const {
    tn_plan* made = nullptr;
    TN_CHECK(services.eval->compile_beside(raw(), graph.raw, &made));
    return Plan(ctx, made, graph, 0);
  }
  // On the first of these backends that is there; none named: on what this machine is best with.
  static Result<Plan> on_first(tn_ctx* ctx,
                               Graph graph,
                               std::span<const Value> taps,
                               const std::vector<std::string>& backends) {
    if (backends.empty()) return compile(ctx, graph, taps, {});
    Result<Plan> made = Status(TN_NOT_FOUND, "no backend");
    for (const std::string& id : backends) {
      made = compile(ctx, graph, taps, nlohmann::json{{"backend", id}}.dump());
      if (made.ok()) break;
      const int32_t code = made.status().code();
      if (code != TN_NOT_FOUND && code != TN_UNAVAILABLE) break;
    }
    return made;
  }
  explicit operator bool() const { return raw_ != nullptr; }
  tn_plan* raw() const { return raw_.get(); }
  size_t n_outputs() const { return n_outputs_; }  // those of states stay with the plan
  // Result i of the latest run, which lives until the next one; and of these tap i.
  const Tensor& operator[](size_t i) const { return (*results_)[i]; }
  const Tensor& tap(size_t i) const { return (*this)[n_outputs_ + i]; }
  Tensor take(size_t i) { return results_->take(i); }  // the same, to be kept

  Status run(std::span<const DLTensor> inputs, const tn_cancel* cancel = nullptr) {
    inputs_.clear();
    for (const DLTensor& one : inputs)
      inputs_.push_back(&one);
    return Status(
        services.eval->run(raw(), inputs_.data(), inputs_.size(), results_->outputs(), cancel));
  }
  std::string describe() const {  // JSON, see tn_host_eval.describe
    StringSink text;
    Status described(services.eval->describe(raw(), text.get()));
    return described.ok() ? text.text : "{}";
  }
  // The id of the preferred backend.
  std::string backend() const {
    nlohmann::json described = nlohmann::json::parse(describe(), nullptr, false);
    return described.contains("backends") ? described["backends"].at(0).get<std::string>() : "";
  }

 private:
  struct Release {
    void operator()(tn_plan* plan) const { services.eval->release(plan); }
  };
  Plan(tn_ctx* ctx, tn_plan* raw, Graph graph, size_t n_taps)
      : raw_(raw),
        n_outputs_(graph.outputs().size() - graph.list(TN_LIST_STATES).size()),
        results_(std::make_unique<Buffers>(ctx, n_outputs_ + n_taps)) {}
  std::unique_ptr<tn_plan, Release> raw_;
  size_t n_outputs_ = 0;
  std::unique_ptr<Buffers> results_;
  std::vector<const DLTensor*> inputs_;
};

// The backends of Plan::on_first as an option in a component's schema. what: "runs the model".
#define TENON_BACKEND_OPTION(what)                                                                 \
  R"("backend": {"type": ["array", "string"], "items": {"type": "string"}, "description": ")" what \
  R"(: the first that is there; default: what this machine is best with"})"

}  // namespace tenon
