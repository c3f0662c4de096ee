// SPDX-License-Identifier: Apache-2.0
// Characters stay, and bytes that belong to none become U+FFFD, each by itself.
#include "tenon/utf8.hpp"

#include <gtest/gtest.h>

namespace tenon {
namespace {

constexpr const char* kMark = "\xef\xbf\xbd";

TEST(Utf8, KeepsCharactersOfEachLength) {
  const std::string text = "a\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
  EXPECT_EQ(valid_utf8(text), text);
  EXPECT_EQ(valid_utf8(std::string_view("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(valid_utf8(""), "");
}

TEST(Utf8, MarksWhatBelongsToNoCharacter) {
  EXPECT_EQ(valid_utf8("a\xff"), std::string("a") + kMark);
  EXPECT_EQ(valid_utf8("\xc3"), kMark);                                       // cut off
  EXPECT_EQ(valid_utf8("\xe2\x82z"), std::string(kMark) + kMark + "z");       // cut short
  EXPECT_EQ(valid_utf8("\xc0\xaf"), std::string(kMark) + kMark);              // longer than needed
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), std::string(kMark) + kMark + kMark);  // half of a pair
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80").size(), 12u);                      // beyond U+10FFFF
}

}  // namespace
}  // namespace tenon
