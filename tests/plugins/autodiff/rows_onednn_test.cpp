// SPDX-License-Identifier: Apache-2.0
// What transforms make of every row's sample, on "onednn" beside "reference": gradients of first
// and second order and vmap, in f32 and with products in bf16.
#include <map>

#include "plugins/autodiff/row_samples.hpp"

namespace tenon::test {
namespace {

constexpr uint64_t kSeeds = 2;
constexpr double kTolerance = 2e-5;      // f32, of the largest magnitude
constexpr double kBf16Tolerance = 5e-2;  // 8 bits, a few roundings

class RowsOnednn : public RowSamples {
 protected:
  struct Outcome {
    std::string error;
    std::vector<Numbers> outputs;
    json plan;
  };

  Outcome run_on(const json& options, const OwnedGraph& graph, const std::vector<Numbers>& inputs) {
    Outcome outcome;
    tn_plan* plan = nullptr;
    outcome.error =
        text_of(Status(tenon_compile(session_, graph.get(), str(options.dump()), &plan)));
    if (!outcome.error.empty()) return outcome;
    outcome.error = text_of(run_plan(plan, graph.get(), inputs, outcome.outputs));
    StringSink sink;
    EXPECT_EQ(text_of(Status(services.eval->describe(plan, sink.get()))), "");
    outcome.plan = json::parse(sink.text);
    services.eval->release(plan);
    return outcome;
  }

  static double distance(const Numbers& got, const Numbers& expected) {
    if (got.size() != expected.size()) return INFINITY;
    double most = 1, worst = 0;
    for (double x : expected)
      most = std::isfinite(x) ? std::max(most, std::fabs(x)) : most;
    for (size_t i = 0; i < got.size(); ++i) {
      bool is_same = got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]));
      if (!is_same) worst = std::max(worst, std::fabs(got[i] - expected[i]) / most);
    }
    return worst;
  }

  static bool has_open_sizes(const OwnedGraph& graph) {
    std::vector<Value> outputs = graph.view().outputs();
    return std::any_of(outputs.begin(), outputs.end(), [](Value y) {
      Type type = y.type();
      return !type.ranked ||
             std::any_of(type.dims.begin(), type.dims.end(), [](int64_t dim) { return dim < 0; });
    });
  }

  // Which of two numbers is the largest, when bf16 makes them equal, is no question of tolerance.
  static std::vector<const char*> precisions_for(const tn_op& row) {
    bool picks = view(row.type) == "MaxPool" || view(row.type) == "MaxPoolGrad";
    return picks ? std::vector{"fp32"} : std::vector{"fp32", "bf16"};
  }

  // The graph, for whoever looks at one row.
  static std::string text(const OwnedGraph& graph) {
    StringSink sink;
    if (is_for_all_rows()) return "TENON_TEST_ROW=NAME prints its graphs";
    Status printed(services.graph->print(graph.get(), TN_PRINT_DATA, sink.get()));
    return printed.ok() ? sink.text : "";
  }

  void compare(const OwnedGraph& graph, std::vector<const char*> precisions, uint32_t attempt) {
    if (graph.view().inputs().empty() || graph.view().outputs().empty()) return;
    std::vector<Numbers> inputs = inputs_for(graph, attempt);
    Outcome expected = run_on({{"backend", "reference"}}, graph, inputs);
    for (const char* precision : precisions) {
      SCOPED_TRACE(cat(precision, ", inputs ", attempt));
      json options{{"backend", "onednn"}, {"threads", 2}, {"precision", precision}};
      Outcome got = run_on(options, graph, inputs);
      EXPECT_EQ(got.error.empty(), expected.error.empty()) << got.error << expected.error;
      if (!got.error.empty() || !expected.error.empty()) return;
      EXPECT_EQ(got.outputs.size(), expected.outputs.size());
      double tolerance = precision == std::string_view("bf16") ? kBf16Tolerance : kTolerance;
      for (size_t k = 0; k < std::min(got.outputs.size(), expected.outputs.size()); ++k)
        EXPECT_LT(distance(got.outputs[k], expected.outputs[k]), tolerance)
            << "output " << k << "\n"
            << text(graph);
      count(got.plan);
    }
  }

  void count(const json& plan) {
    ++n_compared_;
    n_whole_ += plan["fallback_nodes"].empty();
    for (const json& node : plan["fallback_nodes"])
      ++fallbacks_[cat(node.value("op", "?"), ": ", node.value("why", "?"))];
  }

  void compare_gradients(const tn_op* row, uint64_t seed) {
    Result<OwnedGraph> f = sample(row, seed);
    ASSERT_TRUE(f.ok()) << text_of(f.status());
    if ((row->traits & TN_OP_DATA_SHAPE) != 0 || has_open_sizes(*f)) return;
    OwnedGraph at = std::move(*f);
    for (int order = 1; order <= 2; ++order) {
      SCOPED_TRACE(cat("gradient of order ", order));
      ASSERT_EQ(text_of(add_scalar(const_cast<tn_graph*>(at.get()), TN_F32)), "");
      if (at.view().outputs().empty() || float_inputs(at).empty()) return;
      OwnedGraph g;
      std::string failed = gradient(at, g);
      if (lacks_a_rule(failed)) return;
      ASSERT_EQ(failed, "");
      compare(g, precisions_for(*row), 0);
      compare(g, {"fp32"}, 3);
      at = std::move(g);
    }
  }

  void compare_vmap(const tn_op* row, uint64_t seed) {
    SCOPED_TRACE("vmap");
    Result<OwnedGraph> f = sample(row, seed);
    ASSERT_TRUE(f.ok()) << text_of(f.status());
    if (f->view().inputs().empty()) return;
    OwnedGraph v;
    if (!apply(f->get(), "autodiff.vmap", {{"axis_size", 3}, {"in_axes", 0}}, v).empty()) return;
    compare(v, precisions_for(*row), 0);
    compare(v, {"fp32"}, 3);
  }

  int n_compared_ = 0, n_whole_ = 0;
  std::map<std::string, int> fallbacks_;
};

TEST_F(RowsOnednn, SameAsReference) {
  for (const tn_op* row : sampled_rows()) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(cat(view(row->type), " seed ", seed));
      compare_gradients(row, seed);
      compare_vmap(row, seed);
    }
  }
  if (!is_for_all_rows()) return;
  EXPECT_GT(n_whole_, 2500);
  EXPECT_GT(n_whole_ * 100, n_compared_ * 93);  // factorisations are nobody's but the reference's
  std::printf("%d graphs, %d of them wholly on onednn\n", n_compared_, n_whole_);
  for (const auto& [what, n] : fallbacks_)
    std::printf("%5d %s\n", n, what.c_str());
}

}  // namespace
}  // namespace tenon::test
