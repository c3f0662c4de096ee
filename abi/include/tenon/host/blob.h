/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.blob/1": files in, mapped, and files out, whole or not at all. Sizes and offsets
 * are in bytes. Errors of the file system: TN_NOT_FOUND, TN_PERMISSION_DENIED (also: read-only),
 * TN_RESOURCE_EXHAUSTED (disk full, quota) and TN_UNAVAILABLE (all others). */
#ifndef TENON_HOST_BLOB_H
#define TENON_HOST_BLOB_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_blob {
  uint32_t struct_size;
  uint32_t revision;
  /* Maps a regular file. Errors: those of the file system; TN_INVALID_ARGUMENT: no regular file. [any] */
  tn_status*(TN_CALL* open)(tn_ctx*, tn_str path, tn_blob** out);
  uint64_t(TN_CALL* size)(const tn_blob*);                        /* [any] */
  tn_str(TN_CALL* path)(const tn_blob*);                          /* borrowed, until release. [any] */
  /* Read-only, borrowed until release. Errors: TN_OUT_OF_RANGE: not inside of the file. [any] */
  tn_status*(TN_CALL* map)(tn_blob*, uint64_t offset, uint64_t bytes, const void** out);
  /* A file in the same folder or below it, by relative path. Errors: as open;
   * TN_PERMISSION_DENIED: the path leaves the folder. [any] */
  tn_status*(TN_CALL* sibling)(tn_blob*, tn_str relative, tn_blob** out);
  void(TN_CALL* retain)(tn_blob*);  /* [any] */
  void(TN_CALL* release)(tn_blob*); /* [any] */

  /* Written to a temporary file in the same folder, flushed and renamed at commit; nothing is left
   * after abandon. out: the caller's until commit or abandon. Errors: those of the file system;
   * TN_INVALID_ARGUMENT: the path is that of something else than a file. [any] */
  tn_status*(TN_CALL* create)(tn_ctx*, tn_str path, tn_target** out);
  tn_str(TN_CALL* target_path)(const tn_target*); /* borrowed, until commit or abandon. [any] */
  /* Appends. sibling empty: to the file itself; else to another file of its folder. Errors: as create
   * and sibling; TN_FAILED_PRECONDITION: a write has failed before. [serial] */
  tn_status*(TN_CALL* write)(tn_target*, tn_str sibling, const void* data, uint64_t bytes);
  /* Ends it either way. Errors: those of the file system; TN_FAILED_PRECONDITION: a write has failed.
   * [serial] */
  tn_status*(TN_CALL* commit)(tn_target*);
  void(TN_CALL* abandon)(tn_target*);       /* [serial] */
  /* This range will not be read soon: the system may take its memory back until then. [any] */
  void(TN_CALL* unneeded)(tn_blob*, uint64_t offset, uint64_t bytes);
} tn_host_blob;

#ifdef __cplusplus
}
#endif
#endif
