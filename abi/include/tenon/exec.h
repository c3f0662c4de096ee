/* SPDX-License-Identifier: Apache-2.0
 * How something runs: where results go, on which stream, after which events. */
#ifndef TENON_EXEC_H
#define TENON_EXEC_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Results are requested as their shapes become known. proto carries type, shape and device; get
 * fills *out with memory for it, on proto's device, that stays valid until the run has finished: dense,
 * row-major unless proto has strides. Request each result once, before the function that was given the
 * outputs returns. Shape and strides of *out are proto's, or live as long as its memory. Errors of these:
 * any; it ends the run, which gives it. */
typedef struct tn_outputs { /* FROZEN */
  void* ctx;
  tn_status*(TN_CALL* get)(void* ctx, uint64_t i, const DLTensor* proto, DLTensor* out); /* [any] */
} tn_outputs;

typedef struct tn_exec {
  uint32_t struct_size;
  uint32_t flags;           /* TN_EXEC_* */
  void* TN_NULLABLE stream;             /* the backend's; NULL: finish before returning */
  void* const* wait_events; /* run after these */
  uint64_t wait_count;
  void** TN_NULLABLE out_done; /* event that fires when done and carries the asynchronous status; or NULL */
  const tn_cancel* TN_NULLABLE cancel;
  void* TN_NULLABLE workspace; /* as many bytes as the backend's workspace() asked for, 64-byte aligned */
  uint64_t workspace_bytes;
} tn_exec;
#define TN_EXEC_CAPTURE 1u /* graph capture: no allocation, no host synchronisation */
/* 2u is not used. A run gives the same bits each time unless an option of its backend says else. */
#define TN_EXEC_PROFILE 4u /* record what the backend's profile() then reports */

#ifdef __cplusplus
}
#endif
#endif
