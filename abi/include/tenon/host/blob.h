/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.blob/1": files in, mapped, and files out, whole or not at all. */
#ifndef TENON_HOST_BLOB_H
#define TENON_HOST_BLOB_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_blob {
  uint32_t struct_size;
  uint32_t revision;
  tn_status*(TN_CALL* open)(tn_ctx*, tn_str path, tn_blob** out); /* [any] */
  uint64_t(TN_CALL* size)(const tn_blob*);                        /* [any] */
  tn_str(TN_CALL* path)(const tn_blob*);                          /* [any] */
  /* Read-only, valid until release; checks the range. [any] */
  tn_status*(TN_CALL* map)(tn_blob*, uint64_t offset, uint64_t bytes, const void** out);
  /* A file beside this one, by relative path; a path that leaves the folder is refused. [any] */
  tn_status*(TN_CALL* sibling)(tn_blob*, tn_str relative, tn_blob** out);
  void(TN_CALL* retain)(tn_blob*);  /* [any] */
  void(TN_CALL* release)(tn_blob*); /* [any] */

  /* Written beside the target, flushed and renamed at commit; nothing is left after abandon. */
  tn_status*(TN_CALL* create)(tn_ctx*, tn_str path, tn_target** out); /* [any] */
  tn_str(TN_CALL* target_path)(const tn_target*);                     /* [any] */
  /* Appends. sibling empty: to the file itself; else to a file beside it. [serial] */
  tn_status*(TN_CALL* write)(tn_target*, tn_str sibling, const void* data, uint64_t bytes);
  tn_status*(TN_CALL* commit)(tn_target*);  /* ends it either way. [serial] */
  void(TN_CALL* abandon)(tn_target*);       /* [serial] */
  /* This range will not be read soon: the system may take its memory back until then. [any] */
  void(TN_CALL* unneeded)(tn_blob*, uint64_t offset, uint64_t bytes);
} tn_host_blob;

#ifdef __cplusplus
}
#endif
#endif
