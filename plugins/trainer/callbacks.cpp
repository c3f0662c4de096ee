// SPDX-License-Identifier: Apache-2.0
#include "callbacks.hpp"

#include <algorithm>

#include "tenon/sdk/recognized.hpp"

#include "both.hpp"

namespace tenon::trainer {

Result<Callbacks> Callbacks::from(tn_ctx* ctx, const Options& options, std::string_view key) {
  Callbacks out;
  TN_TRY(given, component_option(ctx, options, key, kCallback));
  out.given_ = std::move(given);
  if (out.given_) out.add(out.given_);
  return out;
}

void Callbacks::add(const Component& one) {
  if (const Both* both = own_object<Both>(one)) {
    add(both->first);
    add(both->second);
  } else {
    listeners_.push_back({one.id(), one.table<tn_callback>(), one.self()});
  }
}

bool Callbacks::want_steps() const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [](const Listener& one) { return one.table->step; });
}
bool Callbacks::want_epochs() const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [](const Listener& one) { return one.table->epoch; });
}

template <class What>
Result<std::string> Callbacks::notify_all(const What& what) const {
  std::string stopped_by;
  for (const Listener& one : listeners_) {
    int32_t stop = 0;
    Status failed(notify(*one.table, one.self, what, &stop));
    if (!failed.ok()) return std::move(failed).in(cat("callback ", one.id));
    if (stop && stopped_by.empty()) stopped_by = one.id;
  }
  return stopped_by;
}

Result<std::string> Callbacks::step(const tn_progress_point& at) const {
  return notify_all(at);
}
Result<std::string> Callbacks::epoch(const std::string& record, const tn_graph* model) const {
  return notify_all(Epoch{record, model});
}

}  // namespace tenon::trainer
