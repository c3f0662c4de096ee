// SPDX-License-Identifier: Apache-2.0
#pragma once
// What norms of each example's gradient are held against: a loop over the examples.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "autodiff_test.hpp"

namespace tenon::test {

inline constexpr int64_t kExamples = 4;

class ExampleNormsTest : public AutodiffTest {
 protected:
  struct ExampleInputs {
    std::vector<std::string> parameters;
    std::vector<bool> is_data;
    std::vector<Numbers> all;  // data: of all examples, one behind the other

    // Indices into axes of 4 among them.
    void add(
        std::string_view name, bool of_examples, bool is_index, int64_t n, std::mt19937& random) {
      is_data.push_back(of_examples);
      if (!of_examples) parameters.emplace_back(name);
      all.push_back(random_numbers(n, random, is_index ? -4.4 : -1, is_index ? 3.4 : 1));
    }
  };

  // By a gradient of a batch of one, for each example: nothing of the pass, and no vmap. *parts:
  // that gradient, by example and parameter.
  std::vector<double> one_by_one(const OwnedGraph& gradient,
                                 const ExampleInputs& inputs,
                                 std::vector<std::vector<Numbers>>* parts = nullptr) {
    std::vector<double> norms;
    for (int64_t example = 0; example < kExamples; ++example) {
      std::vector<Numbers> alone;
      for (size_t i = 0; i < inputs.all.size(); ++i) {
        const Numbers& all = inputs.all[i];
        const auto each = static_cast<int64_t>(all.size()) / (inputs.is_data[i] ? kExamples : 1);
        const auto begin = all.begin() + (inputs.is_data[i] ? example * each : 0);
        alone.emplace_back(begin, begin + each);
      }
      double sum = 0;
      std::vector<Numbers> part = results(gradient, alone);
      for (const Numbers& one : part)
        for (double x : one)
          sum += x * x;
      if (parts) parts->push_back(std::move(part));
      norms.push_back(std::sqrt(sum));
    }
    return norms;
  }

  // Why the pass refused, or "".
  std::string apply_reporting(const OwnedGraph& graph,
                              const json& options,
                              OwnedGraph& out,
                              json& report) {
    tn_options* parsed = nullptr;
    EXPECT_EQ(text_of(Status(services.options->create(ctx_, &parsed))), "");
    EXPECT_EQ(text_of(Status(services.options->parse(parsed, str(options.dump())))), "");
    StringSink sink;
    tn_graph* made = nullptr;
    std::string failed = text_of(Status(tenon_apply(
        session_, graph.get(), str("autodiff.example_norms"), parsed, nullptr, sink.get(), &made)));
    services.options->release(parsed);
    if (failed.empty()) out = OwnedGraph::take(made);
    report = json::parse(sink.text, nullptr, false);
    return failed;
  }
};

// From the value y of so many examples to %l, the sum of tanh(y) of each; y: its shape behind the
// examples, last_axes: its axes from the second on.
inline std::string losses_of(const std::string& n,
                             const std::string& y,
                             const std::string& last_axes) {
  const auto n_axes = 1 + std::count(last_axes.begin(), last_axes.end(), ',');
  return cat("  constant %axes: i64[", n_axes, "] = [", last_axes, "]\n  %squashed: f64[", n, ", ",
             y, "] = Tanh(%y) @tanh\n  %l: f64[", n,
             "] = ReduceSum(%squashed, %axes) {keepdims = 0} @each\n");
}

}  // namespace tenon::test
