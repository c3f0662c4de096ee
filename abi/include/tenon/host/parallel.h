/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.parallel/1": the host's threads, so that N plugins do not start N pools.
 * All functions: [any]. */
#ifndef TENON_HOST_PARALLEL_H
#define TENON_HOST_PARALLEL_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_parallel {
  uint32_t struct_size;
  uint32_t revision;
  uint64_t(TN_CALL* width)(tn_ctx*); /* threads that run() would use */
  /* Calls body on ranges that cover 0..n, each at least grain long but the last; returns when all
   * are done. Which thread gets which range is not promised; results must not depend on it. Errors:
   * TN_INTERNAL: the body threw, which it must not. */
  tn_status*(TN_CALL* run)(tn_ctx*, uint64_t n, uint64_t grain,
                           void(TN_CALL* body)(void* arg, uint64_t begin, uint64_t end),
                           void* TN_NULLABLE arg);
} tn_host_parallel;

#ifdef __cplusplus
}
#endif
#endif
