// SPDX-License-Identifier: Apache-2.0
// Every row's gradient, from its own sample: against central differences in fp64 on "reference".
#include <set>

#include <gmock/gmock.h>

#include "tenon/role/op.h"

#include "tenon/sdk/build.hpp"

#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {
namespace {

constexpr uint64_t kSeeds = 4;

class GradientConformance : public AutodiffTest {
 protected:
  void SetUp() override {
    AutodiffTest::SetUp();
    for (const char* plugin : {"ops", "autodiff"}) {
      Status loaded(tenon_plugin_load(session_, str(plugin)));
      ASSERT_EQ(text_of(std::move(loaded)), "");
    }
    for (uint64_t i = 0; i < services.op->count(ctx_); ++i)
      rows_.push_back(services.op->at(ctx_, i));
  }

  // The sample with its float outputs, weighted and summed, as the one output; f32 turned to f64.
  Result<OwnedGraph> scalar_of_sample(const tn_op* row, uint64_t seed) {
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->create(ctx_, &raw));
    OwnedGraph graph = OwnedGraph::take(raw);
    TN_TRY(edit, Edit::begin(raw));
    tn_node_id id = 0;
    TN_CHECK(row->sample(edit.raw, seed, &id));
    std::vector<Value> outputs = edit.node(id).outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) TN_CHECK(edit.output(cat("y", i), outputs[i]));
    TN_CHECK(edit.commit());
    StringSink sink;
    TN_CHECK(services.graph->print(raw, TN_PRINT_DATA, sink.get()));
    tn_graph* wide = nullptr;
    TN_CHECK(services.graph->parse(ctx_, str(widened(sink.text)), &wide));
    graph = OwnedGraph::take(wide);
    TN_CHECK(add_scalar(wide));
    return Result<OwnedGraph>(std::move(graph));
  }

  // fp64 in place of fp32: inputs and number constants; hex data stays (and its sample is skipped).
  static std::string widened(std::string text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      size_t end = text.find('\n', at);
      std::string line = text.substr(at, end - at);
      size_t from = line.find_first_not_of(' ');
      bool declares = from != std::string::npos && (line.compare(from, 6, "input ") == 0 ||
                                                    line.compare(from, 9, "constant ") == 0);
      bool computes = from != std::string::npos && line[from] == '%';
      // A line that names its result's type (Cast) says f32 twice.
      if ((declares || computes) && line.find("dtype f32") == std::string::npos)
        for (size_t f = line.find("f32["); f != std::string::npos; f = line.find("f32[", f))
          line.replace(f, 3, "f64");
      out += line + "\n";
      if (end == std::string::npos) break;
      at = end + 1;
    }
    return out;
  }

  Status add_scalar(tn_graph* graph) {
    TN_TRY(edit, Edit::begin(graph));
    Builder b(edit);
    std::mt19937 random(11);
    Value total;
    for (Value y : edit.graph().outputs()) {
      if (!is_float(y.dtype())) continue;
      y = b.cast(y, TN_F64);
      Type type = b.fixed(y, "sample");
      Numbers weights = random_numbers(type.elements(), random, 0.5, 1.5);
      Value w = b.take(edit.constant<double>(TN_F64, type.dims, weights));
      Value sum = b.op("ReduceSum", {b.mul(y, w)}, {{"keepdims", 0}});
      total = total ? b.add(total, sum) : sum;
    }
    TN_CHECK(b.status());
    for (uint64_t i = edit.graph().outputs().size(); i-- > 0;)
      TN_CHECK(services.edit->remove_output(edit.raw, i));
    if (total) TN_CHECK(edit.output("loss", total));
    return edit.commit();
  }

  // Where the loss is a number: as they come, positive, small, or from 1.1 (logarithms, arc
  // cosine).
  std::vector<Numbers> inputs_for(const OwnedGraph& loss, uint32_t seed) {
    constexpr double kScaled[][2] = {{1, 0}, {0.4, 0}, {0.2, 1.5}, {0.3, 1.2}};
    std::vector<Numbers> out, at;
    for (auto [scale, shift] : kScaled) {
      std::mt19937 random(seed);
      at.clear();
      for (Value v : loss.view().inputs()) {
        at.push_back(random_numbers(v.type().elements(), random));
        for (double& x : at.back())
          x = x * scale + shift;
      }
      Status ran = run(loss.get(), at, out);
      if (ran.ok() && !out.empty() && std::isfinite(out[0][0])) break;
    }
    return at;
  }

  // The largest difference between `gradient` and central differences of `loss` by input i.
  Status compare(const OwnedGraph& loss,
                 const std::vector<Numbers>& at,
                 size_t i,
                 const Numbers& gradient,
                 double& worst) {
    tn_plan* plan = nullptr;
    TN_CHECK(tenon_compile(session_, loss.get(), str(R"({"backend": "reference"})"), &plan));
    std::vector<Numbers> inputs = at, out;
    Status status;
    // A dozen elements of each input, spread over it, stand for all.
    size_t stride = std::max<size_t>(1, at[i].size() / 12);
    for (size_t k = 0; status.ok() && k < at[i].size(); k += stride) {
      constexpr double kStep = 2e-6;
      double ends[2] = {};
      for (int side = 0; side < 2 && status.ok(); ++side) {
        inputs[i][k] = at[i][k] + (side ? kStep : -kStep);
        status = run_plan(plan, loss.get(), inputs, out);
        if (status.ok()) ends[side] = out[0][0];
      }
      inputs[i][k] = at[i][k];
      // Near a pole (Tan, Atanh) differences are no measure.
      if (std::fabs(ends[1] - ends[0]) > 50 * kStep) continue;
      double slope = (ends[1] - ends[0]) / (2 * kStep);
      // Differences of a large loss are no better than its rounding.
      double scale = std::max({1.0, std::fabs(slope), std::fabs(ends[0]) * 1e-3});
      bool no_number = std::isnan(slope) && std::isnan(gradient[k]);
      if (!no_number) worst = std::max(worst, std::fabs(slope - gradient[k]) / scale);
      if (std::isnan(slope) != std::isnan(gradient[k])) worst = HUGE_VAL;
    }
    services.eval->release(plan);
    return status;
  }

  // Checks one sample; false when nothing of it can be differentiated.
  bool check(const OwnedGraph& loss, int order) {
    if (loss.view().outputs().empty()) return false;
    json wrt = json::array();
    std::vector<size_t> positions;
    std::vector<Value> inputs = loss.view().inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!is_float(inputs[i].dtype())) continue;
      positions.push_back(i);
      wrt.push_back(i);
    }
    if (positions.empty()) return false;
    OwnedGraph g;
    std::string failed = apply(loss.get(), "autodiff.grad", {{"argnums", wrt}}, g);
    if (failed.find("its row would need one of the columns") != std::string::npos ||
        failed.find("for a gradient") != std::string::npos) {
      size_t from = failed.find(' ') + 1;
      without_rule_.insert(failed.substr(from, failed.find(' ', from) - from));
      return true;
    }
    EXPECT_EQ(failed, "");
    if (!failed.empty()) return true;
    std::vector<Numbers> at = inputs_for(loss, 3), gradients;
    Status ran = run(g.get(), at, gradients);
    EXPECT_EQ(text_of(std::move(ran)), "");
    if (gradients.size() != positions.size()) return true;
    for (size_t k = 0; k < positions.size(); ++k) {
      EXPECT_EQ(gradients[k].size(), at[positions[k]].size()) << "gradient by input " << k;
      if (gradients[k].size() != at[positions[k]].size()) return true;
      double worst = 0;
      Status compared = compare(loss, at, positions[k], gradients[k], worst);
      EXPECT_EQ(text_of(std::move(compared)), "");
      EXPECT_LT(worst, 1e-6) << "gradient by input " << positions[k] << ", order " << order;
    }
    if (order < 2) return true;
    Status summed = add_scalar(g.get());
    EXPECT_EQ(text_of(std::move(summed)), "");
    check(g, order - 1);
    return true;
  }

  std::vector<const tn_op*> rows_;
  std::set<std::string> without_rule_;  // all that they do, or a form of it
};

