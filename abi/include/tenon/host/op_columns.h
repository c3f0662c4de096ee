/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.op_columns/1": the columns quant, cast, recompute and coupling of an operator's
 * row in parsed form (abi/quant.md), and its axes bound to one node's operands. All functions: [any]. */
#ifndef TENON_HOST_OP_COLUMNS_H
#define TENON_HOST_OP_COLUMNS_H
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

struct tn_op;

/* roles in quantization */
#define TN_QUANT_FLOAT 0u
#define TN_QUANT_COMPUTE 1u
#define TN_QUANT_SAME_SCALE 2u
#define TN_QUANT_TABLE 3u
#define TN_QUANT_REQUANT 4u
#define TN_QUANT_QUANTIZE 5u
#define TN_QUANT_DEQUANTIZE 6u
#define TN_QUANT_INTEGER 7u

/* flags of a compute node */
#define TN_QUANT_FUSED 1u /* has an epilogue beyond the bias: an activation, a gate */

typedef struct tn_quant_number { /* FROZEN */
  tn_str attribute; /* of the node; empty: always value */
  int64_t value;    /* where the attribute is not 0 */
  int64_t otherwise;
} tn_quant_number;

/* One weight of a compute node and what it is multiplied with. */
typedef struct tn_quant_product { /* FROZEN */
  int64_t act; /* inputs of the node */
  int64_t weight;
  int64_t bias;         /* -1: none */
  tn_quant_number axis; /* the weight's output channel */
} tn_quant_product;

typedef struct tn_quant_stored { /* FROZEN */
  int64_t input;
  tn_quant_number axis; /* the channels with a scale each */
} tn_quant_stored;

/* categories of mixed precision */
#define TN_CAST_FOLLOW 0u
#define TN_CAST_LOW 1u
#define TN_CAST_FP32 2u
#define TN_CAST_FP32_OUT 3u
#define TN_CAST_PROMOTE 4u
#define TN_CAST_KEEP 5u
#define TN_CAST_BANNED 6u

typedef struct tn_cast_rule { /* FROZEN */
  tn_str device;
  uint32_t category; /* TN_CAST_* */
  uint32_t reserved0;
} tn_cast_rule;

/* classes of recomputation; an empty column is derived from the traits */
#define TN_RECOMPUTE_CHEAP 0u
#define TN_RECOMPUTE_FUSIBLE 1u
#define TN_RECOMPUTE_EXPENSIVE 2u
#define TN_RECOMPUTE_NEVER 3u
/* families of couplings; none: axes say it, or it is not stated */
#define TN_COUPLING_NONE 0u
#define TN_COUPLING_SAME 1u
#define TN_COUPLING_CONCAT 2u
#define TN_COUPLING_SPLIT 3u
#define TN_COUPLING_SLICE 4u
#define TN_COUPLING_PERMUTE 5u
#define TN_COUPLING_PAD 6u
#define TN_COUPLING_SCALE 7u
#define TN_COUPLING_GATHER 8u
#define TN_COUPLING_REDUCE 9u
#define TN_COUPLING_SHAPE 10u
#define TN_COUPLING_MATRICES 11u
#define TN_COUPLING_VIEW 12u
#define TN_COUPLING_ATTENTION 13u
#define TN_COUPLING_RECURRENT 14u
#define TN_COUPLING_EQUATION 15u

typedef struct tn_coupling_key { /* FROZEN */
  tn_str key;
  tn_str attribute; /* that holds what the key means; empty: an input does */
  int64_t input;
} tn_coupling_key;

typedef struct tn_op_columns {
  uint32_t struct_size;
  uint32_t quant;     /* TN_QUANT_* */
  uint32_t recompute; /* TN_RECOMPUTE_* */
  uint32_t coupling;  /* TN_COUPLING_* */
  const tn_quant_product* products;
  uint64_t n_products;
  const tn_quant_stored* stored; /* weights of a node that computes in float */
  uint64_t n_stored;
  int64_t rows; /* the input that is a table of rows to look up; -1: none */
  const tn_cast_rule* casts;
  uint64_t n_casts;
  uint64_t own_inputs; /* bit i: input i has a type of its own and is never cast */
  const tn_coupling_key* coupling_keys;
  uint64_t n_coupling_keys;
  uint64_t quant_flags; /* TN_QUANT_FUSED */
} tn_op_columns;

/* Where a term of the axes stands in one node. */
typedef struct tn_axes_place { /* FROZEN */
  uint32_t term;    /* index in tn_axes.terms */
  uint32_t operand; /* inputs of the node first, then outputs */
  uint32_t axis;    /* the first of them */
  uint32_t count;   /* of axes: a run or a batch has many, or none */
  uint32_t first;   /* which axis of the longest batch the first one is */
  uint32_t reserved0;
} tn_axes_place;

typedef struct tn_host_op_columns {
  uint32_t struct_size;
  uint32_t revision;
  /* Of a row that the host has handed out, else NULL. Lives as long as the host. */
  const tn_op_columns*(TN_CALL* columns)(const struct tn_op*);
  /* out: the first `capacity` entries, operand by operand; out_count: how many there are in all. Errors:
   * TN_NOT_FOUND: the row has no axes; TN_INVALID_ARGUMENT: they do not fit the node's ranks. */
  tn_status*(TN_CALL* layout)(const tn_graph*, tn_node_id, tn_axes_place* TN_NULLABLE out,
                              uint64_t capacity, uint64_t* out_count);
} tn_host_op_columns;

#ifdef __cplusplus
}
#endif
#endif
