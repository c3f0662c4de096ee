/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.initializer/1": the values that a parameter has before training. They are a function
 * of seed and stream (the host's random service), whatever the number of threads. */
#ifndef TENON_ROLE_INITIALIZER_H
#define TENON_ROLE_INITIALIZER_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_initial { /* one parameter that needs initial values */
  uint32_t struct_size;
  uint32_t reserved0;
  tn_str name; /* for messages */
  uint64_t rank;
  const int64_t* shape; /* [rank]: what one output reads is an entry of the first axis */
  uint64_t fan_in;      /* how many products are summed for one output; 1 for a vector */
  uint64_t fan_out;     /* how many outputs one input goes to; 1 for a vector */
  uint64_t seed;
  uint64_t stream; /* another one for each parameter */
} tn_initial;

typedef struct tn_initializer {
  uint32_t struct_size;
  uint32_t revision;
  /* out: [product of shape] finite values, dense, row-major; the caller's. Errors: any;
   * TN_INVALID_ARGUMENT: a shape that it has no values for. [any] */
  tn_status*(TN_CALL* fill)(void*, const tn_initial*, float* out);
} tn_initializer;

#ifdef __cplusplus
}
#endif
#endif
