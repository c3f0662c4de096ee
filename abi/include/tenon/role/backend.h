/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.backend/1": runs graphs on a device. The host binds all shapes, runs the passes that
 * prepare() names, calls claim() for the nodes that the backend takes, cuts them into convex partitions,
 * and compiles each partition. Errors of all functions: any; they end what the caller had asked of the
 * plan, but for the codes that a function names. Draft until a GPU backend has used it. */
#ifndef TENON_ROLE_BACKEND_H
#define TENON_ROLE_BACKEND_H
#include "tenon/exec.h"
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Answers of claim(). A group is taken whole or not at all; give a reason for what is refused. */
typedef struct tn_claims { /* FROZEN */
  void* ctx;
  void(TN_CALL* take)(void* ctx, const tn_node_id* group, uint64_t n); /* [serial] */
  void(TN_CALL* refuse)(void* ctx, tn_node_id, tn_str why);            /* [serial] */
} tn_claims;

typedef struct tn_backend {
  uint32_t struct_size;
  uint32_t revision;
  /* JSON array of {"id", "type": DLPack's, "name", "memory_bytes", "precisions": computed in, optional}. An
   * entry with "why" is no device, and says why and what to do; no entry without: nothing to run on. [any] */
  tn_status*(TN_CALL* devices)(void*, const tn_sink*);

  /* Memory and order; NULL where the device is the CPU, which finishes before it returns. A stream
   * of stream_native's kind that others made on this device, and do not capture, serves as one. Streams,
   * events and memory are the caller's until the function that frees them; memory is a block of `bytes`
   * bytes. Errors: any; TN_RESOURCE_EXHAUSTED: no memory on the device. */
  tn_status*(TN_CALL* TN_NULLABLE alloc)(void*, int32_t device, uint64_t bytes, void** out); /* [any] */
  /* Not before after_event (or NULL) has fired. [any] [finish] */
  void(TN_CALL* TN_NULLABLE free)(void*, int32_t device, void* memory, void* after_event);
  tn_status*(TN_CALL* TN_NULLABLE stream_new)(void*, int32_t device, void** out);           /* [any] */
  void(TN_CALL* TN_NULLABLE stream_free)(void*, void* stream);                              /* [any] */
  void*(TN_CALL* TN_NULLABLE stream_native)(void*, void* stream, tn_str kind);              /* [any] */
  tn_status*(TN_CALL* TN_NULLABLE event_record)(void*, void* stream, void** out_event);     /* [any] */
  tn_status*(TN_CALL* TN_NULLABLE event_wait)(void*, void* stream, void* event);            /* [any] */
  /* The asynchronous status of what came before the event. TN_UNAVAILABLE: not within the time. [any] */
  tn_status*(TN_CALL* TN_NULLABLE event_sync)(void*, void* event, uint64_t timeout_ns);
  void(TN_CALL* TN_NULLABLE event_free)(void*, void* event);                                /* [any] */
  /* Between this device and the CPU, or within it; dense tensors of the same type and shape. [any] */
  tn_status*(TN_CALL* TN_NULLABLE copy)(void*, const DLTensor* src, DLTensor* dst, const tn_exec*);

  /* Ids of passes, one a line, that the host runs on its clone before claim(). May be NULL. [any] */
  tn_status*(TN_CALL* TN_NULLABLE prepare)(void*, const tn_sink*);
  tn_status*(TN_CALL* claim)(void*, const tn_graph*, int32_t device, const tn_claims*); /* [any] */
  /* Every shape in `part`, the partition, is known unless it depends on data. Options: the plan's,
   * checked against the component's schema; "threads" is fixed here. `part` and what is borrowed from it
   * are good until this returns: the executable shares the constants that it reads in place. out_exe:
   * the host's until exe_free. Errors: any, which loses the partition to the next backend;
   * TN_UNIMPLEMENTED: only the nodes that the backend cannot compile alone. [any] */
  tn_status*(TN_CALL* compile)(void*, const tn_graph* part, int32_t device, const tn_options*,
                               void** out_exe);
  uint64_t(TN_CALL* workspace)(void*, void* exe); /* bytes per run in flight. [any] */
  /* Inputs and outputs by position in `part`, on the device, inputs in memory of any owner there. With
   * state functions, states are left out of both and the state is given. All outputs are requested
   * before run returns: where a shape depends on data, run waits. Errors: any; TN_UNIMPLEMENTED: not for
   * this data; the host gives the nodes to the next backend and runs again. [any] */
  tn_status*(TN_CALL* run)(void*, void* exe, void* state, const DLTensor* const* in, uint64_t n_in,
                           const tn_outputs*, const tn_exec*);
  void(TN_CALL* exe_free)(void*, void* exe); /* [any] */
  /* JSON object: kernels, arena, scratch and packed bytes, lower bound of the arena. [any] */
  tn_status*(TN_CALL* TN_NULLABLE describe)(void*, void* exe, const tn_sink*);
  /* Layers of the last run with TN_EXEC_PROFILE, as tn_host_eval.profile says. [serial] */
  tn_status*(TN_CALL* TN_NULLABLE profile)(void*, void* exe, const tn_sink*);

  /* These four may be NULL: then the host keeps state and hands it in and out.
   * State lives with the backend, in a layout of its choice, under the name of the state's
   * input; executables of one model (train, eval, last batch) share it. Errors: any; TN_NOT_FOUND of
   * state_get: it was never set, which counts as zeros. [serial] per state */
  tn_status*(TN_CALL* TN_NULLABLE state_new)(void*, int32_t device, void** out_state);
  tn_status*(TN_CALL* TN_NULLABLE state_set)(void*, void* state, tn_str name, const DLTensor*);
  tn_status*(TN_CALL* TN_NULLABLE state_get)(void*, void* state, tn_str name, DLTensor* out);
  void(TN_CALL* TN_NULLABLE state_free)(void*, void* state);
} tn_backend;

#ifdef __cplusplus
}
#endif
#endif
