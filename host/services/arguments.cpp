// SPDX-License-Identifier: Apache-2.0
#include "services/arguments.hpp"

#include <cstdlib>

namespace tenon::host {

void Arguments::any(const tn_any& any, const char* name) {
  const void* p = any.v.p;
  switch (any.tag) {
    case TN_ANY_TEXT:
    case TN_ANY_I64S:
    case TN_ANY_F64S:
      return check_text(p, any.len, name);
    case TN_ANY_TEXTS: {
      check_text(p, any.len, name);
      const auto* texts = static_cast<const tn_str*>(p);
      for (uint64_t i = 0; ok() && i < any.len; ++i)
        text(texts[i], name);
      return;
    }
    case TN_ANY_TENSOR:
      return handle(static_cast<const tn_tensor*>(p), name, false);
    case TN_ANY_GRAPH:
      return handle(static_cast<const tn_graph*>(p), name, false);
    case TN_ANY_COMPONENT:
      return handle(static_cast<const tn_component_ref*>(p), name, false);
    default:
      return;
  }
}

std::string Arguments::why() const {
  switch (fault_) {
    case Fault::kKind:
      return "expected a live object of this kind, got one of another kind, or one that has been "
             "released or has ended";
    case Fault::kSize:
      return cat("expected struct_size from 8 to ", kLargestStruct, ", a multiple of 8, got ", got_,
                 "; set it with sizeof");
    case Fault::kText:
      return cat("expected data, got NULL with the length ", got_);
    case Fault::kNoFunction:
      return "expected its function to be set, got NULL";
    case Fault::kShape:
      if (auto ndim = static_cast<int64_t>(got_); ndim < 0)
        return cat("ndim: expected at least 0, got ", ndim);
      return cat("expected ", got_, " sizes, got NULL");
    default:
      return "expected a pointer, got NULL";
  }
}

tn_status* Arguments::refused() const {
  return invalid(cat(function_, ": argument ", name_, ": ", why())).release();
}

tn_status* checked_failure(tn_status* given, uint32_t codes, const char* function) {
  Status failure(given);
  const int32_t code = failure.code();
  const bool is_stated = code > 0 && code < 32 && (codes >> code & 1u);
  if (is_stated || !std::getenv("TENON_CHECK_ERRORS")) return failure.release();
  return Status(TN_INTERNAL, cat(function, ": its header does not state that it gives code ", code),
                "host", std::move(failure))
      .release();
}

}  // namespace tenon::host
