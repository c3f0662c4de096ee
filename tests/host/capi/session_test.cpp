// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tenon/tenon.h"

#include "services/status.hpp"

namespace tenon::host {
namespace {

using testing::HasSubstr;

std::string why_not(std::string_view config) {
  tenon_session* session = nullptr;
  Status status(tenon_open(str(config), &session));
  EXPECT_EQ(status.ok(), session != nullptr);
  tenon_close(session);
  return status.text();
}

TEST(CapiSession, OpensWithAndWithoutConfig) {
  EXPECT_EQ(why_not(""), "");
  EXPECT_EQ(why_not("{}"), "");
  EXPECT_EQ(why_not(R"({"plugin_path": ["/x"], "safe_mode": true, "threads": 2, "drafts": true})"),
            "");
}

TEST(CapiSession, SaysWhatIsWrongWithTheConfig) {
  EXPECT_THAT(why_not("[1]"), HasSubstr("config: expected a JSON object, got array"));
  EXPECT_THAT(why_not("{"), HasSubstr("config: parse error at line 1, column 2"));
  EXPECT_THAT(why_not(R"({"savemode": true})"), HasSubstr("did you mean 'safe_mode'?"));
  EXPECT_THAT(why_not(R"({"threads": 0})"), HasSubstr("threads: expected a whole number from 1"));
  EXPECT_THAT(why_not(R"({"plugin_path": "x"})"), HasSubstr("expected a list of folders"));
}

TEST(CapiSession, GivesServicesByIdAndNullForOthers) {
  tenon_session* session = nullptr;
  ASSERT_TRUE(Status(tenon_open(tn_str{}, &session)).ok());
  const tn_host* host = tenon_host(session);

  EXPECT_NE(host->get_interface(host, str("tenon.host.component/1")), nullptr);
  EXPECT_EQ(host->get_interface(host, str("tenon.host.none/9")), nullptr);
  tenon_close(session);
}

}  // namespace
}  // namespace tenon::host
