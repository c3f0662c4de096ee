/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.cancel/1": poll at least every 50 ms in long loops. All functions: [any]. */
#ifndef TENON_HOST_CANCEL_H
#define TENON_HOST_CANCEL_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_cancel {
  uint32_t struct_size;
  uint32_t revision;
  int32_t(TN_CALL* requested)(const tn_cancel*); /* 1: stop with TN_CANCELLED; NULL gives 0 */
} tn_host_cancel;

#ifdef __cplusplus
}
#endif
#endif
