/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.optimizer/1": writes the update of parameters into a graph that has their gradients.
 * It runs once, when a step is built; what it writes runs in every step. What it keeps between
 * steps (momentum, counts) are states of the graph: pairs of an input and an output that the
 * optimizer adds. States start as zeros. */
#ifndef TENON_ROLE_OPTIMIZER_H
#define TENON_ROLE_OPTIMIZER_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_parameter { /* one tensor that is trained */
  uint32_t struct_size;
  uint32_t reserved0;
  tn_str name;          /* its states are called NAME/SLOT, as "w1/momentum" */
  tn_value_id value;    /* before the step; of a float type and a known shape */
  tn_value_id gradient; /* of the same type and shape */
} tn_parameter;

typedef struct tn_update {
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t n_parameters;
  const tn_parameter* const* parameters;
  tn_value_id rate; /* the learning rate of this step: a float32 scalar */
} tn_update;

typedef struct tn_optimizer {
  uint32_t struct_size;
  uint32_t revision;
  /* Adds nodes and states; out: for each parameter its value after the step. The caller makes the
   * parameters themselves states. Errors: any; TN_INVALID_ARGUMENT: a parameter that it cannot update.
   * [any] */
  tn_status*(TN_CALL* build)(void*, tn_edit*, const tn_update*, tn_value_id* out);
} tn_optimizer;

#ifdef __cplusplus
}
#endif
#endif
