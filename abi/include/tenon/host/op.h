/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.op/1": the operator table. Rows come from loaded plugins. The two small
 * languages (abi/axes.md, abi/expr.md) are parsed once, by the host, and read here in parsed form. A
 * row lives as long as the host. All functions: [any]. */
#ifndef TENON_HOST_OP_H
#define TENON_HOST_OP_H
#include "tenon/axes.h"
#include "tenon/expr.h"
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

struct tn_op;
typedef struct tn_host_op {
  uint32_t struct_size;
  uint32_t revision;
  /* The newest version; NULL when no loaded plugin brings it. */
  const struct tn_op*(TN_CALL* find)(tn_ctx*, tn_str domain, tn_str type);
  /* The version that the graph imports; NULL as well when all are newer than that. */
  const struct tn_op*(TN_CALL* of)(const tn_graph*, tn_node_id);
  uint64_t(TN_CALL* count)(tn_ctx*);
  const struct tn_op*(TN_CALL* at)(tn_ctx*, uint64_t i); /* by domain, type, version */
  /* The row's expr bound to the node's attributes and type; lives as long as the host. Errors:
   * TN_NOT_FOUND: no row, or one without expr; TN_INVALID_ARGUMENT: a stale id, or the node's attributes
   * and types do not fit it. */
  tn_status*(TN_CALL* expr)(const tn_graph*, tn_node_id, const tn_expr_program** out);
  /* The row's axes; lives as long as the host. Errors: TN_NOT_FOUND: the row has none;
   * TN_INVALID_ARGUMENT: a row that the host has not given. */
  tn_status*(TN_CALL* axes)(const struct tn_op*, const tn_axes** out);
  /* Expands a composite node by its row's decompose or its function's body, within the edit. Errors: any
   * of the row's; TN_UNIMPLEMENTED: neither is there; TN_INVALID_ARGUMENT: a stale id. */
  tn_status*(TN_CALL* decompose)(tn_edit*, tn_node_id);
  /* What a program means, for n elements: the oracle of every other form of it (abi/expr.md). in: one
   * array of n elements for each input of the operator, NULL where the program does not read it; out: n
   * elements, which may be one of the inputs. Elements are double in the domain FLOAT, else int64_t,
   * wrapped to the program's bits and extended; in UINT they are the bits of uint64_t. Errors:
   * TN_INVALID_ARGUMENT: the program is malformed, or reads an input that is not there. */
  tn_status*(TN_CALL* evaluate)(const tn_expr_program*, const void* const TN_NULLABLE* in,
                                uint64_t n_in, uint64_t n, void* out);
} tn_host_op;

#ifdef __cplusplus
}
#endif
#endif
