/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.ops/1": rows of the operator table, one tn_op each, read once, when the plugin is
 * loaded: static data, and functions whose answers follow from the node. A column that is missing
 * falls back: explicit rule, then axes or expr, then decompose, then a generic answer or an
 * error that names the operator. Errors of all functions: any; TN_INVALID_ARGUMENT: a node that the
 * operator does not allow; TN_UNIMPLEMENTED: allowed, but not by this column, which then falls back. */
#ifndef TENON_ROLE_OP_H
#define TENON_ROLE_OP_H
#include "tenon/exec.h"
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

/* traits */
#define TN_OP_POINTWISE 1u     /* has expr; broadcasts by NumPy's rules */
#define TN_OP_VIEW 2u          /* output has the bytes of input 0 in the same order */
#define TN_OP_READS_SHAPE 4u   /* reads only the shapes of its inputs, never their data */
#define TN_OP_RANDOM 8u
#define TN_OP_CONTROL 16u      /* has bodies: the host compiles them and gives them to ref */
#define TN_OP_COMMUTATIVE 32u  /* inputs 0 and 1 may be swapped */
#define TN_OP_DATA_SHAPE 64u   /* the shape of an output depends on data */
#define TN_OP_MIXES_BATCH 128u /* an output row depends on other rows of the batch */
#define TN_OP_STATEFUL 256u    /* never merged, folded or removed */

/* A compiled body of a control-flow node. */
typedef struct tn_body { /* FROZEN */
  tn_str name;           /* of the attribute */
  void* ctx;
  tn_status*(TN_CALL* run)(void* ctx, const DLTensor* const* in, uint64_t n_in,
                           const tn_outputs*); /* [serial] */
} tn_body;

typedef struct tn_op_call {
  uint32_t struct_size;
  uint32_t reserved0;
  tn_ctx* ctx;
  const tn_graph* graph; /* to read attributes of the node */
  tn_node_id node;
  const DLTensor* const TN_NULLABLE* in; /* NULL: absent. Dense row-major CPU memory */
  uint64_t n_in;
  const tn_outputs* outputs;
  const tn_body* bodies;
  uint64_t n_bodies;
  const tn_cancel* TN_NULLABLE cancel;
} tn_op_call;

/* Functions get `self` first: what create made for the component that brings the row. The context
 * of whoever asks is that of the edit, the graph or the call. */
typedef struct tn_op {
  uint32_t struct_size;
  uint32_t traits; /* TN_OP_* */
  tn_str domain;   /* "" is ONNX's own */
  tn_str type;     /* "MatMul" */
  /* An operator may have several rows that differ in it: a graph whose note
   * "opset.DOMAIN" is N gets the newest one up to N, a graph without the note the newest of all. */
  uint64_t since_version;
  tn_str axes; /* by abi/axes.md; empty: none */
  tn_str expr; /* by abi/expr.md; empty: none */
  /* JSON array of {"name", "type", "default", "help"}; type: int float string ints floats strings
   * tensor graph dtype bool */
  tn_str attributes;
  /* Role in quantization, by abi/quant.md: "compute act=0 weight=1 bias=2 axis=0", "same_scale",
   * "table", "requant" ...; empty: float. */
  tn_str quant;
  /* Sets types of the outputs. NULL: axes or the broadcasting rule says it. [any] */
  tn_status*(TN_CALL* TN_NULLABLE shape)(void* self, tn_edit*, tn_node_id);
  /* Builds the same from smaller operators. out: one value per output. [any] */
  tn_status*(TN_CALL* TN_NULLABLE decompose)(void* self, tn_edit*, tn_node_id,
                                             tn_value_id* out);
  /* Multiply-adds count as two. NULL: from axes, or one per output element. [any] */
  tn_status*(TN_CALL* TN_NULLABLE cost)(void* self, const tn_graph*, tn_node_id, double* flops,
                                        double* bytes);
  /* The plain kernel: the oracle for all others. NULL: from expr, or decompose. It requests each output
   * that the node has, with the inferred type; the host checks both. Errors: any; TN_UNIMPLEMENTED,
   * before it has requested any: not this node; decompose does it then. [any] */
  tn_status*(TN_CALL* TN_NULLABLE ref)(void* self, const tn_op_call*);
  /* Adds inputs (or constants) and one random valid node of this type; inputs must be added in a
   * form whose data may be any values of its type in [-2, 2] (indices are constants). [any] */
  tn_status*(TN_CALL* TN_NULLABLE sample)(void* self, tn_edit*, uint64_t seed,
                                          tn_node_id* out);

  /* Builds the gradient with nodes of the same graph, so that it can itself be transformed.
   * cotangents: one per output, 0 where it is zero; at least one is not. wanted: one per input, 1
   * where a gradient is wanted. gradients: one per input, all 0 on entry; 0 stays for zero. A
   * gradient has the input's type, or a shape that the input broadcasts to: the caller sums. [any] */
  tn_status*(TN_CALL* TN_NULLABLE vjp)(void* self, tn_edit*, tn_node_id,
                                       const tn_value_id* cotangents, const uint8_t* wanted,
                                       tn_value_id* gradients);
  /* Inputs and outputs whose data (not just shape) vjp reads: bit i, and bit 63 for 63 and up. */
  uint64_t vjp_inputs;
  uint64_t vjp_outputs;
  /* Builds what the node does for each entry of a new first axis. in: one per input of the node (0:
   * absent); batched: 1 where it has the new axis, at least one does; the node itself has the types
   * without it. out: one per output; out_batched: 1 where it has the new first axis. [any] */
  tn_status*(TN_CALL* TN_NULLABLE batch)(void* self, tn_edit*, tn_node_id,
                                         const tn_value_id* in, const uint8_t* batched,
                                         tn_value_id* out, uint8_t* out_batched);
  /* Mixed precision, by abi/quant.md: "cpu=low cuda=fp32 own=1,2". Empty: follow. */
  tn_str cast;
  /* Whether to compute again rather than keep, by abi/quant.md: "cheap", "fusible", "expensive",
   * "never" or empty: pointwise operators and views are cheap, others expensive. */
  tn_str recompute;
  void* self; /* set by the host in the rows that it gives out; the functions' first argument */
  /* Which entries of which axes belong together, where axes do not say it, by abi/quant.md:
   * "concat axis=axis", "permute perm=perm" ... */
  tn_str coupling;
  /* Private training: builds, for each example, the squared Euclidean norm of its share of the gradient
   * of each input that is wanted: parameters, which this node alone reads. Examples are the entries of
   * the first axis of all outputs, and of the inputs that are no constants. cotangents, wanted: as of
   * vjp. squares: one per input, all 0 on entry, [examples], of the input's type; 0 stays for zero.
   * NULL: by vjp and batch. [any] */
  tn_status*(TN_CALL* TN_NULLABLE example_norms)(void* self, tn_edit*, tn_node_id,
                                                 const tn_value_id* cotangents,
                                                 const uint8_t* wanted, tn_value_id* squares);
} tn_op;

typedef struct tn_ops { /* the role's table: all rows that one component brings */
  uint32_t struct_size;
  uint32_t revision;
  uint64_t count;
  const tn_op* const* rows;
} tn_ops;

#ifdef __cplusplus
}
#endif
#endif
