// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sessions that have loaded the plugin acme.

#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {

class ThirdPartyTest : public PruningTest {
 protected:
  void SetUp() override {
    PruningTest::SetUp();
    std::string path = cat(kTestPluginFolder, "/acme/acme.so");
    ASSERT_EQ(text_of(Status(tenon_plugin_load(session_, str(path)))), "");
  }
  Value acme(EditView edit,
             std::string_view type,
             std::vector<Value> inputs,
             std::string_view name,
             std::vector<Attr> attrs = {}) {
    auto made = edit.add({.type = type,
                          .inputs = std::move(inputs),
                          .attrs = std::move(attrs),
                          .name = name,
                          .domain = "acme",
                          .output_names = {name}});
    if (made.ok()) return made->output();
    ADD_FAILURE() << name << ": " << text_of(made.status());
    return {};
  }
  // A random weight of rank `rank` in its first two axes taken as a matrix [rows, cols].
  Floats low_rank(int64_t rows, int64_t cols, int64_t rank, uint64_t seed) {
    Floats a = random(static_cast<size_t>(rows * rank), seed);
    Floats b = random(static_cast<size_t>(rank * cols), seed + 1);
    Floats out(static_cast<size_t>(rows * cols));
    for (int64_t i = 0; i < rows * cols; ++i)
      for (int64_t r = 0; r < rank; ++r)
        out[static_cast<size_t>(i)] += 0.2F * a[static_cast<size_t>(i / cols * rank + r)] *
                                       b[static_cast<size_t>(r * cols + i % cols)];
    return out;
  }
  // Largest difference of the two models' outputs, relative to the largest output.
  double relative_difference(const std::vector<int64_t>& shape) {
    Floats batch = random(count(shape), 99);
    Floats a = run(model_, shape, batch), b = run(result_, shape, batch);
    return largest_difference(a, b) / largest(a);
  }
};

}  // namespace tenon::test
