/* SPDX-License-Identifier: Apache-2.0
 * The type of a value in a graph. */
#ifndef TENON_TYPE_H
#define TENON_TYPE_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A dimension is >= 0, or TN_DIM_UNKNOWN with a symbol ("batch", "seq/2+1": canonical text,
 * compared as text) or without one. */
#define TN_DIM_UNKNOWN (-1)
#define TN_RANK_UNKNOWN 0xffffffffu
#define TN_SIZE_UNKNOWN UINT64_MAX

#define TN_KIND_TENSOR 0u
#define TN_KIND_SEQUENCE 1u /* of tensors of this dtype */
#define TN_KIND_OPTIONAL 2u

typedef struct tn_type {
  uint32_t struct_size;
  uint32_t kind;         /* TN_KIND_* */
  uint32_t dtype;        /* TN_F32, ...; TN_DTYPE_NONE when not known */
  uint32_t rank;         /* or TN_RANK_UNKNOWN */
  const int64_t* dims;   /* [rank] */
  const tn_str* TN_NULLABLE symbols; /* [rank], empty where dims[i] is known or nameless; or NULL */
} tn_type;

#ifdef __cplusplus
}
#endif
#endif
