// SPDX-License-Identifier: Apache-2.0
#include "discovery/description.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::host {
namespace {

using testing::HasSubstr;
using namespace std::string_view_literals;

constexpr auto kPlugin = "TENON-PLUGIN-1\0acme\0001.0\0Acme\0Acme Ltd\0MIT\0\0"sv;
constexpr auto kComponent = "TENON-COMPONENT-1\0tenon.pass/1\0acme.prune\0001.0\0prunes\0{}\0"sv;

std::string why_not(std::string_view section) {
  Result<PluginText> text = parse_description(section);
  return text.ok() ? "" : text.status().text();
}

TEST(Description, ReadsRecordsInAnyOrderWithZerosBetween) {
  Result<PluginText> text = parse_description(cat("\0\0"sv, kComponent, "\0\0\0"sv, kPlugin));

  ASSERT_TRUE(text.ok()) << text.status().text();
  EXPECT_EQ(text->id, "acme");
  EXPECT_EQ(text->vendor, "Acme Ltd");
  EXPECT_EQ(text->url, "");
  ASSERT_EQ(text->components.size(), 1u);
  EXPECT_EQ(text->components[0].role, "tenon.pass/1");
  EXPECT_EQ(text->components[0].schema, "{}");
}

TEST(Description, SaysWhatIsWrong) {
  EXPECT_THAT(why_not(""), HasSubstr("lacks a TENON-PLUGIN-1 record"));
  EXPECT_THAT(why_not(cat(kPlugin, kPlugin)), HasSubstr("two TENON-PLUGIN-1 records"));
  EXPECT_THAT(why_not(cat(kPlugin, kComponent, kComponent)),
              HasSubstr("two components acme.prune of role tenon.pass/1"));
  EXPECT_THAT(why_not("TENON-PLUGIN-9\0acme\0"sv), HasSubstr("unknown record 'TENON-PLUGIN-9'"));
  EXPECT_THAT(why_not("TENON-COMPONENT-1\0\0x\0\0\0\0TENON-PLUGIN-1\0a\0\0\0\0\0\0"sv),
              HasSubstr("no role or no id"));
}

TEST(Description, SurvivesEveryCut) {
  std::string whole = cat(kPlugin, kComponent);
  for (size_t bytes = kPlugin.size() + 1; bytes + 1 < whole.size(); ++bytes)
    EXPECT_NE(why_not(whole.substr(0, bytes)), "") << bytes;
}

}  // namespace
}  // namespace tenon::host
