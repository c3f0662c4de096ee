// SPDX-License-Identifier: Apache-2.0
// The gradient of CumProd against the reference, whose factors and sums are in f64 throughout.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class CumulativeProductGrad : public BothBackends {};

// More columns than are computed at once, one column, each direction; some factors are 0.
TEST_F(CumulativeProductGrad, AgreesWithTheReference) {
  for (const std::string type : {"f32", "f64"})
    for (const std::string dims : {"[2, 5, 301]", "[3, 2, 7]", "[9, 40]", "[33]"})
      for (const std::string axis : {"0", "-1"})
        for (const std::string more :
             {"", ", exclusive = 1", ", reverse = 1", ", exclusive = 1, reverse = 1"}) {
          const std::string t = type + dims;
          SCOPED_TRACE(t + " axis " + axis + more);
          expect_same("graph {\n  input %d: " + t + "\n  input %r: " + t + "\n  %x: " + t +
                      " = Round(%r) @x\n  %a: " + t +
                      " = tenon:CumProdGrad(%d, %x) {axis = " + axis + more + "} @a\n  %b: " + t +
                      " = tenon:CumProdGrad(%d, %r) {axis = " + axis + more +
                      "} @b\n  output a = %a\n  output b = %b\n}");
        }
}

}  // namespace
}  // namespace tenon::test
