/* SPDX-License-Identifier: Apache-2.0
 * Role "tenon.importance/1": says how much each channel of a model matters. What matters least is
 * pruned first. The same function scores single weights: each is then a channel of its own.
 * Its member ACTIVATION holds one value a weight: the norm of what it multiplies, over the batch.
 * A dependency group is a set of channels that can only be removed together, in all tensors that
 * they pass through. Each such tensor is a member of the group. Its elements are
 * data[outer][extent][inner], dense; entry e of the middle axis belongs to channel
 * channel[e], or to none when that is negative, or to e itself when `channel` is NULL. One loop
 * serves all:
 *   for (o < outer) for (e < extent) for (i < inner)
 *     c = channel ? channel[e] : e;  if (c >= 0) use c and data[(o * extent + e) * inner + i] */
#ifndef TENON_ROLE_IMPORTANCE_H
#define TENON_ROLE_IMPORTANCE_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TN_MEMBER_MAKES 0u      /* a weight whose entries make the channels: filters, rows */
#define TN_MEMBER_READS 1u      /* a weight that reads the channels in a following layer */
#define TN_MEMBER_VECTOR 2u     /* an entry per channel: bias, normalization scale, slope */
#define TN_MEMBER_ACTIVATION 3u /* the values themselves, of one batch; outer holds the samples */

typedef struct tn_group_member {
  uint32_t struct_size;
  uint32_t kind; /* TN_MEMBER_*; leave out kinds that you do not know */
  tn_str node;   /* the node that reads it, or for activations makes it: for messages */
  tn_str op;     /* that node's operator type */
  tn_str value;  /* the name of the tensor */
  uint64_t outer;
  uint64_t extent;
  uint64_t inner;
  const float* data;      /* [outer][extent][inner] */
  const float* TN_NULLABLE gradient;  /* of the loss by data, of one batch; NULL when it was not asked for */
  const int64_t* TN_NULLABLE channel; /* [extent], or NULL: the channel is the entry's own number */
} tn_group_member;

typedef struct tn_channel_group {
  uint32_t struct_size;
  uint32_t reserved0;
  tn_str name;    /* of the first tensor with these channels */
  uint64_t index; /* of the group in the model: a stream number for random scores */
  uint64_t n_channels;
  uint64_t n_members; /* at least 1 */
  const tn_group_member* const* members;
} tn_channel_group;

#define TN_IMPORTANCE_GRADIENTS 1u   /* `gradient` is filled in */
#define TN_IMPORTANCE_ACTIVATIONS 2u /* there are members of kind ACTIVATION */

typedef struct tn_importance {
  uint32_t struct_size;
  uint32_t revision;
  /* What must be there beside weights: TN_IMPORTANCE_* or 0. Missing: weights are enough. Errors: any.
   * [any] */
  tn_status*(TN_CALL* TN_NULLABLE needs)(void*, uint32_t* out);
  /* Writes one finite score per channel, higher for what matters more; scores of several batches
   * are averaged by the caller. All that is given is borrowed for the call. Errors: any;
   * TN_FAILED_PRECONDITION: gradients or activations that it needs are not there. [serial] */
  tn_status*(TN_CALL* score)(void*, const tn_channel_group*, double* out_scores);
} tn_importance;

#ifdef __cplusplus
}
#endif
#endif
