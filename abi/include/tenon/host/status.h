/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.status/1": errors. Only the host makes a status; NULL is success.
 * All functions: [any] [finish]. */
#ifndef TENON_HOST_STATUS_H
#define TENON_HOST_STATUS_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_status {
  uint32_t struct_size;
  uint32_t revision;
  /* Never fails: out of memory gives a static status. message says what, where, expected, got.
   * Takes over cause. domain: the component's id; empty: the caller's plugin id. The status is the
   * caller's until release. Errors: any; what comes back is the status that was made. */
  tn_status*(TN_CALL* make)(tn_ctx* TN_NULLABLE, int32_t code, tn_str domain, tn_str message,
                            tn_status* TN_NULLABLE cause);
  void(TN_CALL* detail)(tn_status*, tn_str key, tn_any value); /* scalars and text are copied */
  int32_t(TN_CALL* code)(const tn_status*);                    /* TN_OK for NULL */
  tn_str(TN_CALL* message)(const tn_status*);                  /* lives with the status */
  tn_str(TN_CALL* domain)(const tn_status*);                   /* lives with the status */
  const tn_status*(TN_CALL* cause)(const tn_status*); /* borrowed, or NULL */
  /* The whole chain on one line: "domain: message: cause". Errors: any of the sink's. */
  tn_status*(TN_CALL* text)(const tn_status* TN_NULLABLE, const tn_sink*);
  void(TN_CALL* release)(tn_status*); /* NULL is fine */
} tn_host_status;

#ifdef __cplusplus
}
#endif
#endif
