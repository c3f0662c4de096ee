/* SPDX-License-Identifier: Apache-2.0
 * The role of collectives for faulty_plugin.c: right, or wrong in one way. */
#if defined(COLLECTIVE)
#define ROLE "tenon.collective/1"
static size_t bytes_in(const DLTensor* t) {
  size_t n = (size_t)t->dtype.bits / 8;
  for (int32_t d = 0; d < t->ndim; ++d)
    n *= (size_t)t->shape[d];
  return n;
}
static tn_status* rank(void* self, uint32_t* out_rank, uint32_t* out_ranks) {
  (void)self;
#ifdef FAULT_RANK
  *out_rank = 1;
#else
  *out_rank = 0;
#endif
  *out_ranks = 1;
  return NULL;
}
static tn_status* all_reduce(void* self,
                             tn_str tag,
                             uint32_t how,
                             const DLTensor* in,
                             DLTensor* out,
                             const tn_cancel* cancel) {
  (void)self, (void)tag, (void)how, (void)cancel;
#ifndef FAULT_HOW
  if (how > TN_REDUCE_MAX) return failure("no such rule");
#endif
#ifndef FAULT_WHOLE
  if (how == TN_REDUCE_MEAN && in->dtype.code != kDLFloat && in->dtype.code != kDLBfloat)
    return failure("a mean of floating point alone");
#endif
#ifdef FAULT_TYPES
  return memcpy(out->data, in->data, (size_t)in->shape[0] * 4), (tn_status*)NULL;
#endif
  memcpy(out->data, in->data, bytes_in(in));
#ifdef FAULT_MEAN
  if (how == TN_REDUCE_MEAN) ((float*)out->data)[0] += 1;
#endif
  return NULL;
}
static tn_status* broadcast(
    void* self, tn_str tag, uint32_t root, DLTensor* buffer, const tn_cancel* cancel) {
  (void)self, (void)tag, (void)buffer, (void)cancel;
#ifdef FAULT_ROOT
  root = 0;
#endif
  return root ? failure("no such rank") : NULL;
}
static tn_status* all_gather(
    void* self, tn_str tag, const DLTensor* in, DLTensor* out, const tn_cancel* cancel) {
#ifdef FAULT_GATHER
  return (void)self, (void)tag, (void)in, (void)out, (void)cancel, (tn_status*)NULL;
#endif
  return all_reduce(self, tag, TN_REDUCE_SUM, in, out, cancel);
}
static const tn_collective table = {sizeof table, 1, rank, all_reduce, broadcast, all_gather};
#endif
