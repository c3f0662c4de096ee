// SPDX-License-Identifier: Apache-2.0
#include "registry/adopt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tenon/role/backend.h"
#include "tenon/role/loss.h"
#include "tenon/role/optimizer.h"
#include "tenon/role/pass.h"

namespace tenon::host {
namespace {

using testing::HasSubstr;

tn_status* run(void*, tn_graph*, const tn_cancel*, const tn_sink*) {
  return nullptr;
}

TEST(Adopt, KeepsWhatIsThere) {
  const tn_pass pass{sizeof pass, 1, run};

  Result<AdoptedTable> adopted = AdoptedTable::make("tenon.pass/1", &pass);

  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ(static_cast<const tn_pass*>(adopted->get())->run, &run);
  EXPECT_TRUE(adopted->holes().empty());
}

TEST(Adopt, FillsHolesWithStubsThatNameComponentAndFunction) {
  const tn_pass pass{8, 1, run};  // from before there was run
  int self = 0;

  Result<AdoptedTable> adopted = AdoptedTable::make("tenon.pass/1", &pass);
  ASSERT_TRUE(adopted.ok());
  name_self(&self, "acme.prune");
  const auto* table = static_cast<const tn_pass*>(adopted->get());
  Status status(table->run(&self, nullptr, nullptr, nullptr));
  forget_self(&self);

  EXPECT_EQ(table->struct_size, sizeof(tn_pass));
  EXPECT_EQ(status.code(), TN_UNIMPLEMENTED);
  EXPECT_THAT(status.text(), HasSubstr("acme.prune: function run of tenon.pass/1 is not provided"));
}

TEST(Adopt, LeavesOptionalFunctionsOut) {
  tn_backend backend{};
  backend.struct_size = sizeof backend;
  backend.workspace = [](void*, void*) { return uint64_t{0}; };
  backend.exe_free = [](void*, void*) {};

  Result<AdoptedTable> adopted = AdoptedTable::make("tenon.backend/1", &backend);
  ASSERT_TRUE(adopted.ok());
  const auto* table = static_cast<const tn_backend*>(adopted->get());

  EXPECT_EQ(table->alloc, nullptr);
  EXPECT_EQ(table->prepare, nullptr);
  ASSERT_NE(table->compile, nullptr);
  EXPECT_EQ(Status(table->compile(nullptr, nullptr, 0, nullptr, nullptr)).code(), TN_UNIMPLEMENTED);
}

TEST(Adopt, RefusesAMissingFunctionThatCouldNotSaySo) {
  tn_backend backend{};
  backend.struct_size = sizeof backend;
  backend.exe_free = [](void*, void*) {};

  Result<AdoptedTable> adopted = AdoptedTable::make("tenon.backend/1", &backend);

  ASSERT_FALSE(adopted.ok());
  EXPECT_THAT(adopted.status().text(), HasSubstr("function workspace is NULL"));
}

TEST(Adopt, KnowsLossAndOptimizer) {
  const tn_loss loss{8, 1, nullptr};
  const tn_optimizer optimizer{8, 1, nullptr};

  Result<AdoptedTable> losses = AdoptedTable::make("tenon.loss/1", &loss);
  Result<AdoptedTable> optimizers = AdoptedTable::make("tenon.optimizer/1", &optimizer);

  ASSERT_TRUE(losses.ok() && optimizers.ok());
  const auto* a = static_cast<const tn_loss*>(losses->get());
  const auto* b = static_cast<const tn_optimizer*>(optimizers->get());
  EXPECT_THAT(Status(a->build(nullptr, nullptr, nullptr, nullptr)).text(), HasSubstr("build"));
  EXPECT_THAT(Status(b->build(nullptr, nullptr, nullptr, nullptr)).text(), HasSubstr("build"));
}

TEST(Adopt, RefusesSizesThatCannotBe) {
  for (uint32_t size : {0u, 4u, 12u, kLargestStruct + 8}) {
    const tn_pass pass{size, 1, run};
    EXPECT_FALSE(AdoptedTable::make("tenon.pass/1", &pass).ok()) << size;
  }
}

TEST(Adopt, HandsOtherInterfacesThrough) {
  const int table = 3;

  Result<AdoptedTable> adopted = AdoptedTable::make("com.acme.tuning/1", &table);

  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ(adopted->get(), &table);
}

}  // namespace
}  // namespace tenon::host
