// SPDX-License-Identifier: Apache-2.0
#include "values/tensor.hpp"

#include <cstdio>
#include <cstring>
#include <numeric>

#include <gmock/gmock.h>

#include "files/blob.hpp"
#include "host/host_fixture.hpp"

namespace tenon::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A managed tensor whose deleter counts.
struct Foreign {
  std::vector<int64_t> shape, strides;
  std::vector<float> data;
  int deleted = 0;
  DLManagedTensorVersioned managed{};

  Foreign(std::vector<int64_t> sizes, std::vector<int64_t> steps) : shape(sizes), strides(steps) {
    data.resize(64);
    std::iota(data.begin(), data.end(), 0.0f);
    managed.version = {1, 3};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->deleted;
    };
    managed.dl_tensor = {data.data(),
                         {kDLCPU, 0},
                         static_cast<int32_t>(shape.size()),
                         dl_type(TN_F32),
                         shape.data(),
                         strides.data(),
                         0};
  }
};

class Tensor : public HostTest {
 protected:
  ~Tensor() override {
    EXPECT_EQ(held(Held::kTensor), 0);
    EXPECT_EQ(held(Held::kBytes), 0);
    EXPECT_EQ(held(Held::kBlob), 0);
  }
  const tn_host_tensor& api = service<tn_host_tensor>("tenon.host.tensor/1");

  std::string alloc_failure(uint32_t dtype, std::vector<int64_t> sizes) {
    DLTensor proto{};
    proto.dtype = dl_type(dtype);
    proto.ndim = static_cast<int32_t>(sizes.size());
    proto.shape = sizes.data();
    tn_tensor* out = reinterpret_cast<tn_tensor*>(1);
    std::string why = text(api.alloc(ctx(), &proto, &out));
    EXPECT_EQ(out, nullptr);
    return why;
  }
  std::string import_failure(Foreign& foreign) {
    tn_tensor* out = reinterpret_cast<tn_tensor*>(1);
    std::string why = text(api.from_dlpack(ctx(), &foreign.managed, &out));
    EXPECT_EQ(out, nullptr);
    EXPECT_EQ(foreign.deleted, 0) << "a refused tensor stays the caller's";
    return why;
  }
};

TEST_F(Tensor, AllocatesZeroedAlignedMemory) {
  int64_t sizes[] = {3, 5};
  auto tensor = alloc_tensor(ctx(), TN_F32, sizes);

  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*tensor)->data()) % 64, 0u);
  EXPECT_EQ((*tensor)->bytes, 60u);
  EXPECT_EQ(held(Held::kBytes), 60);
  std::vector<char> zeros(60, 0);
  EXPECT_EQ(std::memcmp((*tensor)->data(), zeros.data(), 60), 0);
  EXPECT_EQ((*tensor)->dl.strides[0], 5);
  EXPECT_EQ((*tensor)->dl.strides[1], 1);
}

TEST_F(Tensor, RoundsPackedTypesUp) {
  int64_t sizes[] = {3, 3};
  auto tensor = alloc_tensor(ctx(), TN_I4, sizes);

  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ((*tensor)->bytes, 5u);
}

TEST_F(Tensor, HasAnAddressWhenItIsEmptyOrAScalar) {
  int64_t sizes[] = {0, 7};
  auto empty = alloc_tensor(ctx(), TN_F64, sizes);
  auto scalar = alloc_tensor(ctx(), TN_F64, {});

  ASSERT_TRUE(empty.ok() && scalar.ok());
  EXPECT_NE((*empty)->data(), nullptr);
  EXPECT_EQ((*empty)->bytes, 0u);
  EXPECT_EQ((*scalar)->bytes, 8u);
}

