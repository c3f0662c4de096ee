/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.log/1": a plugin never prints; it logs. All functions: [any]. */
#ifndef TENON_HOST_LOG_H
#define TENON_HOST_LOG_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TN_LOG_DEBUG 0u
#define TN_LOG_INFO 1u
#define TN_LOG_WARNING 2u
#define TN_LOG_ERROR 3u

typedef struct tn_host_log {
  uint32_t struct_size;
  uint32_t revision;
  int32_t(TN_CALL* enabled)(tn_ctx*, uint32_t level); /* 0 or 1: skip costly formatting */
  void(TN_CALL* write)(tn_ctx*, uint32_t level, tn_str message);
} tn_host_log;

#ifdef __cplusplus
}
#endif
#endif
