// SPDX-License-Identifier: Apache-2.0
#pragma once
// A loss is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Result<Value> build(EditView, const Objective&) const;   // a float scalar

#include "tenon/role/loss.h"

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/sized.hpp"

namespace tenon {

struct Objective {
  std::vector<Value> inputs, predictions, targets;
  const tn_objective* raw = nullptr;

  // Says that a constant which the loss has added is to be trained.
  Status train(Value constant) const {
    return Status(raw->trained(raw->trained_self, constant.id));
  }
};

template <class T>
struct LossRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.loss/1";
  static const tn_loss* table() {
    static const tn_loss table{sizeof table, 1, build};
    return &table;
  }
  static tn_status* build(void* self, tn_edit* raw, const tn_objective* sized, tn_value_id* out) {
    return guard([&]() -> Status {
      Sized<tn_objective> given(sized);
      EditView edit{raw};
      auto values = [&](const tn_value_id* ids, uint64_t n) {
        std::vector<Value> found;
        for (uint64_t i = 0; i < n; ++i)
          found.push_back(edit.value(ids[i]));
        return found;
      };
      Objective objective{values(given->inputs, given->n_inputs),
                          values(given->predictions, given->n_predictions),
                          values(given->targets, given->n_targets), given.get()};
      TN_TRY(loss, object_of<T>(self).build(edit, objective));
      *out = loss.id;
      return {};
    });
  }
};

}  // namespace tenon

#define TENON_LOSS(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::LossRole<Class>, "tenon.loss/1", id, summary, schema, 0)