TEST_F(Tensor, RefusesBadShapesAndTypes) {
  EXPECT_EQ(alloc_failure(TN_F32, {2, -3}), "tensor shape [2, -3]: expected sizes >= 0, got -3");
  EXPECT_THAT(alloc_failure(TN_F32, {INT64_MAX, 2}), HasSubstr("does not fit in 63 bits"));
  EXPECT_THAT(alloc_failure(TN_F32, {int64_t{1} << 32, int64_t{1} << 32, 0}),
              HasSubstr("does not fit in 63 bits"));
  EXPECT_THAT(alloc_failure(TN_F32, {int64_t{1} << 62}), HasSubstr("size in bytes does not fit"));
  EXPECT_THAT(alloc_failure(TN_F32, std::vector<int64_t>(65, 1)),
              HasSubstr("expected a rank in [0, 64], got 65"));
  EXPECT_THAT(alloc_failure(TN_DTYPE(3, 7), {1}), HasSubstr("got type 3/7"));
  EXPECT_THAT(alloc_failure(TN_F32 + (1u << 16), {1}), HasSubstr("got type 2/32x2"));
}

TEST_F(Tensor, RefusesNullsAndNegativeRanks) {
  tn_tensor* out = nullptr;
  DLTensor proto{};
  proto.dtype = dl_type(TN_F32);

  EXPECT_THAT(text(api.alloc(ctx(), nullptr, &out)), HasSubstr("got NULL"));
  proto.ndim = -1;
  EXPECT_THAT(text(api.alloc(ctx(), &proto, &out)), HasSubstr("got -1"));
  proto.ndim = 2;
  EXPECT_THAT(text(api.alloc(ctx(), &proto, &out)), HasSubstr("expected 2 sizes, got NULL"));
  EXPECT_THAT(text(api.copy(ctx(), nullptr, &out)), HasSubstr("got NULL"));
  EXPECT_THAT(text(api.from_dlpack(ctx(), nullptr, &out)), HasSubstr("got NULL"));
  api.retain(nullptr);
  api.release(nullptr);
}

