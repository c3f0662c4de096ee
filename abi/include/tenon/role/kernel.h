/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.kernel/1": one fused kernel for a pattern of operators that a backend would run one by
 * one. A plan whose option "kernels" names it asks it before its backends, for each place of the graph
 * where the pattern fits. Errors of all functions: any. Draft: CPU memory alone. */
#ifndef TENON_ROLE_KERNEL_H
#define TENON_ROLE_KERNEL_H
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_kernel_site { /* a place where the pattern fits; shapes are known */
  uint32_t struct_size;
  uint32_t reserved0;
  const tn_graph* graph;     /* to read types and attributes, for the call alone */
  uint64_t n_nodes;
  const tn_node_id* nodes;   /* in the order in which the pattern names them, each once */
  uint64_t n_inputs;
  const tn_value_id* inputs; /* by the pattern's names of values, in order, each once: what run gets */
  tn_value_id output;        /* of the first node */
} tn_kernel_site;

typedef struct tn_kernel {
  uint32_t struct_size;
  uint32_t revision;
  /* The pattern, by abi/pattern.md: "Relu(Add(Mul(x, #scale), #shift))". [any] */
  tn_status*(TN_CALL* pattern)(void*, const tn_sink*);
  /* Success: it runs this site. Errors: TN_UNIMPLEMENTED, with the reason: not this one, which the backends
   * get then. [any] */
  tn_status*(TN_CALL* claim)(void*, const tn_kernel_site*);
  /* What run needs to know of a site that it has claimed; out_exe: the caller's until exe_free. Inputs
   * that are constants have their values here already. [any] */
  tn_status*(TN_CALL* compile)(void*, const tn_kernel_site*, void** out_exe);
  /* in: the site's inputs; out: memory for its output, of the type and shape that the site says. Dense,
   * row-major, the caller's; out overlaps no input. The result depends on no number of threads. [any] */
  tn_status*(TN_CALL* run)(void*, void* exe, const DLTensor* const* in, uint64_t n_in, DLTensor* out,
                           const tn_cancel* TN_NULLABLE);
  void(TN_CALL* exe_free)(void*, void* exe); /* [any] */
  /* Adds inputs and the nodes of one random site that it claims, whose inputs may hold any values of
   * their type in [-2, 2]; another one for another seed. out: the site's output. [any] */
  tn_status*(TN_CALL* sample)(void*, tn_edit*, uint64_t seed, tn_value_id* out);
} tn_kernel;

#ifdef __cplusplus
}
#endif
#endif
