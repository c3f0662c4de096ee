// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two callbacks as one, nested for more. The loop takes it apart, so that a failure and a stop have
// the name of the part, and parts without step cost no call.

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/callback.hpp"

namespace tenon::trainer {

inline constexpr std::string_view kCallback = "tenon.callback/1";

inline tn_status* notify(const tn_callback& table,
                         void* self,
                         const tn_progress_point& at,
                         int32_t* stop) {
  return table.step ? table.step(self, &at, stop) : nullptr;
}
struct Epoch {
  std::string_view record;
  const tn_graph* model;
};
inline tn_status* notify(const tn_callback& table, void* self, const Epoch& done, int32_t* stop) {
  return table.epoch ? table.epoch(self, str(done.record), done.model, stop) : nullptr;
}

struct Both {
  Component first, second;
  static Result<Both> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(first, component_option(ctx, options, "first", kCallback));
    TN_TRY(second, component_option(ctx, options, "second", kCallback));
    return Both{std::move(first), std::move(second)};
  }
  Result<bool> step(const tn_progress_point& at) { return notify_both(at); }
  Result<bool> epoch(std::string_view record, Graph model) {
    return notify_both(Epoch{record, model.raw});
  }

 private:
  template <class What>
  Result<bool> notify_both(const What& what) {
    bool stops = false;
    for (const Component* part : {&first, &second}) {
      int32_t stop = 0;
      Status failed(notify(*part->table<tn_callback>(), part->self(), what, &stop));
      if (!failed.ok()) return std::move(failed).in(part->id());
      stops = stops || stop != 0;
    }
    return stops;
  }
};

}  // namespace tenon::trainer
