// SPDX-License-Identifier: Apache-2.0
// Running sums and products along the last axis and those in front of it, in both directions.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class Cumulate : public BothBackends {
 protected:
  void expect_all(const std::string& op, const std::string& type) {
    for (const char* axis : {"0", "1", "2"})
      for (const char* rule :
           {"", "{exclusive = 1}", "{reverse = 1}", "{exclusive = 1, reverse = 1}"})
        expect_same("graph {\n  input %x: " + type + "[3, 6, 5]\n  constant %a: i64[] = [" + axis +
                        "]\n  %y: " + type + "[3, 6, 5] = " + op + "(%x, %a) " + rule +
                        " @n\n  output y = %y\n}",
                    0);
  }
};

TEST_F(Cumulate, SumsIntegersAlongAnyAxis) {
  expect_all("CumSum", "i64");
  expect_all("CumSum", "i32");
}

TEST_F(Cumulate, SumsRealsAlongAnyAxis) {
  expect_all("CumSum", "f32");
  expect_all("CumSum", "f64");
}

TEST_F(Cumulate, MultipliesAlongAnyAxis) {
  expect_all("CumProd", "i64");
  expect_all("CumProd", "f64");
}

// More columns than are added at once.
TEST_F(Cumulate, SumsManyColumns) {
  expect_same(R"(graph {
  input %x: i64[2, 7, 600]
  constant %a: i64[] = [1]
  %y: i64[2, 7, 600] = CumSum(%x, %a) {reverse = 1} @n
  output y = %y
})",
              0);
}

}  // namespace
}  // namespace tenon::test
