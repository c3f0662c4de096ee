/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.schedule/1": a value over time: learning rate, sparsity, temperature, length. It is a
 * pure function of the step, so that what has to be saved of it is one integer. */
#ifndef TENON_ROLE_SCHEDULE_H
#define TENON_ROLE_SCHEDULE_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TN_STEPS_UNKNOWN UINT64_MAX

typedef struct tn_schedule {
  uint32_t struct_size;
  uint32_t revision;
  /* The value at `step`, from 0 on: finite, and the same bits each time. total_steps: how long the
   * caller goes on, for a schedule that does not know how long it is; TN_STEPS_UNKNOWN: not known.
   * Steps beyond the end are no error. Errors: any; TN_FAILED_PRECONDITION: it needs total_steps. [any] */
  tn_status*(TN_CALL* value)(void*, uint64_t step, uint64_t total_steps, double* out);
} tn_schedule;

#ifdef __cplusplus
}
#endif
#endif
