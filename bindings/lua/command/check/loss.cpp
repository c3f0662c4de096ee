// SPDX-License-Identifier: Apache-2.0
// A loss: writes a float scalar for targets of some kind, with a gradient that is its slope, and
// the graph keeps its rules; what it is not for is answered.
#include "tenon/role/loss.h"

#include <cmath>

#include "edit.hpp"
#include "guarded.hpp"

namespace tenon::command::check {
namespace {

tn_status* TN_CALL train(void*, tn_value_id) {
  return nullptr;
}

// Scores [4, 10] and what should come out: classes, numbers, or nothing.
struct Target {
  const char* name;
  uint32_t dtype;
  std::vector<int64_t> shape;
};
const Target kTargets[] = {{"classes", TN_I64, {4}}, {"numbers", TN_F32, {4, 10}}, {"none", 0, {}}};

class Training {
 public:
  explicit Training(const Subject& subject) : subject_(subject), loss_(subject) {}

  // The failure of build, or NULL with the model that it made.
  tn_status* build(const Target& target, uint64_t n_predictions) {
    tn_graph* raw = nullptr;
    cxx::check(subject_.session->graph->create(subject_.session->ctx(), &raw));
    model_ = cxx::Model(subject_.session, raw);
    Edit edit(subject_.session, raw);
    tn_value_id prediction = edit.input("scores", TN_F32, {4, 10});
    tn_value_id wanted = target.dtype ? edit.input("target", target.dtype, target.shape) : 0;
    GuardedArray<tn_value_id> predictions(std::vector<tn_value_id>(n_predictions, prediction));
    GuardedArray<tn_value_id> targets(std::vector<tn_value_id>(target.dtype ? 1 : 0, wanted));
    tn_objective objective{};
    objective.struct_size = sizeof objective;
    objective.n_predictions = n_predictions;
    objective.predictions = predictions.data();
    objective.n_targets = target.dtype ? 1 : 0;
    objective.targets = targets.data();
    objective.trained = train;
    GuardedRoom<tn_value_id> room(1);
    if (tn_status* failed = loss_.table->build(loss_.self, edit.raw(), &objective, room.data()))
      return failed;
    tn_value_id out = room.read("the loss").front();
    require(out != 0, "build: expected a value, got 0");
    edit.output("loss", out);
    edit.commit();
    require(model_.outputs().size() == 1,
            "build: expected the graph's outputs to stay as they were");
    return nullptr;
  }
  cxx::Model take() { return std::move(model_); }
  void is_a_finite_scalar() {
    cxx::Port port = model_.outputs().front();
    require(port.ranked && port.dims.empty(),
            cat("the loss: expected a scalar, got ", port.text()));
    std::mt19937_64 random(5);
    std::vector<cxx::Tensor> in;
    for (const cxx::Port& one : model_.inputs())
      in.push_back(random_tensor(subject_.session, one.dtype, one.dims, random));
    cxx::Plan plan(model_, {{"backend", "reference"}});
    double of_scores = plan.run(in)[0].at(0);
    as_probabilities(&in);
    double of_probabilities = plan.run(in)[0].at(0);
    require(std::isfinite(of_scores) || std::isfinite(of_probabilities),
            cat("the loss: expected a finite number, got ", of_scores,
                " for scores from -2 to 2 and ", of_probabilities, " for ones from 0.1 to 0.9"));
  }

 private:
  // Floats of -2 to 2, as random_tensor gives them, as ones of 0.1 to 0.9.
  static void as_probabilities(std::vector<cxx::Tensor>* in) {
    for (cxx::Tensor& one : *in)
      for (int64_t i = 0; cxx::is_float(one.dtype()) && i < one.size(); ++i)
        one.set(i, 0.5 + one.at(i) / 5);
  }

  const Subject& subject_;
  Made<tn_loss> loss_;
  cxx::Model model_;
};

}  // namespace

void check_loss(Subject& subject, Report& report) {
  report.check("a scalar", [&] {
    std::string why;
    bool fits = false;
    for (const Target& target : kTargets) {
      Training training(subject);
      if (tn_status* failed = training.build(target, 1)) {
        why = cxx::view(tenon_status_message(failed));
        must_fail(failed, target.name);
        continue;
      }
      training.is_a_finite_scalar();
      fits = true;
    }
    if (!fits) throw Skipped{cat("it is not for scores of ten classes: ", why)};
  });
  report.check("gradient", [&] {
    bool is_taken = false;
    for (const Target& target : kTargets) {
      Training training(subject);
      if (tn_status* failed = training.build(target, 1)) {
        must_fail(failed, target.name);
        continue;
      }
      auto sample = [&](uint64_t) {
        Training another(subject);
        cxx::check(another.build(target, 1));
        return another.take();
      };
      check_gradient(sample, 1, Json::array({0}));
      is_taken = true;
    }
    if (!is_taken) throw Skipped{"it is not for scores of ten classes"};
  });
  report.check("nothing predicted", [&] {
    for (const Target& target : kTargets) {
      Training training(subject);
      must_fail(training.build(target, 0), "no predictions");
    }
  });
}

}  // namespace tenon::command::check
