// SPDX-License-Identifier: Apache-2.0
// "quantizer.track": the step of a model that is trained in 8 bits watches its activations itself.
// Ranges are states, moving averages of what each batch shows (Jacob et al., CVPR 2018, section
// 3.1), which stop to move after a while: "frozen late", so that weights converge on the grid that
// the finished model has.
#include <limits>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/notes.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "stored_value.hpp"

namespace tenon::quantizer {
namespace {

constexpr const char* kSteps = "quantizer.track/steps";

Type scalar(uint32_t dtype) {
  return {dtype, std::vector<int64_t>{}};
}

// Counts the steps of a run, and says what is so in this one.
struct Clock {
  Slot count;
  Value is_first, is_open;  // bool; open: ranges still move

  static Result<Clock> open(Builder& b, std::optional<int64_t> last) {
    TN_TRY(count, Slot::open(b.edit(), kSteps, scalar(TN_I64)));
    Clock out{count, {}, {}};
    out.is_first = b.op("Equal", {count.before, b.number(0, TN_I64)});
    int64_t end = last.value_or(std::numeric_limits<int64_t>::max());
    TN_TRY(limit, b.edit().constant<int64_t>(TN_I64, {}, {end}));
    out.is_open = b.op("Less", {count.before, limit});
    TN_CHECK(b.status());
    return out;
  }
  Status close(Builder& b) const {
    Value next = b.add(count.before, b.number(1, TN_I64));
    TN_CHECK(b.status());
    return count.close(b.edit(), next);
  }
};

// The nodes that move one range.
class Tracked {
 public:
  Tracked(Builder& b, const Clock& clock, double momentum)
      : b_(b), clock_(clock), momentum_(momentum) {}

  Status write(const StoredValues& one) {
    tn_range first = one.range();
    std::string name(one.scale.name());
    TN_TRY(low, moved(name + "/low", first.low, seen(one, "ReduceMin", "Min")));
    TN_TRY(high, moved(name + "/high", first.high, seen(one, "ReduceMax", "Max")));
    Value scale = one.is_signed ? b_.div(b_.op("Max", {b_.neg(low), high}), number(127))
                                : b_.div(b_.sub(high, low), number(255));
    scale = b_.op("Max", {scale, number(std::numeric_limits<float>::min())});
    Value is_set = b_.op("Greater", {b_.op("Max", {b_.neg(low), high}), number(0)});
    scale = b_.op("Where", {is_set, scale, number(1)});
    TN_CHECK(b_.status());
    TN_CHECK(replace(one.scale, scale));
    if (one.is_signed) return {};
    Value zero = b_.op("Round", {b_.div(b_.neg(low), scale)});
    zero = b_.op("Clip", {zero, number(0), number(255)});
    return replace(one.zero, b_.cast(zero, one.zero.dtype()));
  }

 private:
  Value number(double x) { return b_.number(x, TN_F32); }

  // The smallest or largest number of this batch, and 0.
  Value seen(const StoredValues& one, std::string_view of_tensor, std::string_view of_both) {
    Value end = number(0);
    for (Value v : one.values)
      end = b_.op(of_both, {end, b_.op(of_tensor, {v}, {{"keepdims", 0}})});
    return end;
  }

  // States start as zeros: in the first step it is `first` that moves.
  Result<Value> moved(const std::string& name, double first, Value seen) {
    TN_TRY(state, Slot::open(b_.edit(), name, scalar(TN_F32)));
    Value before = b_.op("Where", {clock_.is_first, number(first), state.before});
    Value after = b_.add(b_.mul(before, number(momentum_)), b_.mul(seen, number(1 - momentum_)));
    after = b_.op("Where", {clock_.is_open, after, before});
    TN_CHECK(b_.status());
    TN_CHECK(state.close(b_.edit(), after));
    return after;
  }

  // The constant becomes a state of its name: the trained model has its last value. A step rounds
  // by what the steps before it have seen, for values with one scale may be made of each other.
  // What is frozen keeps its bits.
  Status replace(Value constant, Value fresh) {
    EditView edit = b_.edit();
    std::string name(constant.name());
    TN_CHECK(Status(services.edit->set_value_name(edit.raw, constant.id, str(name + "/first"))));
    TN_TRY(state, Slot::open(edit, name, scalar(constant.dtype())));
    Value after = b_.op("Where", {clock_.is_open, fresh, state.before});
    TN_CHECK(b_.status());
    TN_CHECK(edit.replace(constant, state.before));
    return state.close(edit, after);
  }

  Builder& b_;
  const Clock& clock_;
  double momentum_;
};

class Track {
 public:
  static Result<Track> create(tn_ctx*, const Options& options) {
    if (options.has("steps") && options.has("epochs"))
      return invalid("options steps and epochs: expected one of them, got both");
    Track out;
    out.momentum_ = options.number("momentum");
    if (options.has("steps")) out.steps_ = options.integer("steps");
    if (options.has("epochs")) out.epochs_ = options.number("epochs");
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    TN_TRY(last, last_step({raw}));
    TN_TRY(all, stored_values({raw}));
    TN_TRY(edit, Edit::begin(raw));
    std::vector<Node> before = edit.graph().nodes();
    Builder b(edit);
    TN_TRY(clock, Clock::open(b, last));
    Tracked tracked(b, clock, momentum_);
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const StoredValues& one : all) {
      names.push_back(one.scale.name());
      TN_CHECK(tracked.write(one).in(one.values[0].name()));
    }
    TN_CHECK(clock.close(b));
    TN_CHECK(keep_in_float32(edit, before));
    TN_CHECK(edit.commit());
    nlohmann::ordered_json report{{"scales", names}};
    if (last) report["steps"] = *last;
    return sink.write(report.dump());
  }

 private:
  Result<std::optional<int64_t>> last_step(Graph graph) const {
    if (!epochs_) return steps_;
    tn_any note{};
    Status ignored(services.graph->note(graph.raw, 0, str(kEpochStepsNote), &note));
    int64_t each = int_of(note, 0);
    if (each > 0) return std::optional<int64_t>(static_cast<int64_t>(*epochs_ * each + 0.5));
    return invalid(
        "option epochs: the graph does not say how many steps an epoch has, as "
        "trainer.train does for passes of its option train_as; give steps");
  }
  // Mixed precision has nothing to win here.
  static Status keep_in_float32(EditView edit, const std::vector<Node>& before) {
    std::unordered_set<tn_node_id> old;
    for (Node node : before)
      old.insert(node.id);
    for (Node node : edit.graph().nodes())
      if (!old.contains(node.id)) TN_CHECK(edit.set_note(node.id, "cast", any_text("fp32")));
    return {};
  }

  double momentum_ = 0;
  std::optional<int64_t> steps_;
  std::optional<double> epochs_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(track,
           tenon::quantizer::Track,
           "quantizer.track",
           "ranges of activations that move inside the training step, and then stay",
           R"({
  "properties": {
    "momentum": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.99,
                 "description": "decay rate of the ranges"},
    "steps": {"type": "integer", "minimum": 0, "description": "ranges are frozen after this many steps of the run; never, when absent"},
    "epochs": {"type": "number", "minimum": 0, "description": "the same, in epochs of the run"}}})")
