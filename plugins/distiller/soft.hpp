// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of the loss that is learned from answers: softened by a temperature (Hinton, Vinyals and
// Dean, "Distilling the knowledge in a neural network", 2015, section 2), mixed with the loss
// against the labels.

#include <optional>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/component.hpp"
#include "tenon/sdk/setting.hpp"

#include "teacher.hpp"

namespace tenon::distiller {

// Nodes that mixed precision computes in float32.
class Precise : public Builder {
 public:
  explicit Precise(EditView edit) : Builder(edit) {}
  Value op(std::string_view type, std::vector<Value> inputs, std::vector<Attr> attrs = {});
  Value sub(Value a, Value b) { return op("Sub", {a, b}); }
  Value mul(Value a, Value b) { return op("Mul", {a, b}); }
  Value add(Value a, Value b) { return op("Add", {a, b}); }
  Value scaled(Value x, double by) { return by == 1 ? x : mul(x, number(by, x.dtype())); }
  // A number that a schedule may drive by the name of its option, in the type of x.
  Value setting(std::string_view name, double value, Value x) {
    return cast(tenon::setting(*this, name, value), x.dtype());
  }
  // In float64 when either is, else in float32.
  Value widened(Value x, Value other);
  Value mean(Value x) { return op("ReduceMean", {x}, {{"keepdims", 0}}); }
};

struct SoftPlan {
  double temperature = 4;
  double alpha = 0.7;                       // of the soft part; 1 - alpha of the hard one
  int64_t axis = 1;                         // of the classes
  std::optional<uint64_t> prediction = {};  // nothing: the first, and all for the hard part
  std::string teacher_output;
  bool cached = false;  // the last target is the teacher's answer
  static SoftPlan read(const Options& options);
};

// T^2 times the divergence KL(teacher || student) of the softened answers, summed over the classes
// and averaged over everything else.
Result<Value> soft_loss(EditView edit, Value student, Value teacher, const SoftPlan& plan);

// The loss against the labels, by anyone's component; targets: those that are labels. prediction:
// the output that it sees alone; nothing: all.
Result<Value> hard_loss(const Component& loss,
                        EditView edit,
                        const Objective& objective,
                        uint64_t n_targets,
                        std::optional<uint64_t> prediction);

// An error where the loss has a hard part and no labels are given.
Status check_labels(const Component& hard, uint64_t n_labels);
// (1 - alpha) hard + alpha soft; where one is falsy, the other.
Value mix(Precise& b, Value soft, Value hard, double alpha);

// teacher: its answer, falsy with alpha 0.
Result<Value> mixed_loss(const Component& hard,
                         EditView edit,
                         const Objective& objective,
                         Value teacher,
                         const SoftPlan& plan);

// The option "hard", made only when it is needed; where it is absent cross entropy over the plan's
// axis.
Result<Component> hard_option(tn_ctx* ctx, const Options& options, const SoftPlan& plan);

}  // namespace tenon::distiller
