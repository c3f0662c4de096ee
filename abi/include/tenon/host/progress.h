/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.progress/1": long work reports how far it is. All functions: [any]. */
#ifndef TENON_HOST_PROGRESS_H
#define TENON_HOST_PROGRESS_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_progress {
  uint32_t struct_size;
  uint32_t revision;
  /* The number of a task, the caller's until end. total: in units of the caller's choice, which `done`
   * counts in as well; 0: not known. */
  uint64_t(TN_CALL* begin)(tn_ctx*, tn_str title, uint64_t total);
  void(TN_CALL* update)(tn_ctx*, uint64_t task, uint64_t done);
  void(TN_CALL* end)(tn_ctx*, uint64_t task);
} tn_host_progress;

#ifdef __cplusplus
}
#endif
#endif
