// SPDX-License-Identifier: Apache-2.0
// The one block of memory for all intermediates.

#include <gtest/gtest.h>

#include "executable.hpp"
#include "graph_builder.hpp"

namespace tenon::onednn::test {
namespace {

TEST(Arena, StaysCloseToTheMostBytesAlive) {
  GraphBuilder b(1);
  build_resnet50(b, 1);
  WeightStore store;
  CompileOptions options{.threads = 1};
  Executable exe(b.graph, options, store);

  EXPECT_LE(static_cast<double>(exe.arena().bytes),
            1.3 * static_cast<double>(exe.arena().lower_bound));
}

}  // namespace
}  // namespace tenon::onednn::test
