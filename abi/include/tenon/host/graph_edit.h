/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.graph_edit/1": changing graphs. All changes happen in a transaction: commit
 * verifies the whole and, when it fails, the graph is as it was before begin. One edit of a graph at a
 * time. Reading through graph(edit) sees the changes made so far. A stale id is TN_INVALID_ARGUMENT.
 * All functions: [serial] per edit. */
#ifndef TENON_HOST_GRAPH_EDIT_H
#define TENON_HOST_GRAPH_EDIT_H
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_node_desc { /* what add_node makes; all borrowed for the call */
  uint32_t struct_size;
  uint32_t reserved0;
  tn_str domain; /* "" is ONNX's own */
  tn_str type;
  tn_str name;  /* empty: made from the type; made unique */
  tn_str scope; /* empty: that of the edit's default scope */
  const tn_value_id* inputs; /* 0: absent optional input */
  uint64_t n_inputs;
  uint64_t n_outputs;
  const tn_str* attr_names;
  const tn_any* attr_values;
  uint64_t n_attrs;
  const tn_str* TN_NULLABLE output_names; /* [n_outputs] or NULL: made from the node's name; made unique */
} tn_node_desc;

typedef struct tn_host_graph_edit {
  uint32_t struct_size;
  uint32_t revision;
  /* out: the caller's until commit or rollback. Errors: TN_FAILED_PRECONDITION: the graph is being
   * edited, or is read-only; TN_RESOURCE_EXHAUSTED: it was edited 2^31 - 2 times. */
  tn_status*(TN_CALL* begin)(tn_graph*, tn_edit** out);
  const tn_graph*(TN_CALL* graph)(tn_edit*); /* borrowed, until the edit ends */
  tn_ctx*(TN_CALL* context)(tn_edit*); /* borrowed: of the plugin or program that began it */

  /* Errors: TN_ALREADY_EXISTS: the name; TN_INVALID_ARGUMENT: the name is empty, the type malformed. */
  tn_status*(TN_CALL* add_input)(tn_edit*, tn_str name, const tn_type*, tn_value_id* out);
  /* Errors: TN_OUT_OF_RANGE; TN_FAILED_PRECONDITION: it is used. */
  tn_status*(TN_CALL* remove_input)(tn_edit*, uint64_t i);
  /* name empty: the value's. Errors: TN_ALREADY_EXISTS: the name; TN_INVALID_ARGUMENT: a stale id. */
  tn_status*(TN_CALL* add_output)(tn_edit*, tn_str name, tn_value_id);
  /* Errors: TN_OUT_OF_RANGE; TN_INVALID_ARGUMENT: a stale id. */
  tn_status*(TN_CALL* set_output)(tn_edit*, uint64_t i, tn_value_id);
  tn_status*(TN_CALL* remove_output)(tn_edit*, uint64_t i); /* Errors: TN_OUT_OF_RANGE. */
  /* Errors: TN_ALREADY_EXISTS: the input is of a pair; TN_INVALID_ARGUMENT: no input, or no output. */
  tn_status*(TN_CALL* pair_state)(tn_edit*, tn_value_id input, tn_value_id output);
  /* Constants that nothing uses are dropped at commit. The tensor is retained and must not be written to
   * from then on; one that is not dense is copied. Errors: TN_UNIMPLEMENTED: it is not dense, and not in
   * CPU memory. */
  tn_status*(TN_CALL* add_constant)(tn_edit*, tn_str name, tn_tensor*, tn_value_id* out);

  /* Types of the outputs are inferred at once by the operator's row; a refusal by the row is
   * returned and nothing was added. Operators without a row are allowed: their types stay unknown.
   * Order does not matter: commit sorts. out_outputs: [n_outputs]. Errors: any of the row's;
   * TN_INVALID_ARGUMENT: a stale id, an attribute, types that the row does not take. */
  tn_status*(TN_CALL* add_node)(tn_edit*, const tn_node_desc*, tn_node_id* TN_NULLABLE out,
                                tn_value_id* TN_NULLABLE out_outputs);
  /* Its outputs must be unused at commit. Errors: TN_INVALID_ARGUMENT: a stale id. */
  tn_status*(TN_CALL* erase_node)(tn_edit*, tn_node_id);
  /* i may be one beyond the last. Errors: TN_OUT_OF_RANGE; TN_INVALID_ARGUMENT: a stale id. */
  tn_status*(TN_CALL* set_input)(tn_edit*, tn_node_id, uint64_t i, tn_value_id);
  /* TN_ANY_NONE removes; tensors as in add_constant. Errors: TN_INVALID_ARGUMENT: a stale id, no name,
   * another type than the row's. */
  tn_status*(TN_CALL* set_attr)(tn_edit*, tn_node_id, tn_str name, tn_any);

  /* Errors of these: TN_INVALID_ARGUMENT: a stale id, no name; TN_ALREADY_EXISTS: the name. */
  tn_status*(TN_CALL* set_node_name)(tn_edit*, tn_node_id, tn_str);
  tn_status*(TN_CALL* set_scope)(tn_edit*, tn_node_id, tn_str);
  tn_status*(TN_CALL* set_value_name)(tn_edit*, tn_value_id, tn_str);

  /* For shape columns and readers. After set_input or set_attr types are inferred at commit. Errors:
   * TN_INVALID_ARGUMENT: a stale id, a malformed type; TN_FAILED_PRECONDITION: within a shape column,
   * a value that is no output of its node. */
  tn_status*(TN_CALL* set_type)(tn_edit*, tn_value_id, const tn_type*);
  /* Now, this one node. Errors: any of the row's; TN_FAILED_PRECONDITION: within a shape column. */
  tn_status*(TN_CALL* infer)(tn_edit*, tn_node_id);
  /* Uses by nodes, outputs of the graph and state pairs. Errors: TN_INVALID_ARGUMENT: a stale id, or
   * types that differ. */
  tn_status*(TN_CALL* replace_uses)(tn_edit*, tn_value_id from, tn_value_id to);
  /* id: a node, a value, or 0 for the graph. TN_ANY_NONE removes. Errors: TN_INVALID_ARGUMENT: a stale
   * id, no key. */
  tn_status*(TN_CALL* set_note)(tn_edit*, uint64_t id, tn_str key, tn_any);

  /* Copies another graph's nodes in. map: n_pairs of (theirs, ours); every input of `from` must be
   * given, outputs with ours == 0 are filled in. Clashing names are made unique. scope: put in
   * front of the scopes of the copies. Errors: any of the rows'; TN_INVALID_ARGUMENT: a stale id, an
   * input that is not given, another opset; TN_ALREADY_EXISTS: both have a function, and they differ. */
  tn_status*(TN_CALL* splice)(tn_edit*, const tn_graph* from, tn_str scope, tn_value_id* map,
                              uint64_t n_pairs);
  /* An operator that is a graph, and optionally its gradient as a graph of its own (custom vjp). Both
   * are copied. Errors: TN_ALREADY_EXISTS: the operator; TN_INVALID_ARGUMENT: no type. */
  tn_status*(TN_CALL* add_function)(tn_edit*, tn_str domain, tn_str type, const tn_graph* body,
                                    const tn_graph* TN_NULLABLE vjp);
  /* Ends the edit either way. Verifies; on error nothing has changed. Errors: any of the rows';
   * TN_INVALID_ARGUMENT: a rule of the verifier; TN_FAILED_PRECONDITION: within a shape column. */
  tn_status*(TN_CALL* commit)(tn_edit*);
  void(TN_CALL* rollback)(tn_edit*);
} tn_host_graph_edit;

#ifdef __cplusplus
}
#endif
#endif
