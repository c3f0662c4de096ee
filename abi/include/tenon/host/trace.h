/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.trace/1": what happened when, for chrome://tracing and Perfetto.
 * All functions: [any]. */
#ifndef TENON_HOST_TRACE_H
#define TENON_HOST_TRACE_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_trace {
  uint32_t struct_size;
  uint32_t revision;
  int32_t(TN_CALL* enabled)(tn_ctx*);
  /* A span on this thread; spans nest. */
  void(TN_CALL* begin)(tn_ctx*, tn_str category, tn_str name);
  void(TN_CALL* end)(tn_ctx*);
  void(TN_CALL* counter)(tn_ctx*, tn_str name, double value);
} tn_host_trace;

#ifdef __cplusplus
}
#endif
#endif
