/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.random/1": a counter-based generator (Philox4x32-10, Salmon et al., SC 2011):
 * the same (seed, stream, counter) gives the same numbers everywhere. All functions: [any]. */
#ifndef TENON_HOST_RANDOM_H
#define TENON_HOST_RANDOM_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_random {
  uint32_t struct_size;
  uint32_t revision;
  /* Elements first..first+n of the stream: 32 random bits each; uniform in [0, 1); of mean 0, variance 1. */
  void(TN_CALL* bits)(uint64_t seed, uint64_t stream, uint64_t first, uint32_t* out, uint64_t n);
  void(TN_CALL* uniform)(uint64_t seed, uint64_t stream, uint64_t first, double* out,
                         uint64_t n); /* in [0, 1) */
  void(TN_CALL* normal)(uint64_t seed, uint64_t stream, uint64_t first, double* out, uint64_t n);
} tn_host_random;

#ifdef __cplusplus
}
#endif
#endif
