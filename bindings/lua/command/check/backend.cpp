// SPDX-License-Identifier: Apache-2.0
// A backend computes what `reference` does, for what it claims; the rest falls back with a reason.

#include "check.hpp"

namespace tenon::command::check {
namespace {

std::vector<cxx::Tensor> random_inputs(const cxx::Model& model, std::mt19937_64& random) {
  std::vector<cxx::Tensor> out;
  for (const cxx::Port& port : model.inputs()) {
    std::vector<int64_t> shape = port.dims;
    for (int64_t& dim : shape)
      dim = dim < 0 ? 3 : dim;
    out.push_back(random_tensor(model.session(), port.dtype, shape, random));
  }
  return out;
}

Json plan_options(const Subject& subject) {
  Json options = subject.options;
  options["backend"] = subject.id;
  return options;
}

void same_as_reference(const Subject& subject, uint64_t* claimed) {
  std::mt19937_64 random(7);
  for (const auto& [name, text] : zoo()) {
    cxx::Model model = parse_model(subject.session, text);
    std::vector<cxx::Tensor> inputs = random_inputs(model, random);
    std::vector<cxx::Tensor> want = cxx::Plan(model, {{"backend", "reference"}}).run(inputs);
    cxx::Plan plan(model, plan_options(subject));
    for (int round = 0; round < 2; ++round) {
      std::vector<cxx::Tensor> got = plan.run(inputs);
      require(got.size() == want.size(), cat(name, ": expected ", want.size(), " results"));
      for (size_t i = 0; i < got.size(); ++i)
        same_numbers(got[i], want[i], cat(name, ": output ", i), 1e-5);
    }
    Json described = plan.describe();
    for (const Json& part : described.value("partitions", Json::array()))
      if (part["backend"] == subject.id) *claimed += 1;
    for (const Json& node : described.value("fallback_nodes", Json::array()))
      require(!node.value("why", "").empty(), cat(name, ": a node was left without a reason"));
  }
}

// A plan serves more than one shape and more than one thread.
void shapes_and_threads(const Subject& subject) {
  cxx::Model model = parse_model(subject.session, zoo()[3].second);
  cxx::Plan plan(model, plan_options(subject));
  cxx::Plan reference(model, {{"backend", "reference"}});
  std::mt19937_64 random(8);
  std::vector<std::vector<cxx::Tensor>> inputs, want;
  for (int64_t batch : {1, 5, 2, 17, 1}) {
    inputs.push_back({random_tensor(subject.session, TN_F32, {batch, 3}, random)});
    want.push_back(reference.run(inputs.back()));
  }
  beside_others(4, [&](size_t) {
    for (size_t i = 0; i < inputs.size(); ++i)
      same_numbers(plan.run(inputs[i])[0], want[i][0],
                   cat("four threads, several shapes: shape ", i), 1e-5);
  });
}

}  // namespace

void check_backend(Subject& subject, Report& report) {
  uint64_t claimed = 0;
  report.check("same as reference", [&] { same_as_reference(subject, &claimed); });
  report.check("claims something", [&] {
    require(claimed > 0, "small graphs of MatMul, Add, Relu, Exp: expected it to take some node");
  });
  report.check("shapes and threads", [&] { shapes_and_threads(subject); });
}

}  // namespace tenon::command::check
