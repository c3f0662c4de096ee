// SPDX-License-Identifier: Apache-2.0
// Failures of the CUDA runtime as statuses: which end the use of a device, and what is said after
// that. The runtime is linked, no device is asked for.

#include <gtest/gtest.h>

#include "device/check.hpp"
#include "plugins/plugin_session.hpp"

namespace tenon::cuda {
namespace {

class HealthTest : public tenon::test::PluginTest {
 protected:
  Health health_;
};

TEST_F(HealthTest, StaysWellAfterWhatPasses) {
  Status failed = health_.check(cudaErrorInvalidValue, "a copy");

  EXPECT_EQ(failed.code(), TN_INTERNAL);
  EXPECT_NE(failed.message().find("a copy: cudaErrorInvalidValue"), std::string::npos);
  EXPECT_TRUE(health_.usable().ok());
  EXPECT_TRUE(health_.check(cudaSuccess, "a run").ok());
}

TEST_F(HealthTest, DistinguishesMemoryThatRanOutFromOtherFailures) {
  EXPECT_EQ(health_.check(cudaErrorMemoryAllocation, "pinned memory").code(),
            TN_RESOURCE_EXHAUSTED);
  EXPECT_TRUE(health_.usable().ok());
}

TEST_F(HealthTest, NamesTheFirstCauseEverAfter) {
  for (cudaError_t error : {cudaErrorIllegalAddress, cudaErrorAssert, cudaErrorLaunchFailure,
                            cudaErrorContained, cudaErrorECCUncorrectable}) {
    Health health;
    Status first = health.check(error, "node n: a run");
    Status second = health.check(cudaErrorLaunchTimeout, "another run");
    Status later = health.usable();

    EXPECT_EQ(first.code(), TN_INTERNAL);
    EXPECT_NE(first.message().find("node n: a run"), std::string::npos);
    for (const Status* status : {&second, &later}) {
      EXPECT_EQ(status->code(), TN_UNAVAILABLE);
      EXPECT_NE(status->message().find(first.message()), std::string::npos) << status->message();
      EXPECT_NE(status->message().find("cannot be used in this process"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tenon::cuda
