// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of control flow against central differences.

#include <gmock/gmock.h>

#include "tenon/sdk/build.hpp"

#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {

class Control : public AutodiffTest {
 protected:
  // Gradients of the first output by all inputs, against central differences.
  void expect_slopes(const OwnedGraph& f, const std::vector<Numbers>& at) {
    json wrt = json::array();
    for (size_t i = 0; i < at.size(); ++i)
      wrt.push_back(i);
    OwnedGraph g = applied(f, "autodiff.grad", {{"argnums", wrt}});
    ASSERT_TRUE(g.get());
    std::vector<Numbers> gradients = results(g, at);
    ASSERT_EQ(gradients.size(), at.size());
    for (size_t i = 0; i < at.size(); ++i) {
      ASSERT_EQ(gradients[i].size(), at[i].size());
      for (size_t k = 0; k < at[i].size(); ++k) {
        constexpr double kStep = 1e-6;
        std::vector<Numbers> ends[2] = {at, at};
        ends[0][i][k] -= kStep;
        ends[1][i][k] += kStep;
        double slope = (results(f, ends[1])[0][0] - results(f, ends[0])[0][0]) / (2 * kStep);
        EXPECT_NEAR(gradients[i][k], slope, 1e-7 * std::max(1.0, std::fabs(slope)))
            << "input " << i << " element " << k;
      }
    }
  }

  // Replaces all outputs by the sum of their squares, so that a gradient has a gradient.
  static void sum_squares_of_outputs(OwnedGraph& g) {
    auto begun = Edit::begin(g.get());
    ASSERT_TRUE(begun.ok());
    Edit edit = std::move(*begun);
    Builder b(edit);
    Value sum;
    for (Value y : edit.graph().outputs()) {
      Value own = b.op("ReduceSum", {b.mul(y, y)}, {{"keepdims", 0}});
      sum = sum ? b.add(sum, own) : own;
      EXPECT_EQ(text_of(Status(services.edit->remove_output(edit.raw, 0))), "");
    }
    EXPECT_EQ(text_of(b.status()), "");
    EXPECT_EQ(text_of(edit.output("l", sum)), "");
    EXPECT_EQ(text_of(edit.commit()), "");
  }
};

}  // namespace tenon::test
