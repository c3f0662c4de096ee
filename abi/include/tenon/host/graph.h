/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.graph/1": reading graphs. Nodes in SSA form over values; a value is an input, a
 * constant (it has a tensor) or the output of one node, and its name is unique in the graph. Bodies of
 * control-flow nodes are graphs in attributes, and closed: what ONNX captures by name are explicit
 * trailing inputs of the node and of each of its bodies, counted by the node's attribute "captures".
 * A graph may be read from many threads while nobody edits it. Unless said otherwise what is borrowed
 * lives until the graph's next commit. Queries with a stale id give TN_INVALID_ARGUMENT, or 0, or empty
 * text; an index beyond the end gives 0 or empty text. Graphs that come out are the caller's until
 * release, unless they are const. All functions: [any]. */
#ifndef TENON_HOST_GRAPH_H
#define TENON_HOST_GRAPH_H
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TN_LIST_INPUTS 0u
#define TN_LIST_OUTPUTS 1u
#define TN_LIST_STATES 2u /* pairs; side 0: the input, side 1: the output that becomes it */
#define TN_LIST_FUNCTIONS 3u
#define TN_LIST_NODES 4u     /* in topological order */
#define TN_LIST_CONSTANTS 5u /* in order of creation */

typedef struct tn_host_graph {
  uint32_t struct_size;
  uint32_t revision;
  tn_status*(TN_CALL* create)(tn_ctx*, tn_graph** out); /* empty. Errors: none of its own */
  /* Shares weights; ids stay valid. Errors: none of its own. */
  tn_status*(TN_CALL* clone)(const tn_graph*, tn_graph** out);
  void(TN_CALL* retain)(tn_graph*);
  void(TN_CALL* release)(tn_graph*);

  uint64_t(TN_CALL* count)(const tn_graph*, uint32_t which);
  tn_value_id(TN_CALL* value_at)(const tn_graph*, uint32_t which, uint64_t i, uint32_t side);
  tn_node_id(TN_CALL* node_at)(const tn_graph*, uint64_t topological_index);
  /* The name of input or output i in files and for callers; an output's may differ from its value's. */
  tn_str(TN_CALL* io_name)(const tn_graph*, uint32_t which, uint64_t i);
  tn_value_id(TN_CALL* find_value)(const tn_graph*, tn_str name); /* 0 when there is none */

  /* Errors: TN_INVALID_ARGUMENT: a stale id. */
  tn_status*(TN_CALL* node_op)(const tn_graph*, tn_node_id, tn_str* domain, tn_str* type);
  tn_str(TN_CALL* node_name)(const tn_graph*, tn_node_id);  /* for people; never empty */
  tn_str(TN_CALL* node_scope)(const tn_graph*, tn_node_id); /* "teacher/layer3" */
  uint64_t(TN_CALL* io_count)(const tn_graph*, tn_node_id, uint32_t which); /* inputs, outputs */
  /* 0: an optional input that is absent */
  tn_value_id(TN_CALL* io_at)(const tn_graph*, tn_node_id, uint32_t which, uint64_t i);
  uint64_t(TN_CALL* attr_count)(const tn_graph*, tn_node_id);
  tn_str(TN_CALL* attr_name)(const tn_graph*, tn_node_id, uint64_t i);
  /* The attribute, or the default that the operator's row states, or TN_ANY_NONE. Errors:
   * TN_INVALID_ARGUMENT: a stale id. */
  tn_status*(TN_CALL* attr)(const tn_graph*, tn_node_id, tn_str name, tn_any* out);

  /* Errors: TN_INVALID_ARGUMENT: a stale id, or NULL as an absent input has it; out is then unknown. */
  tn_status*(TN_CALL* value_type)(const tn_graph* TN_NULLABLE, tn_value_id, tn_type* out);
  tn_str(TN_CALL* value_name)(const tn_graph*, tn_value_id);
  tn_tensor*(TN_CALL* constant)(const tn_graph*, tn_value_id); /* borrowed; NULL: not a constant */
  tn_node_id(TN_CALL* producer)(const tn_graph*, tn_value_id,
                                 uint64_t* TN_NULLABLE out_index); /* 0: none */
  uint64_t(TN_CALL* consumer_count)(const tn_graph*, tn_value_id); /* uses by nodes */
  tn_node_id(TN_CALL* consumer_at)(const tn_graph*, tn_value_id, uint64_t i,
                                   uint64_t* TN_NULLABLE out_input);
  int32_t(TN_CALL* is_output)(const tn_graph*, tn_value_id); /* 1: also an output of the graph */

  /* A note on a node, a value, or (id 0) the graph. TN_ANY_NONE when absent. Errors:
   * TN_INVALID_ARGUMENT: a stale id. */
  tn_status*(TN_CALL* note)(const tn_graph*, uint64_t id, tn_str key, tn_any* out);
  uint64_t(TN_CALL* note_count)(const tn_graph*, uint64_t id);
  tn_str(TN_CALL* note_key)(const tn_graph*, uint64_t id, uint64_t i);
  /* Function i: the operator type that calls it, its body, and its own gradient graph or NULL. Errors:
   * TN_OUT_OF_RANGE: there are fewer. */
  tn_status*(TN_CALL* function_at)(const tn_graph*, uint64_t i, tn_str* domain, tn_str* type,
                                   const tn_graph** body, const tn_graph** vjp);

  /* Canonical text, byte-stable; large constants by hash unless TN_PRINT_DATA. Both give
   * TN_UNIMPLEMENTED in a host without the text form. Errors: any of the sink's; TN_UNIMPLEMENTED. */
  tn_status*(TN_CALL* print)(const tn_graph*, uint32_t flags, const tn_sink*);
  /* Errors: any of the rows'; TN_INVALID_ARGUMENT: no such text, with line and column; TN_UNIMPLEMENTED. */
  tn_status*(TN_CALL* parse)(tn_ctx*, tn_str text, tn_graph** out);

  /* A new graph with the inputs' types replaced (NULL keeps one) and all types inferred again. Errors:
   * any of the rows'; TN_INVALID_ARGUMENT: another number of inputs, or the types do not fit. */
  tn_status*(TN_CALL* bind)(const tn_graph*, const tn_type* const TN_NULLABLE* inputs, uint64_t n,
                            tn_graph** out);
  /* A new graph of just these nodes. Inputs: values that enter, constants excepted (they come
   * along); outputs: values used outside or by the graph's outputs. Value names are kept. Errors: any of
   * the rows'; TN_INVALID_ARGUMENT: a stale id. */
  tn_status*(TN_CALL* extract)(const tn_graph*, const tn_node_id* nodes, uint64_t n,
                               tn_graph** out);
  /* All verifier rules. Errors: TN_INVALID_ARGUMENT: the first violation, with rule, node and value. */
  tn_status*(TN_CALL* verify)(const tn_graph*);
  tn_ctx*(TN_CALL* context)(const tn_graph*); /* of the plugin or program that made it */
} tn_host_graph;
#define TN_PRINT_DATA 1u

#ifdef __cplusplus
}
#endif
#endif
