/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.options/1": named values for a component. A component receives them checked
 * against its schema, with defaults filled in, so it only reads. */
#ifndef TENON_HOST_OPTIONS_H
#define TENON_HOST_OPTIONS_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_options {
  uint32_t struct_size;
  uint32_t revision;
  /* Empty; the caller's until release. Errors: none of its own. [any] */
  tn_status*(TN_CALL* create)(tn_ctx*, tn_options** out);
  /* Copies. Errors: TN_INVALID_ARGUMENT: no key, or a value that cannot be. [serial] */
  tn_status*(TN_CALL* set)(tn_options*, tn_str key, tn_any value);
  /* Adds the members of a JSON object. Errors: TN_INVALID_ARGUMENT: no such text. [serial] */
  tn_status*(TN_CALL* parse)(tn_options*, tn_str json);
  /* TN_ANY_NONE when absent: not an error. The value lives with the options. Errors: none of its own. [any] */
  tn_status*(TN_CALL* get)(const tn_options*, tn_str key, tn_any* out);
  uint64_t(TN_CALL* count)(const tn_options*);                            /* [any] */
  tn_str(TN_CALL* key_at)(const tn_options*, uint64_t i);                 /* borrowed, until set. [any] */
  void(TN_CALL* retain)(tn_options*);                                     /* [any] */
  void(TN_CALL* release)(tn_options*);                                    /* [any] */
} tn_host_options;

#ifdef __cplusplus
}
#endif
#endif
