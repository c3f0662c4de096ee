// SPDX-License-Identifier: Apache-2.0
#include "graph/names.hpp"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace tenon::host {
namespace {

TEST(Names, OfNothingAreNotThere) {
  NameIndex names;

  names.erase("x");

  EXPECT_EQ(names.find("x"), 0U);
}

TEST(Names, BelongToWhoTookThemLast) {
  NameIndex names;
  names.set(make_text("x"), 3);
  names.set(make_text("x"), 5);

  EXPECT_EQ(names.find("x"), 5U);
  names.erase("x");
  EXPECT_FALSE(names.contains("x"));
}

TEST(Names, OfACopyAreItsOwn) {
  NameIndex names;
  names.set(make_text("x"), 3);
  NameIndex copy = names;
  copy.erase("x");
  copy.set(make_text("y"), 4);

  EXPECT_EQ(names.find("x"), 3U);
  EXPECT_FALSE(names.contains("y"));
}

// Few names and many changes: entries stand in each other's way, and gaps open between them.
TEST(Names, AreThoseOfAMapAfterAnyChanges) {
  std::mt19937 random(7);
  NameIndex names;
  std::map<std::string, uint64_t> wanted;
  for (uint64_t step = 1; step <= 20000; ++step) {
    const std::string name = "n" + std::to_string(random() % 90);
    if (random() % 2) {
      names.set(make_text(name), step);
      wanted[name] = step;
    } else {
      names.erase(name);
      wanted.erase(name);
    }
    if (step % 50) continue;
    for (int i = 0; i < 90; ++i) {
      const std::string one = "n" + std::to_string(i);
      ASSERT_EQ(names.find(one), wanted.count(one) ? wanted[one] : 0) << one << " after " << step;
    }
  }
}

}  // namespace
}  // namespace tenon::host
