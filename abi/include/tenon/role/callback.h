/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.callback/1": is notified of how a training run goes, and may end it. It cannot change the
 * run: what a run computes is decided by its options alone, so that it can be resumed. All functions
 * may be NULL, and are called by the thread that trains, between two steps. Errors of all functions: any;
 * the run ends with it. */
#ifndef TENON_ROLE_CALLBACK_H
#define TENON_ROLE_CALLBACK_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_progress_point { /* where a run is */
  uint32_t struct_size;
  uint32_t skipped; /* 1: gradients overflowed, nothing was updated */
  uint64_t step;    /* steps done so far, from 1 on; those of earlier processes included */
  uint64_t epoch;   /* the epoch that the step is of, from 1 on */
  double loss;      /* of the step's batch */
  double rate;      /* the learning rate that the step used */
} tn_progress_point;

typedef struct tn_callback {
  uint32_t struct_size;
  uint32_t revision;
  /* After each step. out_stop: 0 on entry; another value ends the run as early stopping does. A
   * status ends the run as a failure. [serial] */
  tn_status*(TN_CALL* TN_NULLABLE step)(void*, const tn_progress_point*, int32_t* out_stop);
  /* After each epoch and its validation. record: the JSON object that the run's history keeps of it.
   * model: as it is now, for inference; lent for the call. [serial] */
  tn_status*(TN_CALL* TN_NULLABLE epoch)(void*, tn_str record, const tn_graph* model, int32_t* out_stop);
} tn_callback;

#ifdef __cplusplus
}
#endif
#endif
