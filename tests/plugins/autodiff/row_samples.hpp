// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operator rows that the session has, and graphs of one node by their column `sample`.

#include <algorithm>

#include "tenon/sdk/build.hpp"

#include "plugins/all_rows.hpp"
#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {

class RowSamples : public AutodiffTest {
 protected:
  void SetUp() override {
    AutodiffTest::SetUp();
    Status loaded(tenon_plugin_load(session_, str("autodiff")));
    ASSERT_EQ(text_of(std::move(loaded)), "");
    ASSERT_EQ(text_of(load_all_rows(session_)), "");
  }

  // Rows with a sample, of those that are tensors of numbers and not random; with the environment's
  // TENON_TEST_ROW that one alone.
  std::vector<const tn_op*> sampled_rows() const {
    const char* only = std::getenv("TENON_TEST_ROW");
    std::vector<const tn_op*> out;
    for (uint64_t i = 0; i < services.op->count(ctx_); ++i) {
      const tn_op* row = services.op->at(ctx_, i);
      bool is_asked_for = !only || view(row->type) == only;
      if (row->sample && !is_special(*row) && is_asked_for) out.push_back(row);
    }
    return out;
  }
  static bool is_for_all_rows() { return !std::getenv("TENON_TEST_ROW"); }

  // One random node of the row, its outputs as the graph's.
  Result<OwnedGraph> sample(const tn_op* row, uint64_t seed) {
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->create(ctx_, &raw));
    OwnedGraph graph = OwnedGraph::take(raw);
    TN_TRY(edit, Edit::begin(raw));
    tn_node_id id = 0;
    TN_CHECK(row->sample(row->self, edit.raw, seed, &id));
    std::vector<Value> outputs = edit.node(id).outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) TN_CHECK(edit.output(cat("y", i), outputs[i]));
    TN_CHECK(edit.commit());
    return Result<OwnedGraph>(std::move(graph));
  }

  // Float outputs, weighted and summed, in place of all outputs; none where none is a float.
  Status add_scalar(tn_graph* graph, uint32_t dtype) {
    TN_TRY(edit, Edit::begin(graph));
    Builder b(edit);
    std::mt19937 random(11);
    Value total;
    for (Value y : edit.graph().outputs()) {
      if (!is_float(y.dtype())) continue;
      y = b.cast(y, dtype);
      Type type = b.fixed(y, "sample");
      Numbers weights = random_numbers(type.elements(), random, 0.5, 1.5);
      Value w = b.cast(b.take(edit.constant<double>(TN_F64, type.dims, weights)), dtype);
      Value sum = b.op("ReduceSum", {b.mul(y, w)}, {{"keepdims", 0}});
      total = total ? b.add(total, sum) : sum;
    }
    TN_CHECK(b.status());
    for (uint64_t i = edit.graph().outputs().size(); i-- > 0;)
      TN_CHECK(services.edit->remove_output(edit.raw, i));
    if (total) TN_CHECK(edit.output("loss", total));
    return edit.commit();
  }

  // Inputs as they come, positive, small, or from 1.1 (logarithms, arc cosine), by the attempt.
  static std::vector<Numbers> inputs_for(const OwnedGraph& graph, uint32_t attempt) {
    constexpr double kScaled[][2] = {{1, 0}, {0.4, 0}, {0.2, 1.5}, {0.3, 1.2}};
    auto [scale, shift] = kScaled[attempt % 4];
    std::vector<Numbers> at;
    std::mt19937 random(3 + attempt / 4);
    for (Value v : graph.view().inputs()) {
      at.push_back(random_numbers(v.type().elements(), random));
      for (double& x : at.back())
        x = x * scale + shift;
    }
    return at;
  }

  static std::vector<size_t> float_inputs(const OwnedGraph& graph) {
    std::vector<size_t> out;
    std::vector<Value> inputs = graph.view().inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (is_float(inputs[i].dtype())) out.push_back(i);
    return out;
  }

  // The gradient by all float inputs; the pass's error where it has none.
  std::string gradient(const OwnedGraph& loss, OwnedGraph& out) {
    return apply(loss.get(), "autodiff.grad", {{"argnums", float_inputs(loss)}}, out);
  }
};

// Whether the gradient's error says that a row has no rule, rather than that one failed.
inline bool lacks_a_rule(const std::string& failed) {
  return failed.find("its row would need one of the columns") != std::string::npos ||
         failed.find("for a gradient") != std::string::npos;
}

}  // namespace tenon::test
