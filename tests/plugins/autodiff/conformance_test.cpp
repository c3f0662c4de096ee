// SPDX-License-Identifier: Apache-2.0
// Every row's gradient, from its own sample: against differences on "reference", in fp64 where the
// sample can be.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "plugins/autodiff/row_samples.hpp"

namespace tenon::test {
namespace {

constexpr uint64_t kSeeds = 4;

// How differences are taken and compared, and up to which derivative.
struct Precision {
  double step, smooth, tolerance;
  int order;
};
constexpr Precision kDouble{1e-4, 1e-4, 1e-6, 2};
constexpr Precision kOwnType{1e-2, 1e-2, 1e-2, 1};  // of float32

class GradientConformance : public RowSamples {
 protected:
  // The sample as one number, in f64 where it said f32. Some say so in more places than inputs and
  // constants: they stay as they are.
  Result<OwnedGraph> scalar_of_sample(const tn_op* row, uint64_t seed) {
    TN_TRY(graph, sample(row, seed));
    StringSink sink;
    TN_CHECK(services.graph->print(graph.get(), TN_PRINT_DATA, sink.get()));
    tn_graph* wide = nullptr;
    precision_ = kDouble;
    if (Status(services.graph->parse(ctx_, str(widened(sink.text)), &wide)).ok())
      graph = OwnedGraph::take(wide);
    else
      precision_ = kOwnType;
    TN_CHECK(add_scalar(graph.get(), TN_F64));
    return Result<OwnedGraph>(std::move(graph));
  }

  // fp64 in place of fp32: inputs and number constants; hex data stays.
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

  struct Slope {
    size_t input, element;
    double value;
  };
  // Differences of fourth order for a dozen elements of each input; nothing where they differ from
  // those of second order, that is at a kink, a jump or a pole.
  Status slopes_at(tn_plan* plan,
                   const OwnedGraph& loss,
                   const std::vector<Numbers>& at,
                   const std::vector<size_t>& positions,
                   std::vector<Slope>& slopes) {
    const double step = precision_.step;
    std::vector<Numbers> inputs = at, out;
    slopes.clear();
    for (size_t i : positions) {
      size_t stride = std::max<size_t>(1, at[i].size() / 12);
      for (size_t k = 0; k < at[i].size(); k += stride) {
        double ends[4] = {};
        for (int side = 0; side < 4; ++side) {
          constexpr double kSteps[] = {-2, -1, 1, 2};
          inputs[i][k] = at[i][k] + kSteps[side] * step;
          TN_CHECK(run_plan(plan, loss.get(), inputs, out));
          ends[side] = out[0][0];
        }
        inputs[i][k] = at[i][k];
        double near = (ends[2] - ends[1]) / (2 * step), far = (ends[3] - ends[0]) / (4 * step);
        bool smooth = std::fabs(near - far) < precision_.smooth * std::max(1.0, std::fabs(near));
        if (!smooth) return unsupported("not smooth here");
        slopes.push_back({i, k, (4 * near - far) / 3});
      }
    }
    return {};
  }
  // Inputs near which the loss is smooth, and its slopes there.
  bool find_smooth(const OwnedGraph& loss,
                   const std::vector<size_t>& positions,
                   std::vector<Numbers>& at,
                   std::vector<Slope>& slopes) {
    tn_plan* plan = nullptr;
    Status compiled(tenon_compile(session_, loss.get(), str(R"({"backend": "reference"})"), &plan));
    EXPECT_EQ(text_of(std::move(compiled)), "");
    if (!plan) return false;
    bool found = false;
    for (uint32_t attempt = 0; attempt < 24 && !found; ++attempt) {
      at = inputs_for(loss, attempt);
      found = slopes_at(plan, loss, at, positions, slopes).ok();
    }
    services.eval->release(plan);
    return found;
  }

  // Checks one sample; false when nothing of it can be differentiated.
  bool check(const OwnedGraph& loss, int order) {
    if (loss.view().outputs().empty()) return false;
    std::vector<size_t> positions = float_inputs(loss);
    if (positions.empty()) return false;
    OwnedGraph g;
    std::string failed = gradient(loss, g);
    if (lacks_a_rule(failed)) {
      size_t from = failed.find(' ') + 1;
      without_rule_.insert(failed.substr(from, failed.find(' ', from) - from));
      return true;
    }
    EXPECT_EQ(failed, "");
    if (!failed.empty()) return true;
    std::vector<Numbers> at, gradients;
    std::vector<Slope> slopes;
    bool smooth = find_smooth(loss, positions, at, slopes);
    EXPECT_TRUE(smooth) << "no inputs found where the loss is smooth, order " << order;
    if (!smooth) return true;
    Status ran = run(g.get(), at, gradients);
    EXPECT_EQ(text_of(std::move(ran)), "");
    if (gradients.size() != positions.size()) return true;
    for (const Slope& slope : slopes) {
      size_t which = std::find(positions.begin(), positions.end(), slope.input) - positions.begin();
      EXPECT_EQ(gradients[which].size(), at[slope.input].size());
      if (gradients[which].size() != at[slope.input].size()) return true;
      double got = gradients[which][slope.element];
      double scale = std::max(1.0, std::fabs(slope.value));
      EXPECT_NEAR(got / scale, slope.value / scale, precision_.tolerance)
          << "gradient by input " << slope.input << ", element " << slope.element << ", order "
          << order;
    }
    if (order < 2) return true;
    Status summed = add_scalar(g.get(), TN_F64);
    EXPECT_EQ(text_of(std::move(summed)), "");
    check(g, order - 1);
    return true;
  }

  Precision precision_ = kDouble;
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
  for (const tn_op* row : sampled_rows()) {
    if (has_no_gradient(view(row->type))) continue;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(cat(view(row->type), " seed ", seed));
      auto loss = scalar_of_sample(row, seed);
      if (loss.ok())
        checked += check(*loss, precision_.order);
      else  // Compress and Unique, whose results are as long as the numbers say
        EXPECT_THAT(loss.status().text(), testing::HasSubstr("all sizes must be known"));
    }
  }
  if (!is_for_all_rows()) return;
  // Adding a gradient shortens the list.
  EXPECT_THAT(without_rule_,
              testing::UnorderedElementsAre("DynamicQuantizeLinear", "tenon:CtcLossGrad"));
  EXPECT_GT(checked, 80 * static_cast<int>(kSeeds));
}

// Most gradients come from axes, expr, decompose, or that a row is a view.
TEST_F(GradientConformance, HandWrittenGradientsAreFew) {
  std::set<decltype(tn_op::vjp)> gradients;
  int rows = 0;
  uint64_t n_rows = services.op->count(ctx_);
  for (uint64_t i = 0; i < n_rows; ++i) {
    const tn_op* row = services.op->at(ctx_, i);
    if (!row->vjp) continue;
    gradients.insert(row->vjp);
    ++rows;
  }
  std::printf("hand-written gradients: %zu, for %d of %lu rows\n", gradients.size(), rows, n_rows);
  // Six of them factorisations, whose gradients follow from nothing else, two (Softplus, Mish)
  // whose expressions have a kink that is none, two (Relu, Clip) that read the result, so that a
  // training step does not keep the operand, and one (PRelu) whose slope at 0 is PyTorch's.
  EXPECT_LE(rows, 62);
}

}  // namespace
}  // namespace tenon::test
