/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.team/1": parallel regions on the threads that all plugins and sessions of a
 * process share, for libraries with parallel regions of their own (OpenMP's) and for kernels whose
 * work is partitioned when a plan is compiled. For a plain loop use "tenon.host.parallel/1".
 *
 * A region runs body(arg) once for each id 0..n-1: id 0 on the caller, the others on workers, or on
 * the caller where no worker has begun them, so no region waits for a thread that is not scheduled.
 * What an id computes may depend on the id and n alone. Calls inside of a region make regions of one
 * id. Everything here concerns the calling thread. All functions: [any]. */
#ifndef TENON_HOST_TEAM_H
#define TENON_HOST_TEAM_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_team {
  uint32_t struct_size;
  uint32_t revision;
  /* Regions of this thread have up to `threads` ids where they do not say, and their workers stay
   * at hand, until leave() is called with what this returned. Calls nest. 0 keeps the number. A
   * leave() without enter(), and an end() without begin(), do nothing. */
  uint64_t(TN_CALL* enter)(uint32_t threads);
  void(TN_CALL* leave)(uint64_t token);
  /* Whether ids of the next regions wait for each other by other ways than barrier(). Holds until
   * the enclosing leave(); without enter() they are taken to do. */
  void(TN_CALL* set_ids_meet)(int32_t ids_meet);
  /* 1 when each id of a region has a thread; a region whose ids meet needs it. */
  int32_t(TN_CALL* has_all_threads)(void);
  uint32_t(TN_CALL* max_threads)(void); /* ids of a region that does not say */

  /* A region in two halves: between them the caller runs body(arg) itself, as id 0. The body must
   * not throw. n 0: max_threads(). */
  void(TN_CALL* begin)(uint32_t n, void(TN_CALL* body)(void* arg), void* TN_NULLABLE arg);
  void(TN_CALL* end)(void);
  uint32_t(TN_CALL* id)(void);        /* of what runs here, 0 outside of regions */
  uint32_t(TN_CALL* size)(void);      /* ids of the region, 1 outside */
  int32_t(TN_CALL* is_inside)(void);  /* 1 in a region of several ids */
  void(TN_CALL* barrier)(void);       /* returns when all ids have called it */
} tn_host_team;

#ifdef __cplusplus
}
#endif
#endif
