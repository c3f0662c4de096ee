/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.dataset/1": samples by index. One whose schema has "extensions" is found by a file's name and
 * gets the file as its option "path" of type "path". Errors of all functions: any; TN_OUT_OF_RANGE: an index
 * beyond the end; TN_DATA_LOSS: a sample that cannot be read. */
#ifndef TENON_ROLE_DATASET_H
#define TENON_ROLE_DATASET_H
#include "tenon/exec.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_dataset {
  uint32_t struct_size;
  uint32_t revision;
  uint64_t(TN_CALL* size)(void*); /* samples; TN_SIZE_UNKNOWN: a stream. [any] */
  /* JSON array of {"name", "dtype": "float32", "shape": of one sample}. [any] */
  tn_status*(TN_CALL* fields)(void*, const tn_sink*);
  /* Field i of the samples index[0..n), stacked along a new first axis, is result i. [any] */
  tn_status*(TN_CALL* batch)(void*, const uint64_t* index, uint64_t n, uint64_t seed,
                             const tn_outputs*);
  /* Where a sample comes from, in words for messages: "photos/cat.jpg", or the "sample 150" that it is in the
   * data set of which this one is a part. NULL: its index says enough. [any] */
  tn_status*(TN_CALL* TN_NULLABLE origin)(void*, uint64_t index, const tn_sink*);
} tn_dataset;

#ifdef __cplusplus
}
#endif
#endif
