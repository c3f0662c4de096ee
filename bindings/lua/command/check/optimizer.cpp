// SPDX-License-Identifier: Apache-2.0
// An optimizer: a new value of the same type for each parameter, states named after it, finite
// numbers over some steps, steps that lead downhill, and nothing at all where there is nothing to
// train.
#include "tenon/role/optimizer.h"

#include <cmath>

#include "edit.hpp"
#include "guarded.hpp"

namespace tenon::command::check {
namespace {

constexpr const char* kNames[] = {"w", "b"};

class Step {
 public:
  Step(const Subject& subject, uint64_t n) : session_(subject.session) {
    tn_graph* raw = nullptr;
    cxx::check(session_->graph->create(session_->ctx(), &raw));
    model_ = cxx::Model(session_, raw);
    Edit edit(session_, raw);
    std::vector<tn_parameter> parameters(n);
    std::vector<const tn_parameter*> list(n);
    for (uint64_t i = 0; i < n; ++i) {
      std::vector<int64_t> shape{3, static_cast<int64_t>(i) + 2};
      parameters[i] = {sizeof(tn_parameter), 0, cxx::str(kNames[i]),
                       edit.input(kNames[i], TN_F32, shape),
                       edit.input(cat("gradient.", kNames[i]), TN_F32, shape)};
    }
    GuardedArray<tn_parameter> given(parameters);
    for (uint64_t i = 0; i < n; ++i)
      list[i] = given.data() + i;
    GuardedArray<const tn_parameter*> guarded(list);
    tn_update update{sizeof update, 0, n, guarded.data(), edit.input("rate", TN_F32, {})};
    GuardedRoom<tn_value_id> room(n);
    Made<tn_optimizer> one(subject);
    cxx::check(one.table->build(one.self, edit.raw(), &update, room.data()));
    std::vector<tn_value_id> after = room.read("the new values");
    for (uint64_t i = 0; i < n; ++i) {
      require(after[i] != 0, cat("parameter ", kNames[i], ": expected a value, got 0"));
      edit.output(cat("after.", kNames[i]), after[i]);
    }
    edit.commit();
  }
  const cxx::Model& model() const { return model_; }

 private:
  SessionPtr session_;
  cxx::Model model_;
};

// Many small steps down a bowl: the gradient of sum(w^2) / 2 is w itself.
void descends(const Subject& subject) {
  constexpr int kSteps = 40;
  constexpr double kRate = 0.01;
  Step step(subject, 1);
  cxx::Plan plan(step.model(), {{"backend", "reference"}});
  std::mt19937_64 random(9);
  cxx::Tensor rate = cxx::Tensor::zeros(subject.session, TN_F32, {});
  rate.set(0, kRate);
  cxx::Tensor w = random_tensor(subject.session, TN_F32, {3, 2}, random);
  double first = dot(w, w);
  for (int n = 0; n < kSteps; ++n)
    w = plan.run({w, w, rate})[0];
  require(dot(w, w) < first,
          cat(kSteps, " steps of ", kRate, " down sum(w^2) / 2: expected less than ", first / 2,
              ", got ", dot(w, w) / 2));
}

}  // namespace

void check_optimizer(Subject& subject, Report& report) {
  report.check("types and states", [&] {
    Step step(subject, 2);
    for (const cxx::Port& state : step.model().states()) {
      size_t slash = state.name.find('/');
      bool named = slash != std::string::npos && slash > 0 && slash + 1 < state.name.size();
      require(named, cat("state ", state.name, ": expected the name of its owner, '/' and a slot"));
    }
    for (const cxx::Port& port : step.model().outputs()) {
      if (port.name.rfind("after.", 0) != 0) continue;
      std::vector<int64_t> shape{3, port.name == "after.w" ? 2 : 3};
      require(port.dtype == TN_F32 && port.dims == shape,
              cat(port.name, ": expected the parameter's type, got ", port.text()));
    }
  });
  report.check("some steps", [&] {
    Step step(subject, 2);
    cxx::Plan plan(step.model(), {{"backend", "reference"}});
    std::mt19937_64 random(3);
    for (int n = 0; n < 4; ++n) {
      std::vector<cxx::Tensor> in;
      for (const char* name : kNames) {
        std::vector<int64_t> shape{3, name == kNames[0] ? 2 : 3};
        for (int of : {0, 1})
          in.push_back(n == of ? cxx::Tensor::zeros(subject.session, TN_F32, shape)
                               : random_tensor(subject.session, TN_F32, shape, random));
      }
      in.push_back(cxx::Tensor::zeros(subject.session, TN_F32, {}));
      in.back().set(0, n == 2 ? 0.0 : 0.01);
      for (const cxx::Tensor& after : plan.run(in))
        for (int64_t i = 0; i < after.size(); ++i)
          require(std::isfinite(after.at(i)), cat("step ", n, ": got ", after.at(i)));
    }
  });
  report.check("downhill", [&] { descends(subject); });
  report.check("nothing to train", [&] {
    Step step(subject, 0);
    cxx::Plan plan(step.model(), {{"backend", "reference"}});
    cxx::Tensor rate = cxx::Tensor::zeros(subject.session, TN_F32, {});
    require(plan.run({rate}).empty(), "it makes values of nothing");
  });
}

}  // namespace tenon::command::check
