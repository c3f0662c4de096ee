// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plan: a model compiled over backends, and the checks of what it is run with.

#include <algorithm>

#include "tenon/cxx/choice.hpp"
#include "tenon/cxx/model.hpp"

namespace tenon::cxx {

// What the user chooses about running; empty or 0: not chosen.
struct RunChoice {
  std::string backend;
  std::string precision;
  int threads = 0;
  std::vector<std::string> kernels = {};  // of role tenon.kernel/1, in order of preference
  Json options = Json::object();          // more of the backend's own, by name
};

// The JSON for compile. Without a choice the host takes the backend that this machine is best with;
// what it cannot run goes to `reference`, and is listed in describe()'s fallback_nodes.
inline Json compile_options(const Session& session, const RunChoice& choice) {
  static constexpr std::string_view kRole = "tenon.backend/1";
  Json options = choice.options;
  if (!choice.backend.empty()) {
    std::vector<std::string> known;
    for (const Json& one : list_components(session, kRole))
      known.push_back(one["id"]);
    options["backend"] = choice.backend;
    if (std::find(known.begin(), known.end(), choice.backend) == known.end()) {
      if (std::string why = why_unusable(session, kRole, choice.backend); !why.empty())
        throw Error(TN_FAILED_PRECONDITION, cat("backend ", choice.backend, ": ", why));
      throw Error(TN_NOT_FOUND, cat("backend: ", expected_one_of(known, choice.backend,
                                                                 "(no plugin was found)")));
    }
  }
  if (!choice.precision.empty()) options["precision"] = choice.precision;
  if (choice.threads > 0) options["threads"] = choice.threads;
  if (!choice.kernels.empty()) options["kernels"] = choice.kernels;
  return options;
}

// What a backend takes as precision; one that says nothing has fp32 alone.
inline std::vector<std::string> precisions_of(const Session& session, const std::string& backend) {
  std::vector<std::string> all;
  for (const Json& one : list_components(session, "tenon.backend/1")) {
    if (one["id"] != backend) continue;
    const Json schema = one["schema"].is_object() ? one["schema"] : Json::object();
    const Json options = schema.value("properties", Json::object());
    all = options.value("precision", Json::object()).value("enum", all);
  }
  return all.empty() ? std::vector<std::string>{"fp32"} : all;
}

// Named inputs in the order of the model's, with each disagreement reported in full.
class NamedInputs {
 public:
  explicit NamedInputs(const Model& model) : ports_(model.inputs()), tensors_(ports_.size()) {}

  void set(const std::string& name, Tensor tensor) {
    for (size_t i = 0; i < ports_.size(); ++i) {
      if (ports_[i].name != name) continue;
      check_port(ports_[i], tensor);
      tensors_[i] = std::move(tensor);
      return;
    }
    invalid(cat("input ", name, ": expected one of ", names(), ", got '", name, "'"));
  }
  std::vector<Tensor> all() const {
    for (size_t i = 0; i < ports_.size(); ++i) {
      if (!tensors_[i])
        invalid(cat("input ", ports_[i].name, ": expected ", ports_[i].text(), ", got nothing"));
    }
    return tensors_;
  }
  const std::vector<Port>& ports() const { return ports_; }
  bool has(size_t i) const { return static_cast<bool>(tensors_[i]); }

  static void check_port(const Port& port, const Tensor& tensor) {
    bool agrees = port.kind == TN_KIND_TENSOR &&
                  (port.dtype == TN_DTYPE_NONE || port.dtype == tensor.dtype());
    std::span<const int64_t> shape = tensor.shape();
    if (port.ranked) {
      agrees = agrees && shape.size() == port.dims.size();
      for (size_t i = 0; agrees && i < shape.size(); ++i)
        agrees = port.dims[i] < 0 || port.dims[i] == shape[i];
    }
    if (!agrees)
      invalid(cat("input ", port.name, ": expected ", port.text(), ", got ", tensor.text()));
  }

