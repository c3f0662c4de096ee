/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.observer/1": watches values and says which range to quantize. Errors of all functions: any;
 * TN_INVALID_ARGUMENT: another type, or a state of another kind. */
#ifndef TENON_ROLE_OBSERVER_H
#define TENON_ROLE_OBSERVER_H
#include "tenon/exec.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_range { /* FROZEN */
  double low;
  double high;
  uint64_t seen;       /* finite values */
  uint64_t not_finite; /* NaN and infinities, which are not counted in */
} tn_range;

/* Options that every observer takes: "bits" (8), "symmetric" (false): what the range is for. */
typedef struct tn_observer {
  uint32_t struct_size;
  uint32_t revision;
  tn_status*(TN_CALL* observe)(void*, const DLTensor*);     /* float types, dense, CPU. [serial] */
  tn_status*(TN_CALL* save)(void*, const tn_sink*);         /* its state, for merge. [serial] */
  tn_status*(TN_CALL* merge)(void*, tn_bytes other_state);  /* of the same kind. [serial] */
  /* Errors: any; TN_FAILED_PRECONDITION: it saw no finite value. [any] */
  tn_status*(TN_CALL* range)(void*, tn_range* out);
} tn_observer;

#ifdef __cplusplus
}
#endif
#endif
