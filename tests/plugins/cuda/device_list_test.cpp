// SPDX-License-Identifier: Apache-2.0
// What is said of machines that are not here: old drivers, old GPUs, several of them.

#include "device/device_list.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::cuda {
namespace {

using tenon::test::json;

class Devices : public tenon::test::PluginTest {
 protected:
  const DeviceList two_{{{0, "GPU \"A\"", uint64_t{80} << 30, 90}, {1, "GPU B", 1 << 30, 75}}, ""};
};

TEST_F(Devices, OfANumberThatIsNotThereNameThoseThatAre) {
  Result<DeviceInfo> found = device_of(two_, 3);

  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().message(), "cuda: device 3: expected one of 0 (GPU \"A\"), 1 (GPU B)");
}

TEST_F(Devices, ThatAreTooOldSayWhatIsNeeded) {
  Result<DeviceInfo> found = device_of(two_, 1);

  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().message(),
            "cuda: device 1, GPU B: compute capability 7.5, 8.0 or newer is needed");
}

TEST_F(Devices, AreListedWithTheReasonsOfThoseThatCannotBeUsed) {
  json all = json::parse(devices_json(two_, -1));

  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["name"], "GPU \"A\"");
  EXPECT_FALSE(all[0].contains("why"));
  EXPECT_TRUE(all[1].contains("why"));
}

TEST_F(Devices, ThatAreAskedForAreTheOnlyOnes) {
  json first = json::parse(devices_json(two_, 0)), none = json::parse(devices_json(two_, 7));

  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0]["id"], 0);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_NE(none[0]["why"].get<std::string>().find("expected one of 0"), std::string::npos);
}

TEST(NoDevices, SaysWhatToInstall) {
  EXPECT_NE(why_no_devices(0, 13000, "").find("no NVIDIA driver"), std::string::npos);
  EXPECT_EQ(why_no_devices(12040, 13000, "cudaErrorInsufficientDriver: old"),
            "the NVIDIA driver is for CUDA 12.4, 13.0 is needed: install driver 580 or newer");
  EXPECT_NE(why_no_devices(13000, 13000, "").find("nvidia-smi"), std::string::npos);
  EXPECT_NE(why_no_devices(13000, 13000, "cudaErrorUnknown: x").find("cudaErrorUnknown"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::cuda
