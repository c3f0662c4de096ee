// SPDX-License-Identifier: Apache-2.0
#pragma once
// A span of the host's trace (tenon.host.trace/1), from here to the end of the block:
//
//   Span span(ctx, "node", node.name());

#include <string_view>

#include "tenon/sdk/services.hpp"

namespace tenon {

class Span {
 public:
  // ctx NULL: none, for loops that have asked tracing() once before.
  Span(tn_ctx* ctx, std::string_view category, std::string_view name) : ctx_(ctx) {
    if (ctx_) services.trace->begin(ctx_, str(category), str(name));
  }
  ~Span() {
    if (ctx_) services.trace->end(ctx_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  tn_ctx* ctx_;
};

// ctx where a trace is recorded now, else NULL.
inline tn_ctx* tracing(tn_ctx* ctx) {
  return services.trace->enabled(ctx) ? ctx : nullptr;
}

}  // namespace tenon
