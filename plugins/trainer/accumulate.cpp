// SPDX-License-Identifier: Apache-2.0
// "trainer.accumulate": one update of several batches, as if they had been one. Before the update,
// gradients (outputs grad/NAME, of a mean over the batch) become those of the mean over all samples
// since the last update: states NAME/accumulated hold sum(samples * divisor * gradient),
// accumulated/weight holds sum(samples * share). A mean of means would be wrong where batches
// differ in size or in how many labels count (objective.hpp has more of share and divisor). New
// input: accumulated/update, 1 where this batch is the last one of its window.
// "trainer.accumulate_step" comes behind the update, see accumulate_step.cpp.
#include "accumulate.hpp"

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "gradients.hpp"

namespace tenon::trainer {
namespace {

class Accumulate {
 public:
  static Result<Accumulate> create(tn_ctx*, const Options& options) {
    return Accumulate{options.number("samples"), options.text("share"), options.text("divisor")};
  }

  Status run(tn_graph* raw, const Cancel&, Sink& report) {
    if (Graph{raw}.find(kAccumulatedUpdate))
      return {TN_FAILED_PRECONDITION, "trainer.accumulate was applied already"};
    TN_TRY(edit, Edit::begin(raw));
    TN_TRY(gradients, gradients_of(edit.graph()));
    Builder b(edit);
    TN_TRY(weight, samples_times(b, "share", share_));
    TN_TRY(factor, samples_times(b, "divisor", divisor_.empty() ? share_ : divisor_));
    TN_TRY(update, edit.input(kAccumulatedUpdate, Type(TN_F32, {})));
    Value zero = b.number(0, TN_F32), is_last = b.op("Greater", {update, zero});
    TN_TRY(total, Slot::open(edit, std::string(kAccumulatedWeight), Type(TN_F32, {})));
    Value sum = b.add(total.before, weight), some = b.op("Greater", {sum, zero});
    // Where no label counted there is nothing to divide by, and no update.
    Value divisor = b.op("Where", {some, sum, b.number(1, TN_F32)});
    Value held = b.op("Not", {b.op("And", {is_last, some})});
    TN_CHECK(b.status());
    TN_CHECK(Status(services.edit->set_value_name(edit.raw, held.id, str(kAccumulatedHeld))));
    TN_CHECK(total.close(edit, b.op("Where", {is_last, zero, sum})));
    for (const Gradient& one : gradients) {
      std::string name(edit.graph().output_name(one.place).substr(kGradient.size()));
      uint32_t dtype = one.value.dtype();
      TN_TRY(slot, Slot::open(edit, cat(name, "/accumulated"), one.value.type()));
      Value all = b.add(slot.before, b.mul(one.value, b.cast(factor, dtype)));
      Value mean = b.div(all, b.cast(divisor, dtype));
      Value kept = b.op("Where", {is_last, b.number(0, dtype), all});
      TN_CHECK(b.status());
      TN_CHECK(slot.close(edit, kept));
      TN_CHECK(edit.set_note(mean.id, kAccumulatedNote, any_int(1)));
      TN_CHECK(Status(services.edit->set_output(edit.raw, one.place, mean.id)));
    }
    TN_CHECK(edit.commit());
    return report.write(cat("{\"gradients\": ", gradients.size(), "}"));
  }

 private:
  Accumulate(double samples, std::string share, std::string divisor)
      : samples_(samples), share_(std::move(share)), divisor_(std::move(divisor)) {}

  Result<Value> samples_times(Builder& b,
                              std::string_view option,
                              const std::string& factor) const {
    Value samples = b.number(samples_, TN_F32);
    if (factor.empty()) return samples;
    Value found = b.edit().graph().find(factor);
    if (!found) return invalid(cat("option ", option, ": no value ", factor, " in the graph"));
    return b.mul(samples, b.cast(found, TN_F32));
  }

  double samples_;
  std::string share_, divisor_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(accumulate,
           tenon::trainer::Accumulate,
           "trainer.accumulate",
           "gradients of the mean over several batches: before the optimizer",
           R"({
  "properties": {
    "samples": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "samples of the batch: the weight of its gradients"},
    "share": {"type": "string", "description": "the scalar value with the share of them that counts, where labels are ignored"},
    "divisor": {"type": "string", "description": "the scalar value that the loss was divided by, where that is not the share"}}})")
