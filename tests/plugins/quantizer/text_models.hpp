// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models written as text, and what "quantizer.integers" makes of them.

#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {

class TextModels : public PassTest {
 protected:
  // A model from text; its first output.
  Floats run_text(const char* text, const std::vector<int64_t>& shape, const Floats& x) {
    model_ = parsed(text);
    EXPECT_EQ(apply("quantizer.integers", json::object()), "");
    return run(result_, shape, x);
  }
  OwnedGraph parsed(const char* text) {
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "");
    return OwnedGraph::take(raw);
  }
};

}  // namespace tenon::test
