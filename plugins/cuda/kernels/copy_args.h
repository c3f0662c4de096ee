/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels that move elements: one struct for the device and for who launches. */
#ifndef TENON_CUDA_COPY_ARGS_H
#define TENON_CUDA_COPY_ARGS_H

#define TN_COPY_RANK 8

/* The innermost axis first; strides in elements. */
struct CopyArgs {
  const void* from;
  void* to;
  unsigned long long count;
  unsigned long long rank;
  unsigned long long dims[TN_COPY_RANK];
  long long from_strides[TN_COPY_RANK];
  long long to_strides[TN_COPY_RANK];
};

/* to[o][j][i] = from[o][indices[j]][i], i over `inner` units of the kernel's size. */
struct GatherArgs {
  const void* from;
  const void* indices;
  void* to;
  unsigned* fault;
  unsigned long long outer, n_indices, inner, extent;
  unsigned index_bytes; /* 4 or 8 */
  unsigned fault_number;
};

/* to[place of indices[j]] = or += from[j], places being slices of `inner` units. An index has one
 * number for each of the first `depth` axes. */
struct ScatterArgs {
  const void* from;
  const void* indices;
  void* to;
  unsigned* fault;
  unsigned long long n_indices, inner;
  unsigned long long extents[TN_COPY_RANK];
  unsigned long long strides[TN_COPY_RANK]; /* in slices */
  unsigned depth, index_bytes;
  unsigned fault_number, reserved;
};

#endif
