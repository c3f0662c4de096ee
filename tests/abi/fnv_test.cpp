// SPDX-License-Identifier: Apache-2.0
// The hash is the published one, and the hash of two texts behind each other is that of both.
#include "tenon/fnv.hpp"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Fnv, IsThePublishedHash) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(Fnv, GoesOnWithAnotherText) {
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

}  // namespace
}  // namespace tenon
