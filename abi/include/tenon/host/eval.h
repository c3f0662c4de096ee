/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.eval/1": running graphs, for calibration, probes and training. A plan compiles
 * the graph for each set of input shapes that it sees (a bounded cache), spread over backends. */
#ifndef TENON_HOST_EVAL_H
#define TENON_HOST_EVAL_H
#include "tenon/exec.h"
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_eval {
  uint32_t struct_size;
  uint32_t revision;
  /* taps: values of the graph to return after its outputs. options: JSON object; "backend": id
   * or list in order of preference (default: what this machine has of those whose schema states a
   * "preference"; "reference" takes what is left), "threads", "precision", "plan_cache" (shapes
   * kept, default 64, with a device 8), "deterministic", and what the backend's schema has. The graph is cloned. out: the
   * caller's until release. Errors: any of the backends'; TN_NOT_FOUND: no such backend; TN_UNAVAILABLE:
   * it has no device here; TN_INVALID_ARGUMENT: an option, a tap, a state of unknown shape. [any] */
  tn_status*(TN_CALL* compile)(tn_ctx*, const tn_graph*, const tn_value_id* taps, uint64_t n_taps,
                               tn_str options, tn_plan** out);
  /* Compiles for these input types now, so that the first run does not. Errors: any of the backends';
   * TN_UNIMPLEMENTED: no backend runs a node, which is named. [any] */
  tn_status*(TN_CALL* prepare)(tn_plan*, const DLTensor* const* in, uint64_t n_in);
  /* Inputs by position, dense: tn_host_tensor.copy makes others so. Results: the graph's outputs in
   * order, then the taps. Inputs and outputs that are a state's are left out: they stay with the plan.
   * One plan may run on many threads at once; runs with states take turns. Errors: as prepare; any of the outputs'; TN_CANCELLED;
   * TN_FAILED_PRECONDITION: the memory that was given for a result does not fit it. [any] */
  tn_status*(TN_CALL* run)(tn_plan*, const DLTensor* const* in, uint64_t n_in, const tn_outputs*,
                           const tn_cancel* TN_NULLABLE);
  /* State by the name of its input: starts as zeros, stays with the plan; copied in, from any strides, and
   * out, into dense memory, both of the CPU. Errors: any of the backend's; TN_NOT_FOUND: no such state;
   * TN_INVALID_ARGUMENT: its type or shape is another, or `out` is not such memory. [serial] */
  tn_status*(TN_CALL* state_set)(tn_plan*, tn_str name, const DLTensor*);
  tn_status*(TN_CALL* state_get)(tn_plan*, tn_str name, DLTensor* out); /* Errors: as state_set. [serial] */
  /* JSON: {"backends": ids, "devices": theirs, and of the shapes last used "partitions": [{"backend",
   * "nodes", ...}], "fallback_nodes": [{"node", "op", "why"}], "arena_bytes", "copies_per_run"}. Errors:
   * any of the sink's. [any] */
  tn_status*(TN_CALL* describe)(tn_plan*, const tn_sink*);
  /* Runs once and reports time per layer: JSON array of {"name", "op", "backend", "kernel", "ns",
   * "flops", "bytes"}. Errors: as run; any of the sink's. [any] */
  tn_status*(TN_CALL* profile)(tn_plan*, const DLTensor* const* in, uint64_t n_in, const tn_sink*);
  void(TN_CALL* retain)(tn_plan*);  /* [any] */
  void(TN_CALL* release)(tn_plan*); /* [any] */
  /* Another graph with the backends and the options of `plan`, and in common with it and all beside it
   * the states, by name: the same step for batches of another shape, or without some layers. Either may
   * have states that the other has not. A run of any goes on with what the last run of any has left, so
   * runs take turns. out: the caller's until release, and good beyond that of `plan`. Errors: any of the
   * backends'; TN_FAILED_PRECONDITION: a state of another type or shape;
   * TN_INVALID_ARGUMENT: a state of unknown shape. [any] */
  tn_status*(TN_CALL* compile_beside)(tn_plan* plan, const tn_graph*, tn_plan** out);
} tn_host_eval;

#ifdef __cplusplus
}
#endif
#endif
