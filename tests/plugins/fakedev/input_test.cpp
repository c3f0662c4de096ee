// SPDX-License-Identifier: Apache-2.0
// Inputs that lie on a device already, as other libraries hand them over by DLPack.
#include "device_fixture.hpp"

namespace tenon::test {
namespace {

// x, then a part for the CPU, then the device again.
constexpr const char* kParts = R"(graph {
  input %x: f32[4]
  input %y: f32[4]
  %s: f32[4] = Add(%x, %y) @sum
  %n: f32[4] = Neg(%x) @negative in "cpu"
  %m: f32[4] = Mul(%s, %n) @product
  output m = %m
  output x = %x
}
)";

class Inputs : public FakeDevice {
 protected:
  void SetUp() override {
    FakeDevice::SetUp();
    device_ = backend("fakedev");
    plan_ = compile(kParts, R"({"backend": "fakedev"})");
    ASSERT_NE(plan_, nullptr);
  }
  void TearDown() override {
    eval_->release(plan_);
    component_->release(device_.ref);
    FakeDevice::TearDown();
  }

  Backend device_;
  tn_plan* plan_ = nullptr;
};

TEST_F(Inputs, AreUsedWhereTheyLie) {
  Array x({4}, 1, 1), y({4}, 10, 0), other({4}, 5, 0);
  Array there({4});
  const tn_backend& table = *device_.table;
  ASSERT_EQ(take_text(table.alloc(device_.self, 0, 16, &there.dl.data)), "");
  there.dl.device = {kDLExtDev, 0};
  tn_exec exec{};
  exec.struct_size = sizeof exec;
  ASSERT_EQ(take_text(table.copy(device_.self, &x.dl, &there.dl, &exec)), "");
  Results results;

  // On the CPU before, between and after: no run sees memory of another.
  EXPECT_EQ(run(plan_, {&other, &y}, &results), "");
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{-75, -75, -75, -75}));
  EXPECT_EQ(run(plan_, {&there, &y}, &results), "");
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{-11, -24, -39, -56}));
  EXPECT_EQ(results.arrays[1]->data, x.data);
  EXPECT_EQ(run(plan_, {&other, &y}, &results), "");
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{-75, -75, -75, -75}));
  EXPECT_EQ(results.arrays[1]->data, other.data);
  EXPECT_EQ(run(plan_, {&y, &there}, &results), "");
  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{-110, -120, -130, -140}));

  table.free(device_.self, 0, there.dl.data, nullptr);
}

TEST_F(Inputs, OfAnotherDeviceAreRefused) {
  Array x({4}), y({4});
  x.dl.device = {kDLCUDA, 3};
  Results results;

  std::string failure = run(plan_, {&x, &y}, &results);

  EXPECT_NE(failure.find("input 0"), std::string::npos) << failure;
  EXPECT_NE(failure.find("on a device of the plan"), std::string::npos) << failure;
  EXPECT_NE(failure.find("device type 2 id 3"), std::string::npos) << failure;
}

}  // namespace
}  // namespace tenon::test
