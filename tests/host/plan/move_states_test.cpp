// SPDX-License-Identifier: Apache-2.0
// A state on its way to the backend that is to keep it.
#include <gtest/gtest.h>

#include "tenon/host/component.h"

#include "plan/plan.hpp"
#include "values/tensor.hpp"

namespace tenon::host {
namespace {

// A backend whose memory is full until `has_room`.
struct Keeper {
  bool has_room = false;
  float kept = 0;

  static tn_status* set(void*, void* state, tn_str, const DLTensor* value) {
    auto& keeper = *static_cast<Keeper*>(state);
    if (!keeper.has_room) return Status(TN_RESOURCE_EXHAUSTED, "no room").release();
    keeper.kept = *static_cast<const float*>(value->data);
    return nullptr;
  }
};

// What a component of this role has to have, beside the function that is called.
tn_backend backend_table() {
  tn_backend table{};
  table.struct_size = sizeof table;
  table.devices = [](void*, const tn_sink*) -> tn_status* { return nullptr; };
  table.claim = [](void*, const tn_graph*, int32_t, const tn_claims*) -> tn_status* {
    return nullptr;
  };
  table.compile = [](void*, const tn_graph*, int32_t, const tn_options*, void**) -> tn_status* {
    return nullptr;
  };
  table.workspace = [](void*, void*) -> uint64_t { return 0; };
  table.run = [](void*, void*, void*, const DLTensor* const*, uint64_t, const tn_outputs*,
                 const tn_exec*) -> tn_status* { return nullptr; };
  table.exe_free = [](void*, void*) {};
  table.state_set = Keeper::set;
  return table;
}

TEST(MoveStates, KeepWhatWasSetUntilTheBackendHasIt) {
  Session session;
  const tn_backend table = backend_table();
  tn_component_ref* component = nullptr;
  ASSERT_TRUE(Status(component_service()->lend(session.own, str("tenon.backend/1"), str("full"),
                                               &table, nullptr, nullptr, &component))
                  .ok());
  Keeper keeper;
  {
    auto plan = Ref<tn_plan>::take(new tn_plan);
    plan->ctx = session.own;
    session.own->add(Held::kPlan, 1);
    plan->backends.push_back(std::make_unique<BackendUse>());
    plan->backends[0]->component = Ref<tn_component_ref>::take(component);
    plan->backends[0]->table = &table;
    plan->kept = std::make_shared<States>(BackendUses());
    plan->kept->by_backend = {&keeper};
    auto value = alloc_tensor(session.own, TN_F32, {});
    ASSERT_TRUE(value.ok());
    *static_cast<float*>((*value)->dl.data) = 3;
    State state{"w", TN_F32, {}};
    state.now = *value;
    plan->states = {&state};
    Compiled compiled;
    compiled.state_keepers = {0};

    EXPECT_EQ(move_states(plan.get(), compiled).code(), TN_RESOURCE_EXHAUSTED);
    keeper.has_room = true;
    EXPECT_TRUE(move_states(plan.get(), compiled).ok());

    EXPECT_EQ(keeper.kept, 3);
    EXPECT_FALSE(state.now);
    plan->kept->by_backend.clear();  // the keeper is this test's
  }
}

}  // namespace
}  // namespace tenon::host
