/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.reader/1": a file becomes a graph. */
#ifndef TENON_ROLE_READER_H
#define TENON_ROLE_READER_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_reader {
  uint32_t struct_size;
  uint32_t revision;
  /* 0: not its format .. 100: surely its format, by the first bytes (up to 4 KiB) and the name. [any] */
  int32_t(TN_CALL* probe)(void*, tn_bytes head, tn_str name);
  /* `into` is empty. Weights are mapped, not copied, where the file allows. Errors: any; TN_DATA_LOSS: a
   * broken file; TN_UNIMPLEMENTED: a feature of the format that it does not read; TN_CANCELLED. [serial] */
  tn_status*(TN_CALL* read)(void*, tn_blob*, tn_graph* into, const tn_cancel* TN_NULLABLE);
} tn_reader;

#ifdef __cplusplus
}
#endif
#endif
