// SPDX-License-Identifier: Apache-2.0
// "trainer.accumulate_step": leaves what an update changes as it was, but in the last step of a
// window: parameters, slots, counts, averages, and the loss scale, which gradients reach. Running
// statistics and random keys go on, as they do with batches that are updated one by one.
#include <set>

#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "accumulate.hpp"

namespace tenon::trainer {
namespace {

class AccumulateStep {
 public:
  static Result<AccumulateStep> create(tn_ctx*, const Options&) { return AccumulateStep{}; }

  Status run(tn_graph* raw, const Cancel&, Sink& report) {
    if (!Graph{raw}.find(kAccumulatedHeld))
      return {TN_FAILED_PRECONDITION,
              "expected gradients of a window, got none; apply trainer.accumulate first"};
    TN_TRY(edit, Edit::begin(raw));
    Value held = edit.graph().find(kAccumulatedHeld);
    std::set<tn_value_id> touched = reached(edit.graph());
    std::vector<Value> before = edit.graph().list(TN_LIST_STATES, 0);
    std::vector<Value> after = edit.graph().list(TN_LIST_STATES, 1);
    size_t n_held = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      bool updated = before[i].note(kUpdatedNote).tag != TN_ANY_NONE;
      if (!updated && !touched.contains(after[i].id)) continue;
      TN_CHECK(hold(edit, before[i], after[i], held));
      ++n_held;
    }
    TN_CHECK(edit.commit());
    return report.write(cat("{\"held_states\": ", n_held, "}"));
  }

 private:
  // What is computed from a gradient of a window.
  static std::set<tn_value_id> reached(Graph graph) {
    std::vector<Value> open;
    for (Node node : graph.nodes())
      for (Value v : node.outputs())
        if (v && v.note(kAccumulatedNote).tag != TN_ANY_NONE) open.push_back(v);
    std::set<tn_value_id> seen;
    while (!open.empty()) {
      Value v = open.back();
      open.pop_back();
      if (!seen.insert(v.id).second) continue;
      for (uint64_t i = 0, n = v.consumer_count(); i < n; ++i)
        for (Value out : v.consumer(i, nullptr).outputs())
          if (out) open.push_back(out);
    }
    return seen;
  }

  // Readers of the new value within the step, as the average of a weight, read it as it is.
  static Status hold(EditView edit, Value before, Value after, Value held) {
    struct Use {
      Node node;
      uint64_t input;
    };
    std::vector<Use> readers;
    for (uint64_t i = 0, n = after.consumer_count(); i < n; ++i) {
      uint64_t input = 0;
      Node node = after.consumer(i, &input);
      readers.push_back({node, input});
    }
    TN_TRY(kept, edit.op("Where", {held, before, after}));
    TN_CHECK(edit.replace(after, kept));
    TN_CHECK(edit.set_input(kept.producer(), 2, after));
    for (const Use& use : readers)
      TN_CHECK(edit.set_input(use.node, use.input, after));
    return {};
  }
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(accumulate_step,
           tenon::trainer::AccumulateStep,
           "trainer.accumulate_step",
           "updates once for each window of batches: after the optimizer",
           R"({"properties": {}})")