// Rows whose gradient is not defined: their results are steps (Cast to short types too) or random,
// or they are containers.
bool has_no_gradient(std::string_view type) {
  constexpr std::string_view kNone[] = {"ArgMax",
                                        "ArgMin",
                                        "Hardmax",
                                        "Shape",
                                        "Size",
                                        "NonZero",
                                        "EyeLike",
                                        "BitCast",
                                        "QuantizeLinear",
                                        "DequantizeLinear",
                                        "DynamicQuantizeLinear",
                                        "QLinearConv",
                                        "QLinearMatMul",
                                        "StopGradient",
                                        "Cast",
                                        "ConvInteger",
                                        "MatMulInteger",
                                        "Dropout"};
  return std::find(std::begin(kNone), std::end(kNone), type) != std::end(kNone);
}

TEST_F(GradientConformance, CentralDifferences) {
  int checked = 0;
  const char* only = std::getenv("TENON_TEST_ROW");
  for (const tn_op* row : rows_) {
    if (!row->sample || has_no_gradient(view(row->type)) || is_special(*row)) continue;
    if (only && view(row->type) != only) continue;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(cat(view(row->type), " seed ", seed));
      auto loss = scalar_of_sample(row, seed);
      // Some samples state f32 in more places than inputs and constants; they stay out.
      if (loss.ok()) checked += check(*loss, 2);
    }
  }
  if (only) return;
  EXPECT_THAT(without_rule_, testing::IsSubsetOf({"AffineGrid",
                                                  "CausalConvWithState",
                                                  "CenterCropPad",
                                                  "Col2Im",
                                                  "DFT",
                                                  "DeformConv",
                                                  "Det",
                                                  "GRU",
                                                  "GridSample",
                                                  "LSTM",
                                                  "LinearAttention",
                                                  "LpNormalization",
                                                  "LpPool",
                                                  "MaxUnpool",
                                                  "RNN",
                                                  "Resize",
                                                  "RoiAlign",
                                                  "STFT",
                                                  "ScatterND",
                                                  "TensorScatter",
                                                  "ai.onnx.ml:ArrayFeatureExtractor",
                                                  "ai.onnx.ml:Binarizer",
                                                  "ai.onnx.ml:TreeEnsemble",
                                                  "ai.onnx.preview.training:Adagrad",
                                                  "ai.onnx.preview.training:Adam",
                                                  "ai.onnx.preview.training:Momentum",
                                                  "ai.onnx.preview:FlexAttention"}));
  EXPECT_GT(checked, 80 * static_cast<int>(kSeeds));
}

}  // namespace
}  // namespace tenon::test
