/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.pass/1": changes a graph. The host runs it on a clone, so a pass that fails halfway
 * has changed nothing that its caller sees. */
#ifndef TENON_ROLE_PASS_H
#define TENON_ROLE_PASS_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_pass {
  uint32_t struct_size;
  uint32_t revision;
  /* report: one JSON object of what was done and what was not, and why; may be written empty. The graph
   * is borrowed, and no edit of it may be left open. Errors: any; TN_CANCELLED when it was. [serial] */
  tn_status*(TN_CALL* run)(void*, tn_graph*, const tn_cancel* TN_NULLABLE, const tn_sink* report);
} tn_pass;

#ifdef __cplusplus
}
#endif
#endif
