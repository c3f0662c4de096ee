// SPDX-License-Identifier: Apache-2.0
#pragma once
// The object types of the module, and what each file of functions offers to the others.

#include <variant>

#include "tenon/cxx/dataset.hpp"
#include "tenon/cxx/model.hpp"
#include "tenon/cxx/plan.hpp"
#include "tenon/cxx/schedule.hpp"

#include "object.hpp"

namespace tenon::lua {

// How parameters are updated, and how fast.
struct Optimizer {
  using Rate = std::variant<double, cxx::Schedule>;
  cxx::Component component;
  Rate rate;
};

template <>
inline constexpr const char* kObjectName<cxx::Model> = "tenon.model";
template <>
inline constexpr const char* kObjectName<cxx::Plan> = "tenon.plan";
template <>
inline constexpr const char* kObjectName<cxx::Tensor> = "tenon.tensor";
template <>
inline constexpr const char* kObjectName<cxx::Dataset> = "tenon.dataset";
template <>
inline constexpr const char* kObjectName<cxx::Schedule> = "tenon.schedule";
template <>
inline constexpr const char* kObjectName<cxx::Component> = "tenon.component";
template <>
inline constexpr const char* kObjectName<Optimizer> = "tenon.optimizer";

void register_model(lua_State* state);
void register_plan(lua_State* state);
void register_tensor(lua_State* state);
void register_dataset(lua_State* state);
void register_schedule(lua_State* state);
void register_training(lua_State* state);
void register_callback(lua_State* state);

// The Lua function at `index` as a schedule: called with the step and, where they are known, how
// many there are.
cxx::Schedule schedule_of_function(lua_State* state, int index);

// Schedules by name as one component ("trainer.driven"); nothing where the table says what JSON can
// say: ids and options.
std::optional<cxx::Component> schedules_of_table(lua_State* state, int index);

// What a training notifies: a function of the epoch, a callback or its id, a list of these. Nothing
// for an empty list.
inline constexpr const char* kCallbackRole = "tenon.callback/1";
std::optional<cxx::Component> callback_of_value(lua_State* state, int index);

// Functions of `tn` itself, by file.
extern const std::span<const Function> kModelFunctions;
extern const std::span<const Function> kTensorFunctions;
extern const std::span<const Function> kMeasureFunctions;
extern const std::span<const Function> kTextFunctions;
extern const std::span<const Function> kLogFunctions;  // of tn.log
extern const std::span<const Function> kPluginFunctions;
extern const std::span<const Function> kTrainingFunctions;

// Frees unreachable objects first: Lua sees only the few bytes of a handle, not the model behind.
void push_model(lua_State* state, cxx::Model model);

// With `tn` on the stack: adds the functions of traced/*.lua.
void add_traced_functions(lua_State* state);

// Registers everything and leaves the table `tn` on the stack.
int open_module(lua_State* state);

}  // namespace tenon::lua
