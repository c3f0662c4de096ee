/* SPDX-License-Identifier: Apache-2.0
 * Service "tenon.host.tensor/1": memory with a shape. Quantized meaning lives in QuantizeLinear and
 * DequantizeLinear nodes, never in a tensor. Tensors that come out are the caller's until release. A
 * tensor that cannot be is TN_INVALID_ARGUMENT (an unknown type, a negative size, data that is NULL) or
 * TN_OUT_OF_RANGE (sizes or strides that do not fit in 63 bits). All functions: [any]. */
#ifndef TENON_HOST_TENSOR_H
#define TENON_HOST_TENSOR_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_host_tensor {
  uint32_t struct_size;
  uint32_t revision;
  /* Borrows: no allocation, no synchronisation. shape and strides live with the tensor. Errors: none of
   * its own. */
  tn_status*(TN_CALL* view)(const tn_tensor*, DLTensor* out);
  /* Zeroed, dense, 64-byte aligned CPU memory of proto's type and shape (its data is ignored). Errors:
   * TN_OUT_OF_RANGE; TN_RESOURCE_EXHAUSTED: no memory. */
  tn_status*(TN_CALL* alloc)(tn_ctx*, const DLTensor* proto, tn_tensor** out);
  /* A dense copy of a CPU tensor of any strides. Errors: as alloc; TN_UNIMPLEMENTED: memory that is not
   * the CPU's, or strides of types under 8 bits. */
  tn_status*(TN_CALL* copy)(tn_ctx*, const DLTensor* src, tn_tensor** out);
  /* Takes over the managed tensor only on success; checks version, type, strides, sizes. Errors:
   * TN_INVALID_ARGUMENT: another DLPack version; TN_OUT_OF_RANGE; TN_UNIMPLEMENTED: padded elements under
   * 8 bits, or strides of them. */
  tn_status*(TN_CALL* from_dlpack)(tn_ctx*, struct DLManagedTensorVersioned*, tn_tensor** out);
  /* Shares memory; the result keeps the tensor alive until its deleter is called. Errors: none of its
   * own. */
  tn_status*(TN_CALL* to_dlpack)(tn_tensor*, struct DLManagedTensorVersioned** out);
  /* A read-only window of a mapped file: proto's bytes at offset (in bytes). Keeps the blob alive. Errors:
   * TN_OUT_OF_RANGE: also where the file is shorter. */
  tn_status*(TN_CALL* from_blob)(tn_ctx*, tn_blob*, uint64_t offset, const DLTensor* proto,
                                 tn_tensor** out);
  uint64_t(TN_CALL* bytes)(const tn_tensor*); /* of its elements, packed types rounded up */
  void(TN_CALL* retain)(tn_tensor*);
  void(TN_CALL* release)(tn_tensor*); /* [finish] too */
  /* The caller has read the elements and will not soon again: pages of a mapped file go, and are read anew
   * for the next reader. From a backend's compile it means never again: a constant that a pass made for
   * that compile alone loses its memory and address. Elsewhere both stay, and other memory is kept. */
  void(TN_CALL* unneeded)(tn_tensor*);
  /* A number that no other tensor of this process ever has, also after this one is gone; not 0. */
  uint64_t(TN_CALL* identity)(const tn_tensor*);
  /* As alloc, but the bytes are whatever the memory held: for callers that write all of them, as a run
   * does with its results. Errors: as alloc. */
  tn_status*(TN_CALL* alloc_uninitialized)(tn_ctx*, const DLTensor* proto, tn_tensor** out);
} tn_host_tensor;

#ifdef __cplusplus
}
#endif
#endif
