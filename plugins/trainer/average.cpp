// SPDX-License-Identifier: Apache-2.0
// "trainer.average": an exponential moving average of weights (Polyak & Juditsky 1992; as PyTorch's
// AveragedModel with get_ema_multi_avg_fn): NAME/average = decay*average + (1 - decay)*NAME, of the
// weights after the update. Whoever runs the step sets each average to its weight before the first
// step.
#include <algorithm>

#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/role/pass.hpp"
#include "tenon/sdk/setting.hpp"

namespace tenon::trainer {
namespace {

class Average {
 public:
  static Result<Average> create(tn_ctx*, const Options& options) {
    return Average{options.number("decay"), options.texts("parameters")};
  }

  Status run(tn_graph* raw, const Cancel&, Sink& report) {
    TN_TRY(edit, Edit::begin(raw));
    Builder b(edit);
    std::vector<Value> before = edit.graph().list(TN_LIST_STATES, 0);
    std::vector<Value> after = edit.graph().list(TN_LIST_STATES, 1);
    for (const std::string& name : parameters_)
      if (std::none_of(before.begin(), before.end(), [&](Value v) { return v.name() == name; }))
        return invalid(cat("option parameters: no state ", name, "; apply trainer.step first"));
    for (size_t i = 0; i < before.size(); ++i) {
      if (std::find(parameters_.begin(), parameters_.end(), before[i].name()) == parameters_.end())
        continue;
      uint32_t dtype = after[i].dtype();
      TN_TRY(slot, Slot::open(edit, cat(before[i].name(), "/average"), before[i].type()));
      Value decay = setting(b, "average", decay_, dtype);
      Value next =
          b.add(b.mul(slot.before, decay), b.mul(after[i], b.sub(b.number(1, dtype), decay)));
      TN_CHECK(b.status());
      TN_CHECK(slot.close(edit, next));
      TN_CHECK(edit.set_note(slot.before.id, kUpdatedNote, any_int(1)));
    }
    TN_CHECK(edit.commit());
    return report.write(cat("{\"averages\": ", parameters_.size(), "}"));
  }

  double decay_;
  std::vector<std::string> parameters_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(average,
           tenon::trainer::Average,
           "trainer.average",
           "a moving average of weights: after the optimizer",
           R"({
  "required": ["parameters"],
  "properties": {
    "decay": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.999, "description": "decay rate of the average"},
    "parameters": {"type": ["array", "string"], "items": {"type": "string"}, "description": "names of the states to average"}}})")
