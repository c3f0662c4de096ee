/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.memory/1": blocks that cross the boundary, counted per plugin; sizes and
 * alignments in bytes. Inside itself a plugin may use any allocator. All functions: [any]. */
#ifndef TENON_HOST_MEMORY_H
#define TENON_HOST_MEMORY_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_memory {
  uint32_t struct_size;
  uint32_t revision;
  /* align: a power of two, at least 8 bytes. NULL when there is no memory. tag: what it is for. The
   * block is the caller's until free, which gets the same numbers. */
  void*(TN_CALL* alloc)(tn_ctx*, uint64_t bytes, uint64_t align, tn_str tag);
  void(TN_CALL* free)(tn_ctx*, void* TN_NULLABLE, uint64_t bytes, uint64_t align);
} tn_host_memory;

#ifdef __cplusplus
}
#endif
#endif
