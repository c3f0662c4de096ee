// SPDX-License-Identifier: Apache-2.0
// "quantizer.adaround": each number of a weight goes up or down as is best for what its layer
// gives, which is learned (Nagel et al., ICML 2020). The products with the sums of inputs, nearly
// all of the work, run on a backend.
#include "algorithms/adaround.hpp"

#include <algorithm>

#include "weight_rounding.hpp"

namespace tenon::quantizer {
namespace {

// x -> x H for rows of x, compiled for so many.
class Multiplier {
 public:
  static Result<Multiplier> make(tn_ctx* ctx,
                                 int64_t rows,
                                 int64_t columns,
                                 std::span<const double> hessian,
                                 const std::vector<std::string>& backends) {
    Multiplier out;
    out.shape_ = {rows, columns};
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->create(ctx, &raw));
    OwnedGraph graph = OwnedGraph::take(raw);
    TN_TRY(edit, Edit::begin(raw));
    TN_TRY(x, edit.input("x", Type(TN_F32, out.shape_)));
    std::vector<float> numbers(hessian.begin(), hessian.end());
    std::vector<int64_t> square{columns, columns};
    TN_TRY(h, edit.constant<float>(TN_F32, square, numbers));
    TN_TRY(y, edit.op("MatMul", {x, h}));
    TN_CHECK(edit.output("y", y));
    TN_CHECK(edit.commit());
    TN_TRY(plan, Plan::on_first(ctx, graph.view(), {}, backends));
    out.plan_ = std::move(plan);
    return Result<Multiplier>(std::move(out));
  }

  Status run(std::span<const float> x, std::span<float> y) {
    DenseView given(TN_F32, shape_, x.data());
    std::vector<DLTensor> inputs{*given};
    TN_CHECK(plan_.run(inputs));
    const float* made = plan_[0].data<float>();
    std::copy(made, made + y.size(), y.begin());
    return {};
  }

 private:
  std::vector<int64_t> shape_;
  Plan plan_;
};

class Adaround : public WeightRounding {
 public:
  static Result<Adaround> create(tn_ctx* ctx, const Options& options) {
    AdaroundPlan plan;
    plan.steps = options.integer("steps");
    plan.rate = options.number("rate");
    auto round = [plan, ctx, backends = options.texts("backend")](
                     const WeightGrid& grid, std::span<const double> hessian,
                     const Rows& rows) -> Result<std::vector<float>> {
      TN_TRY(product, Multiplier::make(ctx, grid.rows, grid.columns, hessian, backends));
      double mean = 0;
      for (int64_t i = 0; i < grid.columns; ++i)
        mean += hessian[static_cast<size_t>(i * (grid.columns + 1))] /
                static_cast<double>(grid.columns);
      Status failed;
      auto times = [&](std::span<const float> x, std::span<float> y) {
        failed = product.run(x, y);
        return failed.ok();
      };
      std::vector<float> found = adaround(grid, mean, plan, times, rows);
      if (!failed.ok()) return failed;
      return found;
    };
    TN_TRY(base, WeightRounding::create(ctx, options, round));
    return Result<Adaround>(Adaround(std::move(base)));
  }

 private:
  explicit Adaround(WeightRounding base) : WeightRounding(std::move(base)) {}
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(adaround,
           tenon::quantizer::Adaround,
           "quantizer.adaround",
           "weights rounded up or down as is best for what layers give, which is learned",
           R"({"required": ["data", "original"], "properties": {)" TENON_REPAIR_OPTIONS
           "," TENON_ROUNDED_WEIGHTS_OPTION R"(,
    "steps": {"type": "integer", "minimum": 1, "default": 1000, "description": "optimization steps of each layer"},
    "rate": {"type": "number", "minimum": 0, "default": 0.03, "description": "learning rate"}}})")
