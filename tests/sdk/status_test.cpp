// SPDX-License-Identifier: Apache-2.0
// The failure inside a Result: looked at any number of times, moved out once.
#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

using SdkStatus = PluginTest;  // who makes a status needs a host

TEST_F(SdkStatus, ThatIsLookedAtTwiceSaysTheSameTwice) {
  Result<int> made = invalid("option rate: expected a number, got 'fast'");
  std::string first = text_of(made.status());
  EXPECT_EQ(first, "option rate: expected a number, got 'fast'");
  EXPECT_EQ(text_of(made.status()), first);
  EXPECT_EQ(made.status().code(), TN_INVALID_ARGUMENT);
  EXPECT_FALSE(made.ok());
}

TEST_F(SdkStatus, IsHandedOnByTry) {
  auto halved = []() -> Result<double> {
    TN_TRY(whole, Result<int>(invalid("expected an even number, got 3")));
    return whole / 2.0;
  };
  EXPECT_EQ(text_of(halved().status()), "expected an even number, got 3");
}

}  // namespace
}  // namespace tenon::test