 private:
  std::string names() const {
    std::string all;
    for (const Port& port : ports_)
      all += cat(all.empty() ? "" : ", ", port.name);
    return all.empty() ? "(the model has no inputs)" : all;
  }
  std::vector<Port> ports_;
  std::vector<Tensor> tensors_;
};

class Plan {
 public:
  Plan(const Model& model, const Json& options, const std::vector<tn_value_id>& taps = {})
      : Plan(model, taps.size(), [&](const Session& session, tn_plan** raw) {
          return session.eval->compile(session.ctx(), model.get(), taps.data(), taps.size(),
                                       str(dump(options)), raw);
        }) {}
  // Another model with the options of this plan, which has the states in common with it.
  Plan beside(const Model& model) const {
    return Plan(model, 0, [&](const Session& session, tn_plan** raw) {
      return session.eval->compile_beside(plan_.get(), model.get(), raw);
    });
  }
  // The graph's outputs in order, then the taps. Sequences and optional values are no tensors here:
  // backends hand out bytes for them.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const {
    if (!no_tensor_.empty()) throw Error(TN_UNIMPLEMENTED, no_tensor_);
    std::vector<const DLTensor*> views = checked(inputs);
    Results results(session(), results_);
    check(session()->eval->run(plan_.get(), views.data(), views.size(), results.get(),
                               session()->cancel()));
    return results.take();
  }
  void prepare(const std::vector<Tensor>& inputs) const {
    std::vector<const DLTensor*> views = checked(inputs);
    check(session()->eval->prepare(plan_.get(), views.data(), views.size()));
  }
  Json describe() const {
    TextSink text;
    check(session()->eval->describe(plan_.get(), text.get()));
    return Json::parse(text.text());
  }
  Json profile(const std::vector<Tensor>& inputs) const {
    std::vector<const DLTensor*> views = checked(inputs);
    TextSink text;
    check(session()->eval->profile(plan_.get(), views.data(), views.size(), text.get()));
    return Json::parse(text.text());
  }
  // The id of the backend that is asked first.
  std::string backend() const { return describe().at("backends").at(0); }
  // In which of its precisions that backend computes on its device: all where it does not say.
  std::vector<std::string> native_precisions() const {
    const Json described = describe();
    const std::vector<std::string> all = precisions_of(*session(), described["backends"][0]);
    return described["devices"][0].value("precisions", all);
  }
  // State by the name of its input: zeros before the first run.
  void set_state(const std::string& name, const Tensor& value) const {
    NamedInputs::check_port(state(name), value);
    check(session()->eval->state_set(plan_.get(), str(name), value.view()));
  }
  Tensor get_state(const std::string& name) const {
    const Port& port = state(name);
    Tensor copy = Tensor::zeros(session(), port.dtype, port.dims);
    DLTensor out = *copy.view();
    check(session()->eval->state_get(plan_.get(), str(name), &out));
    return copy;
  }
  const std::vector<Port>& states() const { return states_; }
  const std::vector<std::string>& output_names() const { return outputs_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const SessionPtr& session() const { return plan_.session(); }
  tn_plan* raw() const { return plan_.get(); }

 private:
  template <class Compile>
  Plan(const Model& model, size_t n_taps, const Compile& compile)
      : inputs_(model.inputs()), states_(model.states()) {
    const SessionPtr& session = model.session();
    tn_plan* raw = nullptr;
    check(compile(*session, &raw));
    plan_ = Handle<tn_plan>(session, raw, session->eval->release);
    for (const Port& port : model.outputs()) {
      outputs_.push_back(port.name);
      if (port.kind != TN_KIND_TENSOR && no_tensor_.empty())
        no_tensor_ =
            cat("output ", port.name, ": expected a tensor, got a value of the type ", port.text());
    }
    results_ = outputs_.size() + n_taps;
  }
  const Port& state(const std::string& name) const {
    for (const Port& port : states_) {
      if (port.name == name) return port;
    }
    throw Error(TN_NOT_FOUND, cat("no state is called '", name, "'"));
  }
  std::vector<const DLTensor*> checked(const std::vector<Tensor>& inputs) const {
    if (inputs.size() != inputs_.size())
      invalid(cat("expected ", inputs_.size(), " inputs, got ", inputs.size()));
    std::vector<const DLTensor*> views;
    for (size_t i = 0; i < inputs.size(); ++i) {
      NamedInputs::check_port(inputs_[i], inputs[i]);
      views.push_back(inputs[i].view());
    }
    return views;
  }
  Handle<tn_plan> plan_;
  std::vector<Port> inputs_, states_;
  std::vector<std::string> outputs_;
  std::string no_tensor_;  // which output is none, where there is one
  size_t results_ = 0;
};

// Memory for results that are taken once and written to again and again, as in a benchmark.
class ReusedResults {
 public:
  ReusedResults(SessionPtr session, size_t count) : session_(std::move(session)), kept_(count) {}
  ReusedResults(const ReusedResults&) = delete;
  ReusedResults& operator=(const ReusedResults&) = delete;
  const tn_outputs* get() const { return &outputs_; }

 private:
  static bool fits(const Tensor& tensor, const DLTensor& proto) {
    if (!tensor || tensor.dtype() != dtype_of(proto.dtype) || proto.ndim != tensor.view()->ndim)
      return false;
    return std::equal(proto.shape, proto.shape + proto.ndim, tensor.view()->shape);
  }
  static tn_status* TN_CALL provide(void* ctx, uint64_t i, const DLTensor* proto, DLTensor* out) {
    auto& self = *static_cast<ReusedResults*>(ctx);
    return callback(*self.session_, [&] {
      Tensor& kept = self.kept_.at(i);
      if (!fits(kept, *proto)) {
        tn_tensor* raw = nullptr;
        check(self.session_->tensor->alloc_uninitialized(self.session_->ctx(), proto, &raw));
        kept = Tensor::take(self.session_, raw);
      }
      *out = *kept.view();
    });
  }
  SessionPtr session_;
  std::vector<Tensor> kept_;
  tn_outputs outputs_{this, provide};
};

}  // namespace tenon::cxx
