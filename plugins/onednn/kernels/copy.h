// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moving elements of 1, 2, 4 or 8 bytes between two strided layouts of up to 8 dimensions:
// Transpose, Concat, Split, Slice (also with negative steps: a pointer to the first element and a
// negative stride), Expand (src stride 0), layout changes. Neighbouring dimensions that both sides
// run through without a gap are merged; then rows are memcpy, or 2-d transposes in registers, or
// single elements. src and dst may not overlap. dst's elements must be distinct. No alignment is
// required.

#include "context.h"
#include "copy_args.h"

namespace tenon::onednn::kernels {

void strided_copy(const Context& context, const StridedCopy& copy);

// dst: [n, times], src: [n], of elements of 1, 2, 4 or 8 bytes, both dense.
void repeat_elements(const void* src, int64_t n, int64_t times, int64_t element_bytes, void* dst);

// square: [n, n] dense; what is above the diagonal is copied to below it.
void mirror_upper(const Context& context, void* square, int64_t element_bytes, int64_t n);

// rows of row_bytes each, pitches in bytes: one input of a Concat, one output of a Split.
void copy_rows(const Context& context,
               const void* src,
               int64_t src_pitch,
               void* dst,
               int64_t dst_pitch,
               int64_t row_bytes,
               int64_t rows);

}  // namespace tenon::onednn::kernels
