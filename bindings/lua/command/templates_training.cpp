// SPDX-License-Identifier: Apache-2.0
// Templates of losses and optimizers.
#include "templates.hpp"

namespace tenon::command {

const char* const kLossTemplate = R"code(@include@ "tenon/sdk/build.hpp"
@include@ "tenon/sdk/role/loss.hpp"

namespace {

// The mean of |prediction - target|.
struct @Class@ {
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }

  tenon::Result<tenon::Value> build(tenon::EditView edit, const tenon::Objective& objective) const {
    if (objective.predictions.size() != 1 || objective.targets.size() != 1)
      return tenon::invalid("expected one prediction and one target");
    tenon::Value prediction = objective.predictions[0], target = objective.targets[0];
    if (target.dtype() != prediction.dtype() || target.type().dims != prediction.type().dims)
      return tenon::invalid(tenon::cat("target ", target.name(), ": expected the type of ",
                                       prediction.name()));
    tenon::Builder b(edit);
    tenon::Value distance = b.op("Abs", {b.sub(prediction, target)});
    tenon::Value mean = b.op("ReduceMean", {distance}, {{"keepdims", 0}});
    TN_CHECK(b.status());
    return mean;
  }
};

}  // namespace

TENON_LOSS(@name@, @Class@, "@id@", "mean distance", "{}")
)code";

const char* const kOptimizerTemplate = R"code(@include@ "tenon/sdk/build.hpp"
@include@ "tenon/sdk/role/optimizer.hpp"

namespace {

// p -= rate * velocity, where velocity = momentum * velocity + gradient.
struct @Class@ {
  double momentum;
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options& options) {
    return @Class@{options.number("momentum")};
  }

  tenon::Status build(tenon::EditView edit,
                      const tenon::Update& update,
                      std::span<tenon::Value> after) const {
    tenon::Builder b(edit);
    for (size_t i = 0; i < after.size(); ++i) {
      const tenon::Parameter& one = update.parameters[i];
      TN_TRY(velocity,
             tenon::Slot::open(edit, tenon::cat(one.name, "/velocity"), one.value.type()));
      uint32_t dtype = one.value.dtype();
      tenon::Value kept = b.mul(velocity.before, b.number(momentum, dtype));
      tenon::Value moved = b.add(kept, one.gradient);
      TN_CHECK(b.status());
      TN_CHECK(velocity.close(edit, moved));
      after[i] = b.sub(one.value, b.mul(moved, b.cast(update.rate, dtype)));
    }
    return b.status();
  }
};

}  // namespace

TENON_OPTIMIZER(@name@, @Class@, "@id@", "gradient descent with momentum",
                R"({"properties": {"momentum": {"type": "number", "minimum": 0, "maximum": 1,
                                                "default": 0.9,
                                                "description": "what stays of the velocity"}}})")
)code";

}  // namespace tenon::command
