// SPDX-License-Identifier: Apache-2.0
// The table of templates, and those of the roles that look at models.
#include "templates.hpp"

namespace tenon::command {
namespace {

constexpr const char* kPass = R"code(@include@ "tenon/sdk/role/pass.hpp"

namespace {

// Before: y = Identity(x), z = f(y).  After: z = f(x).
struct @Class@ {
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }

  tenon::Status run(tn_graph* graph, const tenon::Cancel& cancel, tenon::Sink& report) {
    TN_TRY(edit, tenon::Edit::begin(graph));
    int dropped = 0;
    for (tenon::Node node : edit.graph().nodes()) {
      TN_CHECK(cancel.check());
      if (!node.is("Identity")) continue;
      TN_CHECK(edit.replace(node.output(), node.input(0)));
      TN_CHECK(edit.erase(node));
      ++dropped;
    }
    TN_CHECK(edit.commit());
    return report.write("{\"dropped\": " + std::to_string(dropped) + "}");
  }
};

}  // namespace

TENON_PASS(@name@, @Class@, "@id@", "removes Identity nodes", "{}")
)code";

constexpr const char* kSchedule = R"code(@include@ "tenon/sdk/role/schedule.hpp"

namespace {

// base / sqrt(1 + step)
struct @Class@ {
  double base;
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options& options) {
    return @Class@{options.number("base")};
  }
  tenon::Result<double> value(uint64_t step, uint64_t) const {
    return base / std::sqrt(1 + static_cast<double>(step));
  }
};

}  // namespace

TENON_SCHEDULE(@name@, @Class@, "@id@", "falls with the square root of the step",
               R"({"properties": {"base": {"type": "number", "default": 1,
                                           "description": "first value"}}})")
)code";

constexpr const char* kCallback = R"code(@include@ "tenon/sdk/role/callback.hpp"

namespace {

// Ends a run once the loss of an epoch is small enough.
struct @Class@ {
  double loss;
  double sum = 0;
  uint64_t epoch_now = 0, steps = 0;
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options& options) {
    return @Class@{options.number("loss")};
  }
  tenon::Result<bool> step(const tn_progress_point& at) {
    if (at.epoch != epoch_now) sum = 0, steps = 0, epoch_now = at.epoch;
    if (!at.skipped) sum += at.loss, ++steps;
    return false;
  }
  tenon::Result<bool> epoch(std::string_view, tenon::Graph) {
    return steps > 0 && sum / static_cast<double>(steps) <= loss;
  }
};

}  // namespace

TENON_CALLBACK(@name@, @Class@, "@id@", "ends a run at a small loss",
               R"({"properties": {"loss": {"type": "number", "default": 0.01,
                                           "description": "small enough"}}})")
)code";

constexpr const char* kImportance = R"code(@include@ <cmath>

@include@ "tenon/sdk/role/importance.hpp"

namespace {

// The sum of the absolute weights that make a channel.
struct @Class@ {
  static constexpr uint32_t kNeeds = 0;  // weights are enough: no gradients, no activations
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }
  tenon::Status score(const tn_channel_group& group, std::span<double> scores) {
    for (const tn_group_member* member : tenon::members_of(group)) {
      if (member->kind != TN_MEMBER_MAKES) continue;
      for (uint64_t at = 0; at < member->outer * member->extent * member->inner; ++at) {
        uint64_t entry = at / member->inner % member->extent;
        int64_t channel = member->channel ? member->channel[entry] : static_cast<int64_t>(entry);
        if (channel >= 0) scores[static_cast<size_t>(channel)] += std::fabs(member->data[at]);
      }
    }
    return {};
  }
};

}  // namespace

TENON_IMPORTANCE(@name@, @Class@, "@id@", "sum of the absolute weights", "{}")
)code";

constexpr const char* kObserver = R"code(@include@ <algorithm>
@include@ <cmath>
@include@ <cstring>

@include@ "tenon/sdk/number.hpp"
@include@ "tenon/sdk/role/observer.hpp"

namespace {

// The lowest and the highest number.
class @Class@ {
 public:
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }
  tenon::Status observe(const DLTensor& tensor) {
    TN_TRY(numbers, tenon::numbers_as<double>(tensor));
    for (double x : numbers) {
      if (!std::isfinite(x)) {
        ++seen_.not_finite;
        continue;
      }
      add({x, x, 1, 0});
    }
    return {};
  }
  tenon::Status save(tenon::Sink& sink) const {
    return sink.write({reinterpret_cast<const char*>(&seen_), sizeof seen_});
  }
  tenon::Status merge(std::string_view saved) {
    tn_range other{};
    if (saved.size() != sizeof other)
      return tenon::invalid(
          tenon::cat("saved state: expected ", sizeof other, " bytes, got ", saved.size()));
    std::memcpy(&other, saved.data(), sizeof other);
    if (!std::isfinite(other.low) || !std::isfinite(other.high) || other.low > other.high)
      return tenon::invalid("saved state: expected a range, got other bytes");
    add(other);
    return {};
  }
  tenon::Result<tn_range> range() const {
    if (seen_.seen == 0) return tenon::Status(TN_FAILED_PRECONDITION, "no finite number was seen");
    return seen_;
  }

 private:
  void add(const tn_range& other) {
    seen_.not_finite += other.not_finite;
    if (other.seen == 0) return;
    seen_.low = seen_.seen ? std::min(seen_.low, other.low) : other.low;
    seen_.high = seen_.seen ? std::max(seen_.high, other.high) : other.high;
    seen_.seen += other.seen;
  }
  tn_range seen_{};
};

}  // namespace

TENON_OBSERVER(@name@, @Class@, "@id@", "lowest and highest number",
               R"({"properties": {
  "bits": {"type": "integer", "minimum": 2, "maximum": 16, "default": 8, "description": "what the range is for"},
  "symmetric": {"type": "boolean", "default": false, "description": "around zero"}}})")
)code";

constexpr const char* kOps = R"code(@include@ "tenon/sdk/role/op.hpp"

namespace {

// One output element, as a function of one element of each input (docs: abi/expr.md).
constexpr tn_op k@Class@ = tenon::op_row({.type = "@Class@",
                                          .domain = "@domain@",
                                          .traits = TN_OP_POINTWISE,
                                          .axes = "*",
                                          .expr = "x * sigmoid(1.702 * x)",
                                          .quant = "table"});

}  // namespace

TENON_OPS(@name@, &k@Class@)
)code";

const Template kTemplates[] = {
    {"pass", "COMPONENTS", kPass},
    {"schedule", "COMPONENTS", kSchedule},
    {"observer", "COMPONENTS", kObserver},
    {"callback", "COMPONENTS", kCallback},
    {"importance", "COMPONENTS", kImportance},
    {"ops", "OPS", kOps},
    {"reader", "COMPONENTS", kReaderTemplate},
    {"writer", "COMPONENTS", kWriterTemplate},
    {"dataset", "COMPONENTS", kDatasetTemplate},
    {"metric", "COMPONENTS", kMetricTemplate},
    {"loss", "COMPONENTS", kLossTemplate},
    {"optimizer", "COMPONENTS", kOptimizerTemplate},
    {"layer", "COMPONENTS", kLayerTemplate},
    {"initializer", "COMPONENTS", kInitializerTemplate},
    {"backend", "COMPONENTS", kBackendTemplate},
    {"kernel", "COMPONENTS", kKernelTemplate},
    {"collective", "COMPONENTS", kCollectiveTemplate},
};

}  // namespace

std::span<const Template> templates() {
  return kTemplates;
}

}  // namespace tenon::command
