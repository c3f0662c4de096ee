/* SPDX-License-Identifier: Apache-2.0
 * DLPack 1.3's structs, declared here so that a plugin needs no other header. The layout is the
 * standard (github.com/dmlc/dlpack); a test compares it with the real dlpack.h. Where that header
 * was included first, its declarations serve.
 * Reminders of the standard: a deleter may run on any thread; shape and strides are never NULL
 * for ndim > 0 in what Tenon hands out; strides count elements; data + byte_offset is the first
 * element; no alignment is promised; types under 8 bits are packed, first element in low bits. */
#ifndef TENON_DLPACK_H
#define TENON_DLPACK_H
#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
#ifdef __cplusplus
extern "C" {
#endif

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

typedef struct { /* FROZEN */
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

/* An int in the standard; int32_t has the same layout on every platform that we serve. */
typedef int32_t DLDeviceType;
#define kDLCPU 1
#define kDLCUDA 2
#define kDLCUDAHost 3
#define kDLExtDev 12

typedef struct { /* FROZEN */
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

#define kDLInt 0u
#define kDLUInt 1u
#define kDLFloat 2u
#define kDLBfloat 4u
#define kDLComplex 5u
#define kDLBool 6u
#define kDLFloat8_e4m3fn 10u
#define kDLFloat8_e4m3fnuz 11u
#define kDLFloat8_e5m2 12u
#define kDLFloat8_e5m2fnuz 13u
#define kDLFloat8_e8m0fnu 14u
#define kDLFloat4_e2m1fn 17u

typedef struct { /* FROZEN, 4 bytes by the standard */
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct { /* FROZEN */
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensorVersioned { /* FROZEN */
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self); /* [any] */
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif
#endif /* DLPACK_DLPACK_H_ */

/* A DLDataType of one lane as one number, as types and attributes carry it. */
#define TN_DTYPE(code, bits) ((uint32_t)(code) | (uint32_t)(bits) << 8 | 1u << 16)
#define TN_DTYPE_CODE(dtype) ((dtype)&0xffu)
#define TN_DTYPE_BITS(dtype) ((dtype) >> 8 & 0xffu)
#define TN_DTYPE_NONE 0u /* not known yet */
#define TN_BOOL TN_DTYPE(kDLBool, 8)
#define TN_I4 TN_DTYPE(kDLInt, 4)
#define TN_I8 TN_DTYPE(kDLInt, 8)
#define TN_I16 TN_DTYPE(kDLInt, 16)
#define TN_I32 TN_DTYPE(kDLInt, 32)
#define TN_I64 TN_DTYPE(kDLInt, 64)
#define TN_U4 TN_DTYPE(kDLUInt, 4)
#define TN_U8 TN_DTYPE(kDLUInt, 8)
#define TN_U16 TN_DTYPE(kDLUInt, 16)
#define TN_U32 TN_DTYPE(kDLUInt, 32)
#define TN_U64 TN_DTYPE(kDLUInt, 64)
#define TN_F16 TN_DTYPE(kDLFloat, 16)
#define TN_F32 TN_DTYPE(kDLFloat, 32)
#define TN_F64 TN_DTYPE(kDLFloat, 64)
#define TN_BF16 TN_DTYPE(kDLBfloat, 16)
#endif
