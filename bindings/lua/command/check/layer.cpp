// SPDX-License-Identifier: Apache-2.0
// A layer: writes a graph that keeps its rules and runs, for inputs of some kind; its parameters
// carry its name, and a second use of it has the same ones.
#include "tenon/role/layer.h"

#include <cmath>
#include <cstring>
#include <map>

#include "edit.hpp"
#include "guarded.hpp"

namespace tenon::command::check {
namespace {

struct Input {
  uint32_t dtype;
  std::vector<int64_t> shape;
};
const std::vector<std::vector<Input>> kInputs = {{{TN_F32, {3, 8}}},
                                                 {{TN_F32, {2, 5, 8}}},
                                                 {{TN_F32, {2, 8, 6, 6}}},
                                                 {{TN_I64, {2, 3}}},
                                                 {{TN_F32, {3, 8}}, {TN_F32, {3, 8}}},
                                                 {}};

class Network {
 public:
  explicit Network(const Subject& subject, uint64_t seed = 5)
      : subject_(subject), layer_(subject), seed_(seed) {}

  // The failure of build, or NULL with the model of `uses` uses of the layer.
  tn_status* build(const std::vector<Input>& inputs, int uses, uint64_t n_outputs = 1) {
    tn_graph* raw = nullptr;
    cxx::check(subject_.session->graph->create(subject_.session->ctx(), &raw));
    model_ = cxx::Model(subject_.session, raw);
    Edit edit(subject_.session, raw);
    std::vector<tn_value_id> given;
    for (size_t i = 0; i < inputs.size(); ++i)
      given.push_back(edit.input(cat("x", i), inputs[i].dtype, inputs[i].shape));
    GuardedArray<tn_value_id> guarded(given);
    for (int i = 0; i < uses; ++i) {
      tn_layer_use use{sizeof use,     0,        cxx::str("net.0"), seed_, given.size(),
                       guarded.data(), n_outputs};
      GuardedRoom<tn_value_id> room(n_outputs);
      if (tn_status* failed = layer_.table->build(layer_.self, edit.raw(), &use, room.data()))
        return failed;
      std::vector<tn_value_id> out = room.read("the outputs");
      require(out[0] != 0, "build: expected a value, got 0");
      edit.output(cat("y", i), out[0]);
    }
    edit.commit();
    return nullptr;
  }
  std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    const tn_host_graph& graphs = *subject_.session->graph;
    for (uint64_t i = 0; i < graphs.count(model_.get(), TN_LIST_CONSTANTS); ++i) {
      std::string name(cxx::view(
          graphs.value_name(model_.get(), graphs.value_at(model_.get(), TN_LIST_CONSTANTS, i, 0))));
      if (name == "net.0" || name.starts_with("net.0.")) names.push_back(name);
    }
    return names;
  }
  std::map<std::string, cxx::Tensor> constants() const { return model_.constants(); }
  std::vector<cxx::Tensor> run() const {
    std::mt19937_64 random(3);
    std::vector<cxx::Tensor> in;
    for (const cxx::Port& port : model_.inputs())
      in.push_back(port.dtype == TN_I64
                       ? cxx::Tensor::zeros(subject_.session, TN_I64, port.dims)
                       : random_tensor(subject_.session, port.dtype, port.dims, random));
    return cxx::Plan(model_, {{"backend", "reference"}}).run(in);
  }

 private:
  const Subject& subject_;
  Made<tn_layer> layer_;
  uint64_t seed_;
  cxx::Model model_;
};

// body(network, inputs) for each kind of inputs that the layer takes.
template <class Body>
void for_each_fit(const Subject& subject, Body&& body) {
  std::string why;
  bool fits = false;
  for (const std::vector<Input>& inputs : kInputs) {
    Network network(subject);
    if (tn_status* failed = network.build(inputs, 2)) {
      why = cxx::view(tenon_status_message(failed));
      must_fail(failed, cat(inputs.size(), " inputs"));
      continue;
    }
    fits = true;
    body(network, inputs);
  }
  if (!fits) throw Skipped{cat("it is for other inputs: ", why)};
}

// What the seed gives its values is a parameter, and is called so.
void named(const Network& network, const Network& other) {
  std::map<std::string, cxx::Tensor> others = other.constants();
  for (const auto& [name, one] : network.constants()) {
    if (name.starts_with("net.0.")) continue;
    auto found = others.find(name);
    bool is_same = found != others.end() && found->second.bytes() == one.bytes() &&
                   std::memcmp(found->second.data(), one.data(), one.bytes()) == 0;
    require(is_same, cat("constant ", name, ": it depends on the seed: expected a parameter to be ",
                         "called net.0.NAME, as the layer is net.0"));
  }
}

}  // namespace

void check_layer(Subject& subject, Report& report) {
  report.check("writes a graph", [&] {
    for_each_fit(subject, [&](Network& network, const std::vector<Input>&) {
      for (const cxx::Tensor& made : network.run())
        for (int64_t i = 0; i < made.size(); ++i)
          require(std::isfinite(made.at(i)), cat("element ", i, ": expected a finite number"));
    });
  });
  report.check("one set of parameters", [&] {
    for_each_fit(subject, [&](Network& network, const std::vector<Input>& inputs) {
      Network once(subject);
      cxx::check(once.build(inputs, 1));
      require(network.parameters() == once.parameters(),
              cat("used twice: expected ", once.parameters().size(), " parameters, got ",
                  network.parameters().size()));
      std::vector<cxx::Tensor> made = network.run();
      same_numbers(made[1], made[0], "the second use", 0);
      same_numbers(once.run()[0], made[0], "the same seed and name", 0);
    });
  });
  report.check("names of parameters", [&] {
    for_each_fit(subject, [&](Network& network, const std::vector<Input>& inputs) {
      Network other(subject, 6);
      cxx::check(other.build(inputs, 2));
      named(network, other);
    });
  });
  report.check("too many outputs", [&] {
    for_each_fit(subject, [&](Network&, const std::vector<Input>& inputs) {
      must_fail(Network(subject).build(inputs, 1, 99), "99 outputs");
    });
  });
}

}  // namespace tenon::command::check
