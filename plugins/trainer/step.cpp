// SPDX-License-Identifier: Apache-2.0
// "trainer.step": a graph with gradients becomes a training step. Outputs called grad/NAME, as
// autodiff leaves them, are replaced by the optimizer's update of input or constant NAME, which
// becomes a state. A new input is the learning rate.
#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/role/pass.hpp"

namespace tenon::trainer {
namespace {

constexpr std::string_view kGradient = "grad/";

class Step {
 public:
  static Result<Step> create(tn_ctx* ctx, const Options& options) {
    Step out;
    TN_TRY(optimizer, component_option(ctx, options, "optimizer", "tenon.optimizer/1"));
    out.optimizer_ = std::move(optimizer);
    out.rate_ = options.text("rate");
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& report) {
    TN_TRY(edit, Edit::begin(raw));
    std::vector<Parameter> parameters;
    std::vector<uint64_t> gradients;  // as places of outputs
    uint64_t n_outputs = edit.graph().outputs().size();
    for (uint64_t i = 0; i < n_outputs; ++i) {
      std::string name(edit.graph().output_name(i));
      if (!name.starts_with(kGradient)) continue;
      Value gradient = edit.graph().outputs()[i];
      TN_TRY(value, parameter(edit, name.substr(kGradient.size())));
      TN_CHECK(check(value, gradient));
      parameters.push_back({value.name(), value, gradient});
      gradients.push_back(i);
    }
    if (parameters.empty())
      return {TN_FAILED_PRECONDITION,
              "expected outputs called grad/NAME, got none; apply autodiff.value_and_grad first"};
    TN_TRY(rate, edit.input(rate_, Type(TN_F32, {})));
    TN_TRY(after, update(edit, parameters, rate));
    for (size_t i = gradients.size(); i-- > 0;)
      TN_CHECK(Status(services.edit->remove_output(edit.raw, gradients[i])));
    for (size_t i = 0; i < parameters.size(); ++i) {
      Slot state{std::string(parameters[i].name), parameters[i].value};
      TN_CHECK(state.close(edit, after[i]));
    }
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
    TN_CHECK(Status(services.edit->set_value_name(edit.raw, value.id, str(name + "/initial"))));
    TN_TRY(input, edit.input(name, value.type()));
    TN_CHECK(edit.replace(value, input));
    return input;
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

  Result<std::vector<Value>> update(EditView edit,
                                    const std::vector<Parameter>& parameters,
                                    Value rate) const {
    std::vector<tn_parameter> raw;
    std::vector<const tn_parameter*> pointers;
    for (const Parameter& one : parameters)
      raw.push_back({sizeof(tn_parameter), 0, str(one.name), one.value.id, one.gradient.id});
    for (const tn_parameter& one : raw)
      pointers.push_back(&one);
    tn_update given{sizeof given, 0, pointers.size(), pointers.data(), rate.id};
    std::vector<tn_value_id> ids(raw.size());
    const auto* table = optimizer_.table<tn_optimizer>();
    TN_CHECK(Status(table->build(optimizer_.self(), edit.raw, &given, ids.data()))
                 .in(cat("optimizer ", optimizer_.id())));
    std::vector<Value> after;
    for (tn_value_id id : ids)
      after.push_back(edit.value(id));
    return after;
  }

  Component optimizer_;
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
    "rate": {"type": "string", "default": "learning_rate", "description": "the name of the new input: a float32 scalar"}}})")
