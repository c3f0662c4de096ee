/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.writer/1": a graph becomes a file. The host commits the target. Errors of all functions: any, and the host
 * abandons it; TN_UNIMPLEMENTED: the format cannot express a node. */
#ifndef TENON_ROLE_WRITER_H
#define TENON_ROLE_WRITER_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_writer {
  uint32_t struct_size;
  uint32_t revision;
  tn_status*(TN_CALL* write)(void*, const tn_graph*, tn_target*,
                             const tn_cancel* TN_NULLABLE); /* [serial] */
} tn_writer;

#ifdef __cplusplus
}
#endif
#endif
