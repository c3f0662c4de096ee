/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.metric/1": one figure from outputs and their labels. Errors of all functions: any;
 * TN_INVALID_ARGUMENT: outputs or labels of another type or shape; TN_FAILED_PRECONDITION of value: no
 * batch was seen. */
#ifndef TENON_ROLE_METRIC_H
#define TENON_ROLE_METRIC_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_metric {
  uint32_t struct_size;
  uint32_t revision;
  /* One batch: the model's outputs, and labels from the data set or a reference model's outputs,
   * as "against" in the schema's top level says ("labels" or "outputs"). CPU, dense. [serial] */
  tn_status*(TN_CALL* update)(void*, const DLTensor* const* out, uint64_t n_out,
                              const DLTensor* const* label, uint64_t n_label);
  tn_status*(TN_CALL* value)(void*, double* out, int32_t* out_higher_is_better); /* [serial] */
  tn_status*(TN_CALL* TN_NULLABLE details)(void*, const tn_sink*); /* JSON object; may be NULL. [serial] */
} tn_metric;

#ifdef __cplusplus
}
#endif
#endif
