// SPDX-License-Identifier: Apache-2.0
#pragma once
// Losses built into students that are written as text; the hard part is a loss that the test lends.

#include <gmock/gmock.h>

#include "tenon/role/loss.h"

#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {

using testing::ElementsAre;
using testing::HasSubstr;

class LossTest : public AutodiffTest {
 protected:
  void TearDown() override { teacher_ = {}; }

  // options with the teacher among them; target inputs of the student are called target...
  Result<Component> loss(std::string_view id, const json& options) {
    tn_options* given = nullptr;
    TN_CHECK(services.options->create(ctx_, &given));
    Status set(services.options->parse(given, str(options.dump())));
    if (set.ok() && teacher_.get())
      set = Status(services.options->set(given, str("teacher"), any_graph(teacher_.get())));
    if (set.ok() && hard_) set = Status(services.options->set(given, str("hard"), any_hard()));
    tn_component_ref* raw = nullptr;
    if (set.ok())
      set = Status(services.component->create(ctx_, str("tenon.loss/1"), str(id), given, &raw));
    services.options->release(given);
    TN_CHECK(std::move(set));
    Result<Component> made = Component::share(raw, "tenon.loss/1");
    services.component->release(raw);
    return made;
  }
  // The student with the loss as its one output.
  Result<OwnedGraph> build(const std::string& student, std::string_view id, const json& options) {
    TN_TRY(component, loss(id, options));
    OwnedGraph graph = parse(student);
    TN_TRY(edit, Edit::begin(graph.get()));
    trained_.clear();
    std::vector<tn_value_id> inputs, predictions, targets;
    for (Value v : edit.graph().inputs())
      (v.name().starts_with("target") ? targets : inputs).push_back(v.id);
    for (Value v : edit.graph().outputs())
      predictions.push_back(v.id);
    struct Noted {
      LossTest* test;
      EditView edit;
    } noted{this, edit};
    tn_objective given{sizeof given,
                       0,
                       inputs.size(),
                       inputs.data(),
                       predictions.size(),
                       predictions.data(),
                       targets.size(),
                       targets.data(),
                       &noted,
                       [](void* self, tn_value_id constant) -> tn_status* {
                         auto* to = static_cast<Noted*>(self);
                         to->test->trained_.emplace_back(to->edit.value(constant).name());
                         return nullptr;
                       }};
    tn_value_id out = 0;
    TN_CHECK(Status(component.table<tn_loss>()->build(component.self(), edit.raw, &given, &out)));
    for (uint64_t i = edit.graph().outputs().size(); i-- > 0;)
      TN_CHECK(services.edit->remove_output(edit.raw, i));
    TN_CHECK(edit.output("loss", edit.value(out)));
    TN_CHECK(edit.commit());
    return Result<OwnedGraph>(std::move(graph));
  }
  OwnedGraph built(const std::string& student, std::string_view id, const json& options) {
    Result<OwnedGraph> made = build(student, id, options);
    if (made.ok()) return std::move(*made);
    ADD_FAILURE() << text_of(made.status());
    return {};
  }
  std::string refused(const std::string& student, std::string_view id, const json& options) {
    Result<OwnedGraph> made = build(student, id, options);
    return made.ok() ? "" : text_of(made.status());
  }
  std::string refused_options(std::string_view id, const json& options) {
    Result<Component> made = loss(id, options);
    return made.ok() ? "" : text_of(made.status());
  }

  // A hard part that is the first element of the first target.
  void lend_hard() {
    static const tn_loss table{
        sizeof table, 1, [](void*, tn_edit* raw, const tn_objective* given, tn_value_id* out) {
          return guard([&]() -> Status {
            EditView edit{raw};
            TN_TRY(sum, edit.op("ReduceSum", {edit.value(given->targets[0])}, {{"keepdims", 0}}));
            *out = sum.id;
            return {};
          });
        }};
    tn_component_ref* raw = nullptr;
    ASSERT_EQ(text_of(Status(services.component->lend(ctx_, str("tenon.loss/1"), str("test.sum"),
                                                      &table, nullptr, nullptr, &raw))),
              "");
    hard_ = std::move(*Component::share(raw, "tenon.loss/1"));
    services.component->release(raw);
  }
  tn_any any_hard() { return {TN_ANY_COMPONENT, 0, 1, {.p = hard_.raw()}}; }

  OwnedGraph teacher_;
  Component hard_;
  std::vector<std::string> trained_;
};

}  // namespace tenon::test
