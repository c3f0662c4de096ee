// SPDX-License-Identifier: Apache-2.0
#include "tenon/cxx/line_diff.hpp"

#include <gtest/gtest.h>

namespace tenon::cxx {
namespace {

TEST(Diff, IsEmptyForEqualTexts) {
  EXPECT_EQ(diff_lines("a\nb\n", "a\nb\n"), "");
}

TEST(Diff, ShowsWhatChangedWithContext) {
  EXPECT_EQ(diff_lines("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\nten\n"),
            "--- before\n+++ after\n"
            "@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+ten\n");
}

TEST(Diff, HandlesEmptySides) {
  EXPECT_EQ(diff_lines("", "a\n"), "--- before\n+++ after\n@@ -0,0 +1,1 @@\n+a\n");
  EXPECT_EQ(diff_lines("a\n", ""), "--- before\n+++ after\n@@ -1,1 +0,0 @@\n-a\n");
}

}  // namespace
}  // namespace tenon::cxx
