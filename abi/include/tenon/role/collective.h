/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.collective/1": sums, copies and joins buffers among ranks: processes, or threads of one
 * process, that run the same program on shares of the data. A component is one rank of one group; an
 * implementation whose ranks are threads has the options "group" (a name), "rank" and "ranks", one
 * whose ranks are processes asks its launcher. Draft: until MPI and NCCL have used it.
 *
 * Ranks call the same functions in the same order, with the same tag and buffers of one type and shape. A
 * call returns when its result is there, so it waits for the slowest rank. Buffers are dense, row-major
 * CPU memory of the caller, borrowed for the call, and do not overlap. Results of all_reduce are the
 * same bits on all ranks.
 * Errors of all functions: any; TN_INVALID_ARGUMENT: a type it does not take, a rank that there is not;
 * TN_FAILED_PRECONDITION: another rank calls another function, or with another tag, type or shape;
 * TN_UNAVAILABLE: a rank has left or failed; TN_CANCELLED: it was, here or on another rank. After any
 * of these the group is broken, and later calls of all its ranks fail. */
#ifndef TENON_ROLE_COLLECTIVE_H
#define TENON_ROLE_COLLECTIVE_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TN_REDUCE_SUM 0u
#define TN_REDUCE_MEAN 1u /* of floating point */
#define TN_REDUCE_MIN 2u
#define TN_REDUCE_MAX 3u

typedef struct tn_collective {
  uint32_t struct_size;
  uint32_t revision;
  /* This rank, from 0, and how many there are. [any] */
  tn_status*(TN_CALL* rank)(void*, uint32_t* out_rank, uint32_t* out_ranks);
  /* out, of the type and shape of in: element by element over all ranks, by TN_REDUCE_*. [serial] */
  tn_status*(TN_CALL* all_reduce)(void*, tn_str tag, uint32_t how, const DLTensor* in, DLTensor* out,
                                  const tn_cancel* TN_NULLABLE);
  /* What buffer holds on rank `root`, on all ranks. [serial] */
  tn_status*(TN_CALL* broadcast)(void*, tn_str tag, uint32_t root, DLTensor* buffer,
                                 const tn_cancel* TN_NULLABLE);
  /* out: [ranks, shape of in]: each rank's in, in order of the ranks. [serial] */
  tn_status*(TN_CALL* all_gather)(void*, tn_str tag, const DLTensor* in, DLTensor* out,
                                  const tn_cancel* TN_NULLABLE);
} tn_collective;

#ifdef __cplusplus
}
#endif
#endif
