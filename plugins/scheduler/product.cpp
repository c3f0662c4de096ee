// SPDX-License-Identifier: Apache-2.0
// "scheduler.product": two schedules multiplied, step by step.
#include "part.hpp"
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Product {
  Part first, second;
  static Result<Product> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(first, Part::of(ctx, options, "first"));
    TN_TRY(second, Part::of(ctx, options, "second"));
    return Product{std::move(first), std::move(second)};
  }
  Result<double> at(uint64_t step, uint64_t total) const {
    TN_TRY(one, first.value(step, total));
    TN_TRY(other, second.value(step, total));
    return one * other;
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(
    product,
    tenon::scheduler::Product,
    "scheduler.product",
    "two schedules multiplied",
    R"("first": {"type": "component", "role": "tenon.schedule/1", "description": "a factor"},
    "second": {"type": "component", "role": "tenon.schedule/1", "description": "a factor"})",
    R"(["first", "second"])")
