// SPDX-License-Identifier: Apache-2.0
// Our declarations of DLPack's structs against the real header, both in one translation unit.
#include <gtest/gtest.h>
#include <stddef.h>
#include <stdint.h>

namespace real {
#include <dlpack/dlpack.h>
constexpr int64_t kDevices[] = {kDLCPU, kDLCUDA, kDLCUDAHost, kDLExtDev};
constexpr int64_t kCodes[] = {kDLInt,
                              kDLUInt,
                              kDLFloat,
                              kDLBfloat,
                              kDLComplex,
                              kDLBool,
                              kDLFloat8_e4m3fn,
                              kDLFloat8_e4m3fnuz,
                              kDLFloat8_e5m2,
                              kDLFloat8_e5m2fnuz,
                              kDLFloat8_e8m0fnu,
                              kDLFloat4_e2m1fn};
constexpr uint64_t kFlags[] = {DLPACK_FLAG_BITMASK_READ_ONLY, DLPACK_FLAG_BITMASK_IS_COPIED,
                               DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED};
constexpr int kMajor = DLPACK_MAJOR_VERSION;
}  // namespace real

#undef DLPACK_DLPACK_H_
#undef DLPACK_MAJOR_VERSION
#undef DLPACK_MINOR_VERSION
#undef DLPACK_FLAG_BITMASK_READ_ONLY
#undef DLPACK_FLAG_BITMASK_IS_COPIED
#undef DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED
namespace ours {
#include "tenon/dlpack.h"
constexpr int64_t kDevices[] = {kDLCPU, kDLCUDA, kDLCUDAHost, kDLExtDev};
constexpr int64_t kCodes[] = {kDLInt,
                              kDLUInt,
                              kDLFloat,
                              kDLBfloat,
                              kDLComplex,
                              kDLBool,
                              kDLFloat8_e4m3fn,
                              kDLFloat8_e4m3fnuz,
                              kDLFloat8_e5m2,
                              kDLFloat8_e5m2fnuz,
                              kDLFloat8_e8m0fnu,
                              kDLFloat4_e2m1fn};
constexpr uint64_t kFlags[] = {DLPACK_FLAG_BITMASK_READ_ONLY, DLPACK_FLAG_BITMASK_IS_COPIED,
                               DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED};
constexpr int kMajor = DLPACK_MAJOR_VERSION;
}  // namespace ours

#define SAME_FIELD(type, field)                                                            \
  EXPECT_EQ(offsetof(real::type, field), offsetof(ours::type, field)) << #type "." #field; \
  EXPECT_EQ(sizeof(real::type::field), sizeof(ours::type::field)) << #type "." #field

TEST(DlPack, PlainStructsHaveTheStandardLayout) {
  EXPECT_EQ(sizeof(real::DLPackVersion), sizeof(ours::DLPackVersion));
  SAME_FIELD(DLPackVersion, major);
  SAME_FIELD(DLPackVersion, minor);
  EXPECT_EQ(sizeof(real::DLDevice), sizeof(ours::DLDevice));
  SAME_FIELD(DLDevice, device_type);
  SAME_FIELD(DLDevice, device_id);
  EXPECT_EQ(sizeof(real::DLDataType), sizeof(ours::DLDataType));
  SAME_FIELD(DLDataType, code);
  SAME_FIELD(DLDataType, bits);
  SAME_FIELD(DLDataType, lanes);
}

TEST(DlPack, TensorsHaveTheStandardLayout) {
  EXPECT_EQ(sizeof(real::DLTensor), sizeof(ours::DLTensor));
  SAME_FIELD(DLTensor, data);
  SAME_FIELD(DLTensor, device);
  SAME_FIELD(DLTensor, ndim);
  SAME_FIELD(DLTensor, dtype);
  SAME_FIELD(DLTensor, shape);
  SAME_FIELD(DLTensor, strides);
  SAME_FIELD(DLTensor, byte_offset);
  EXPECT_EQ(sizeof(real::DLManagedTensorVersioned), sizeof(ours::DLManagedTensorVersioned));
  SAME_FIELD(DLManagedTensorVersioned, version);
  SAME_FIELD(DLManagedTensorVersioned, manager_ctx);
  SAME_FIELD(DLManagedTensorVersioned, deleter);
  SAME_FIELD(DLManagedTensorVersioned, flags);
  SAME_FIELD(DLManagedTensorVersioned, dl_tensor);
}

TEST(DlPack, ConstantsHaveTheStandardValues) {
  EXPECT_EQ(real::kMajor, ours::kMajor);
  for (size_t i = 0; i < std::size(real::kDevices); ++i) {
    EXPECT_EQ(real::kDevices[i], ours::kDevices[i]) << "device " << i;
  }
  for (size_t i = 0; i < std::size(real::kCodes); ++i) {
    EXPECT_EQ(real::kCodes[i], ours::kCodes[i]) << "type code " << i;
  }
  for (size_t i = 0; i < std::size(real::kFlags); ++i) {
    EXPECT_EQ(real::kFlags[i], ours::kFlags[i]) << "flag " << i;
  }
}
