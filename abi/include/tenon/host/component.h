/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.component/1": components of any plugin by role and id. A quantizer uses any
 * plugin's observer, the reader of any plugin's format. Naming an id loads the plugin that brings it. */
#ifndef TENON_HOST_COMPONENT_H
#define TENON_HOST_COMPONENT_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_component {
  uint32_t struct_size;
  uint32_t revision;
  /* Checks options against the schema and fills in defaults. out: the caller's until release. Errors:
   * any of the component's; TN_NOT_FOUND: no plugin brings it; TN_INVALID_ARGUMENT: an option;
   * TN_FAILED_PRECONDITION: its plugin cannot be used, or it is a draft and drafts are off. [any] */
  tn_status*(TN_CALL* create)(tn_ctx*, tn_str role, tn_str id, const tn_options* TN_NULLABLE,
                              tn_component_ref** out);
  /* The component's table for its role or an optional interface, NULL when absent. out_self goes
   * into the table's functions. Both live as long as the reference. The host serializes calls of
   * [serial] functions, unless the component's flags say TN_COMP_REENTRANT or it is lent. [any] */
  const void*(TN_CALL* get_interface)(tn_component_ref*, tn_str id, void** out_self);
  tn_str(TN_CALL* id)(const tn_component_ref*);       /* borrowed, until release. [any] */
  tn_str(TN_CALL* role)(const tn_component_ref*);     /* borrowed, until release. [any] */
  void(TN_CALL* retain)(tn_component_ref*);           /* [any] */
  void(TN_CALL* release)(tn_component_ref*);          /* [any] */
  /* Known components, loaded or not, as a JSON array of {role, id, version, summary, plugin,
   * schema}; role empty: all. Errors: any of the sink's; TN_UNIMPLEMENTED: a host without lists. [any] */
  tn_status*(TN_CALL* list)(tn_ctx*, tn_str role, const tn_sink*);
  /* The id of the component of this role whose schema's "extensions" match the file's name. Errors: any
   * of the sink's; TN_NOT_FOUND: none matches. [any] */
  tn_status*(TN_CALL* for_file)(tn_ctx*, tn_str role, tn_str path, const tn_sink* id);
  /* A component that no plugin brings: a script's function as schedule, a program's own data set.
   * `table` is that of the role, and self goes into its functions; both live until destroy, which is
   * called after the last release, on any thread. Its [serial] calls are the caller's to order: a
   * lock here and one of the lender's (that of an interpreter) could wait for each other. Errors:
   * TN_FAILED_PRECONDITION: a function of the table is missing, its size is wrong, or no such role. [any] */
  tn_status*(TN_CALL* lend)(tn_ctx*, tn_str role, tn_str id, const void* table,
                            void* TN_NULLABLE self, void(TN_CALL* TN_NULLABLE destroy)(void* self),
                            tn_component_ref** out);
  /* TN_COMP_* as its plugin declares them; 0 for a lent one. [any] */
  uint32_t(TN_CALL* flags)(const tn_component_ref*);
} tn_host_component;

#ifdef __cplusplus
}
#endif
#endif
