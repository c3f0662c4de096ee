// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is notified of a run: one callback, or a "trainer.both" of several.

#include <vector>

#include "tenon/role/callback.h"

#include "tenon/sdk/component.hpp"

namespace tenon::trainer {

class Callbacks {
 public:
  static Result<Callbacks> from(tn_ctx* ctx, const Options& options, std::string_view key);
  bool want_steps() const;
  bool want_epochs() const;
  // All are notified; the id of the first that ends the run, or empty.
  Result<std::string> step(const tn_progress_point& at) const;
  Result<std::string> epoch(const std::string& record, const tn_graph* model) const;

 private:
  struct Listener {
    std::string id;
    const tn_callback* table;
    void* self;
  };
  void add(const Component& one);
  template <class What>
  Result<std::string> notify_all(const What& what) const;

  Component given_;
  std::vector<Listener> listeners_;  // parts of given_, in order
};

}  // namespace tenon::trainer
