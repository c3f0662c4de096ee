/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.loss/1": writes what training minimizes into the graph of a model. It runs once,
 * when a training step is built, before the gradient is taken; what it writes runs in every step. */
#ifndef TENON_ROLE_LOSS_H
#define TENON_ROLE_LOSS_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_objective { /* what a loss is made from */
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t n_inputs;           /* what the model reads of a batch: a teacher reads it too */
  const tn_value_id* inputs;
  uint64_t n_predictions;      /* the model's outputs, in order, with the batch in front */
  const tn_value_id* predictions;
  uint64_t n_targets;          /* the labels of the batch: classes as integers, or floating point */
  const tn_value_id* targets;  /* values; none where the loss needs none */
  void* trained_self;
  /* The loss calls it for each float constant that it has added and that is to be trained with the
   * model's own (an adapter); other constants of its own stay as they are. Errors:
   * TN_INVALID_ARGUMENT: no float constant. [serial] */
  tn_status*(TN_CALL* trained)(void* trained_self, tn_value_id constant);
} tn_objective;

typedef struct tn_loss {
  uint32_t struct_size;
  uint32_t revision;
  /* Adds nodes, and a teacher's graph where there is one (under a scope of its own); out: the loss,
   * a float scalar: the mean over the batch. Errors: any; TN_INVALID_ARGUMENT names the prediction or
   * target that does not fit. [any] */
  tn_status*(TN_CALL* build)(void*, tn_edit*, const tn_objective*, tn_value_id* out);
} tn_loss;

#ifdef __cplusplus
}
#endif
#endif
