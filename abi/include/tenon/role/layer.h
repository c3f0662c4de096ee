/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.layer/1": a layer of a network, as a way to write its nodes and parameters into a graph
 * that is being built. It runs once for each place where the layer is used, and reads sizes that it
 * does not follow from the types of its inputs. What it writes is the layer as a trained network has it:
 * training puts batch statistics and dropout in place of it (trainer.train).
 *
 * Parameters are float32 constants NAME.weight, NAME.bias ... (without NAME: weight, bias). One that
 * the graph has already is used again, so that a layer used twice has one set of parameters. */
#ifndef TENON_ROLE_LAYER_H
#define TENON_ROLE_LAYER_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_layer_use { /* one place where a layer is used */
  uint32_t struct_size;
  uint32_t reserved0;
  tn_str name;   /* "layer1.0.conv1": in front of the names of parameters; may be empty */
  uint64_t seed; /* of initial values: the same seed and names give the same numbers */
  uint64_t n_inputs;
  const tn_value_id* inputs; /* 0: an optional input that is absent */
  uint64_t n_outputs;        /* how many the caller wants: at least 1 */
} tn_layer_use;

typedef struct tn_layer {
  uint32_t struct_size;
  uint32_t revision;
  /* Adds nodes and constants; out: [n_outputs]. Errors: any; TN_INVALID_ARGUMENT names the input that
   * does not fit, with the type expected, or says how many inputs or outputs there can be. [any] */
  tn_status*(TN_CALL* build)(void*, tn_edit*, const tn_layer_use*, tn_value_id* out);
} tn_layer;

#ifdef __cplusplus
}
#endif
#endif
