/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.arena/1": offsets in one arena for blocks of memory that each live from one step
 * to another, so that blocks alive at the same time do not overlap. The host's plans and the SDK's backend kit both use it.
 * All functions: [pure]. */
#ifndef TENON_HOST_ARENA_H
#define TENON_HOST_ARENA_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_arena_block { /* FROZEN */
  uint64_t bytes;
  uint64_t first, last; /* steps, both included; first > last: no step uses it, and it takes no room */
  uint64_t offset;      /* the answer, in bytes */
} tn_arena_block;

typedef struct tn_arena_size { /* FROZEN */
  uint64_t bytes;       /* of the whole arena */
  uint64_t lower_bound; /* the most bytes alive at once: no arrangement takes less */
  uint64_t peak_step;   /* the first step at which so many are alive; 0 where there are none */
} tn_arena_size;

typedef struct tn_host_arena {
  uint32_t struct_size;
  uint32_t revision;
  /* Fills in the offsets, multiples of `align` bytes (a power of two), and the sizes. The same blocks
   * get the same offsets. Errors: TN_INVALID_ARGUMENT: align is no power of two;
   * TN_RESOURCE_EXHAUSTED: more than 2^63 bytes in all. */
  tn_status*(TN_CALL* place)(tn_arena_block* blocks, uint64_t n, uint64_t align,
                             tn_arena_size* out_size);
} tn_host_arena;

#ifdef __cplusplus
}
#endif
#endif