TEST_F(Tensor, CopiesTransposedBroadcastAndReversedMemory) {
  Foreign transposed({3, 2}, {1, 3});
  Foreign broadcast({2, 3}, {0, 1});
  Foreign reversed({4}, {-1});
  reversed.managed.dl_tensor.byte_offset = 3 * sizeof(float);

  auto numbers = [&](Foreign& foreign) {
    auto copy = copy_tensor(ctx(), foreign.managed.dl_tensor);
    EXPECT_TRUE(copy.ok());
    const auto* first = reinterpret_cast<const float*>((*copy)->data());
    return std::vector<float>(first, first + (*copy)->bytes / sizeof(float));
  };
  EXPECT_THAT(numbers(transposed), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(numbers(broadcast), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(numbers(reversed), ElementsAre(3, 2, 1, 0));
}

TEST_F(Tensor, CopyRefusesOtherDevicesAndStridedPackedTypes) {
  Foreign device({2}, {1});
  device.managed.dl_tensor.device.device_type = kDLCUDA;
  Foreign packed({2, 2}, {1, 2});
  packed.managed.dl_tensor.dtype = dl_type(TN_I4);

  EXPECT_THAT(copy_tensor(ctx(), device.managed.dl_tensor).status().text(),
              HasSubstr("expected CPU memory (device 1), got device 2"));
  EXPECT_THAT(copy_tensor(ctx(), packed.managed.dl_tensor).status().text(),
              HasSubstr("must be dense, got strides [1, 2]"));
}

TEST_F(Tensor, RefusesStridesThatReachFurtherThanMemory) {
  Foreign both_ways({2, 2}, {INT64_MAX, INT64_MIN});

  EXPECT_EQ(copy_tensor(ctx(), both_ways.managed.dl_tensor).status().code(), TN_OUT_OF_RANGE);
}

TEST_F(Tensor, TakesOverADlpackTensorOnce) {
  Foreign foreign({2, 3}, {3, 1});
  foreign.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  tn_tensor* tensor = nullptr;
  ASSERT_EQ(text(api.from_dlpack(ctx(), &foreign.managed, &tensor)), "");
  DLManagedTensorVersioned* shared = nullptr;
  ASSERT_EQ(text(api.to_dlpack(tensor, &shared)), "");

  api.release(tensor);
  EXPECT_EQ(shared->dl_tensor.data, foreign.data.data());
  EXPECT_EQ(shared->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  EXPECT_EQ(shared->version.minor, 3u);
  EXPECT_EQ(foreign.deleted, 0);
  shared->deleter(shared);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST_F(Tensor, AcceptsMissingStridesOnlyFromOldDlpack) {
  Foreign old({2, 3}, {});
  old.managed.dl_tensor.strides = nullptr;
  old.managed.version = {1, 1};
  tn_tensor* tensor = nullptr;

  ASSERT_EQ(text(api.from_dlpack(ctx(), &old.managed, &tensor)), "");
  EXPECT_EQ(tensor->dl.strides[0], 3);
  api.release(tensor);
  old.deleted = 0;
  old.managed.version = {1, 2};
  EXPECT_THAT(import_failure(old), HasSubstr("expected strides, as DLPack 1.2 demands, got NULL"));
}

TEST_F(Tensor, RefusesBrokenDlpackTensors) {
  Foreign version({2}, {1});
  version.managed.version = {2, 0};
  EXPECT_THAT(import_failure(version), HasSubstr("expected DLPack version 1, got 2.0"));
  Foreign padded({2}, {1});
  padded.managed.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  EXPECT_THAT(import_failure(padded), HasSubstr("padded"));
  Foreign no_data({2}, {1});
  no_data.managed.dl_tensor.data = nullptr;
  EXPECT_THAT(import_failure(no_data), HasSubstr("data is NULL"));
  Foreign offset({2}, {1});
  offset.managed.dl_tensor.byte_offset = UINT64_MAX - 1;
  EXPECT_THAT(import_failure(offset), HasSubstr("leaves the address space"));
  Foreign far({3, 3}, {INT64_MAX, 1});
  EXPECT_THAT(import_failure(far), HasSubstr("reach further than 63 bits"));
  Foreign negative({2, -1}, {1, 1});
  EXPECT_THAT(import_failure(negative), HasSubstr("expected sizes >= 0, got -1"));
}

TEST_F(Tensor, MapsAWindowOfAFileThatOutlivesTheBlob) {
  std::string path = file("weights.bin", "0123456789abcdef");
  int64_t sizes[] = {4};
  Result<Ref<tn_tensor>> tensor = [&]() -> Result<Ref<tn_tensor>> {
    TN_TRY(blob, open_blob(ctx(), path));
    return map_tensor(ctx(), blob.get(), 3, TN_U8, sizes);
  }();

  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(std::string((*tensor)->data(), 4), "3456");
  EXPECT_TRUE((*tensor)->read_only);
  EXPECT_EQ(held(Held::kBlob), 1);
  EXPECT_EQ(held(Held::kBytes), 0) << "the pages are the file's";
}

TEST_F(Tensor, RefusesAWindowOutsideTheFile) {
  std::string path = file("weights.bin", "0123456789abcdef");
  auto blob = open_blob(ctx(), path);
  ASSERT_TRUE(blob.ok());
  int64_t sizes[] = {4};
  int64_t huge[] = {INT64_MAX / 8};

  EXPECT_THAT(map_tensor(ctx(), blob->get(), 13, TN_U8, sizes).status().text(),
              HasSubstr("expected 4 bytes at offset 13, got a file of 16 bytes"));
  EXPECT_FALSE(map_tensor(ctx(), blob->get(), UINT64_MAX, TN_U8, sizes).ok());
  EXPECT_FALSE(map_tensor(ctx(), blob->get(), 1, TN_U8, huge).ok());
}

#ifdef __linux__
// The flags that the system keeps for the mapping around an address: "hg" where large pages are
// asked for.
std::string mapping_flags(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool here = false;
  while (std::getline(maps, line)) {
    unsigned long long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2)
      here = begin <= wanted && wanted < end;
    if (here && line.starts_with("VmFlags:")) return line;
  }
  return "";
}

TEST_F(Tensor, AsksForLargePagesWhereItIsLarge) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this system has no transparent large pages";
  auto large = *alloc_tensor(ctx(), TN_U8, std::vector<int64_t>{16 << 20});
  auto* middle = static_cast<char*>(large->dl.data) + (8 << 20);

  EXPECT_THAT(mapping_flags(middle), HasSubstr(" hg"));
  EXPECT_EQ(*middle, 0);
}
#endif

}  // namespace
}  // namespace tenon::host
