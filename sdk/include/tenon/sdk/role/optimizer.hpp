// SPDX-License-Identifier: Apache-2.0
#pragma once
// An optimizer is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Status build(EditView, const Update&, std::span<Value> after) const;

#include <span>

#include "tenon/role/optimizer.h"

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/sized.hpp"

namespace tenon {

// Note on the input of a state that only an update changes. Gradients need not reach it: a count of
// updates, which stays as it is where a step updates nothing.
inline constexpr std::string_view kUpdatedNote = "updated";

struct Parameter {
  std::string_view name;
  Value value, gradient;
};

struct Update {
  std::vector<Parameter> parameters;
  Value rate;
};

// A state that is kept from step to step: `before` is its input; close it with its new value.
struct Slot {
  std::string name;
  Value before;
  static Result<Slot> open(EditView edit, const std::string& name, const Type& type) {
    TN_TRY(before, edit.input(name, type));
    return Slot{name, before};
  }
  Status close(EditView edit, Value after) const {
    TN_CHECK(edit.output(cat(name, "/next"), after));
    return Status(services.edit->pair_state(edit.raw, before.id, after.id));
  }
};

template <class T>
struct OptimizerRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.optimizer/1";
  static const tn_optimizer* table() {
    static const tn_optimizer table{sizeof table, 1, build};
    return &table;
  }
  static tn_status* build(void* self, tn_edit* raw, const tn_update* sized, tn_value_id* out) {
    return guard([&]() -> Status {
      Sized<tn_update> given(sized);
      EditView edit{raw};
      Update update{{}, edit.value(given->rate)};
      for (uint64_t i = 0; i < given->n_parameters; ++i) {
        Sized<tn_parameter> one(given->parameters[i]);
        update.parameters.push_back(
            {view(one->name), edit.value(one->value), edit.value(one->gradient)});
      }
      std::vector<Value> after(update.parameters.size());
      TN_CHECK(object_of<T>(self).build(edit, update, after));
      for (size_t i = 0; i < after.size(); ++i)
        out[i] = after[i].id;
      return {};
    });
  }
};

}  // namespace tenon

#define TENON_OPTIMIZER(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::OptimizerRole<Class>, "tenon.optimizer/1", id, summary, schema, 0)
