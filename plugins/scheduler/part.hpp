// SPDX-License-Identifier: Apache-2.0
#pragma once
// A schedule that another one is made of: a component of any plugin, or a script's function.

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/schedule.hpp"

namespace tenon::scheduler {

class Part {
 public:
  static Result<Part> of(tn_ctx* ctx, const Options& options, std::string_view key) {
    TN_TRY(component, component_option(ctx, options, key, "tenon.schedule/1"));
    return Part(std::move(component));
  }
  Result<double> value(uint64_t step, uint64_t total) const {
    double out = 0;
    Status failed(component_.table<tn_schedule>()->value(component_.self(), step, total, &out));
    if (!failed.ok()) return std::move(failed).in(component_.id());
    return out;
  }

 private:
  explicit Part(Component&& component) : component_(std::move(component)) {}
  Component component_;
};

}  // namespace tenon::scheduler
