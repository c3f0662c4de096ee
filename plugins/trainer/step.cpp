// SPDX-License-Identifier: Apache-2.0
// "trainer.step": a graph with gradients becomes a training step. Outputs called grad/NAME, as
// autodiff leaves them, are replaced by the optimizer's update of input or constant NAME, which
// becomes a state. A new input is the learning rate.
#include <algorithm>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/pass.hpp"
#include "tenon/sdk/setting.hpp"

#include "gradients.hpp"
#include "groups.hpp"
#include "training_mode.hpp"

namespace tenon::trainer {
namespace {

class Step {
 public:
  static Result<Step> create(tn_ctx* ctx, const Options& options) {
    Step out;
    TN_TRY(optimizer, component_option(ctx, options, "optimizer", "tenon.optimizer/1"));
    out.optimizer_ = std::move(optimizer);
    TN_TRY(groups, read_groups(ctx, options.text("groups"), out.optimizer_));
    out.groups_ = std::move(groups);
    out.rate_ = options.text("rate");
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& report) {
    TN_TRY(edit, Edit::begin(raw));
    TN_TRY(gradients, gradients_of(edit.graph()));
    std::vector<Parameter> parameters;
    for (const Gradient& one : gradients) {
      std::string name(edit.graph().output_name(one.place));
      TN_TRY(value, parameter(edit, name.substr(kGradient.size())));
      TN_CHECK(check(value, one.value));
      parameters.push_back({value.name(), value, one.value});
    }
    auto is_double = [](const Parameter& one) { return one.value.dtype() == TN_F64; };
    const uint32_t rate_type = std::ranges::all_of(parameters, is_double) ? TN_F64 : TN_F32;
    TN_TRY(rate, edit.input(rate_, Type(rate_type, {})));
    uint64_t n_states = edit.graph().list(TN_LIST_STATES).size();
    TN_TRY(after, update_all(edit, parameters, rate));
    for (size_t i = gradients.size(); i-- > 0;)
      TN_CHECK(Status(services.edit->remove_output(edit.raw, gradients[i].place)));
    for (size_t i = 0; i < parameters.size(); ++i) {
      Slot state{std::string(parameters[i].name), parameters[i].value};
      TN_CHECK(state.close(edit, after[i]));
    }
    std::vector<Value> states = edit.graph().list(TN_LIST_STATES);
    for (uint64_t i = n_states; i < states.size(); ++i)
      TN_CHECK(edit.set_note(states[i].id, kUpdatedNote, any_int(1)));
    TN_CHECK(edit.commit());
    return report.write(
        cat("{\"optimizer\": \"", optimizer_.id(), "\", \"parameters\": ", parameters.size(), "}"));
  }

 private:
  // The input of this name; a constant of a loaded model becomes one.
  static Result<Value> parameter(EditView edit, const std::string& name) {
    Value value = edit.graph().find(name);
    if (!value) return invalid(cat("output grad/", name, ": no input or constant has this name"));
    if (!value.is_constant()) return value;
    return input_for_constant(edit, value);
  }

  static Status check(Value value, Value gradient) {
    Type type = value.type();
    if (value.producer()) return invalid(cat("parameter ", value.name(), ": expected an input"));
    if (!type.is_static())
      return invalid(cat("parameter ", value.name(), ": expected a known shape"));
    if (gradient.dtype() == type.dtype) return {};
    return invalid(cat("parameter ", value.name(), ": expected a gradient of type ",
                       dtype_name(type.dtype), ", got ", dtype_name(gradient.dtype())));
  }

  // Group by group: each has an optimizer, and a rate, of its own.
  Result<std::vector<Value>> update_all(EditView edit,
                                        const std::vector<Parameter>& parameters,
                                        Value rate) const {
    TN_TRY(places, distribute(groups_, parameters));
    std::vector<Value> after(parameters.size());
    for (size_t g = 0; g < places.size(); ++g) {
      if (places[g].empty()) continue;
      const Component& optimizer =
          g && groups_[g - 1].optimizer ? groups_[g - 1].optimizer : optimizer_;
      Builder b(edit);
      Value own = rate;
      if (g && groups_[g - 1].rate != 1)
        own = b.mul(rate, b.number(groups_[g - 1].rate, rate.dtype()));
      TN_CHECK(b.status());
      std::vector<Parameter> some;
      for (size_t i : places[g])
        some.push_back(parameters[i]);
      const size_t n_constants = edit.graph().constants().size();
      TN_TRY(updated, update(edit, optimizer, some, own));
      if (g && groups_[g - 1].optimizer)
        TN_CHECK(note_settings(edit, n_constants, groups_[g - 1].name));
      for (size_t i = 0; i < some.size(); ++i)
        after[places[g][i]] = updated[i];
    }
    return after;
  }

  // Of the constants from this place on.
  static Status note_settings(EditView edit, size_t from, const std::string& group) {
    std::vector<Value> constants = edit.graph().constants();
    for (size_t i = from; i < constants.size(); ++i)
      if (constants[i].note(kSettingNote).tag != TN_ANY_NONE)
        TN_CHECK(edit.set_note(constants[i].id, kSettingGroupNote, any_text(group)));
    return {};
  }

  static Result<std::vector<Value>> update(EditView edit,
                                           const Component& optimizer,
                                           const std::vector<Parameter>& parameters,
                                           Value rate) {
    std::vector<tn_parameter> raw;
    std::vector<const tn_parameter*> pointers;
    for (const Parameter& one : parameters)
      raw.push_back({sizeof(tn_parameter), 0, str(one.name), one.value.id, one.gradient.id});
    for (const tn_parameter& one : raw)
      pointers.push_back(&one);
    tn_update given{sizeof given, 0, pointers.size(), pointers.data(), rate.id};
    std::vector<tn_value_id> ids(raw.size());
    const auto* table = optimizer.table<tn_optimizer>();
    TN_CHECK(Status(table->build(optimizer.self(), edit.raw, &given, ids.data()))
                 .in(cat("optimizer ", optimizer.id())));
    std::vector<Value> after;
    for (tn_value_id id : ids)
      after.push_back(edit.value(id));
    return after;
  }

  Component optimizer_;
  std::vector<Group> groups_;
  std::string rate_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(step,
           tenon::trainer::Step,
           "trainer.step",
           "a graph with gradients becomes a training step with state",
           R"({
  "properties": {
    "optimizer": {"type": "component", "role": "tenon.optimizer/1", "default": "trainer.sgd", "description": "what updates the parameters: an optimizer or its id"},
    "groups": {"type": "object", "description": "by name: parameters, as patterns; and for them rate, a factor, optimizer, an id, and its options"},
    "rate": {"type": "string", "default": "learning_rate", "description": "the name of the new input: a scalar, float64 where all parameters are, else float32"}}})")
