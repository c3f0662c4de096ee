// SPDX-License-Identifier: Apache-2.0
// Batches prepared beside the step.
#include "ahead.hpp"

#include <atomic>
#include <future>

#include "training_session.hpp"

namespace tenon::test {
namespace {

class Ahead : public PluginTest {
 protected:
  Result<std::vector<Tensor>> numbered(uint64_t batch) {
    TN_TRY(tensor, Tensor::zeros(ctx_, TN_I64, {}));
    *tensor.data<int64_t>() = static_cast<int64_t>(batch);
    return std::vector<Tensor>{tensor};
  }
  static int64_t number(const std::vector<Tensor>& batch) { return *batch[0].data<int64_t>(); }
};

TEST_F(Ahead, GivesAllInOrder) {
  trainer::Ahead ahead([this](uint64_t batch) { return numbered(batch); }, 3, 203);
  for (int64_t i = 3; i < 203; ++i) {
    auto batch = ahead.next();
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(number(*batch), i);
  }
  EXPECT_GE(ahead.seconds_waited(), 0);
}

TEST_F(Ahead, PreparesBatchesThatNobodyHasAskedForYet) {
  std::promise<void> third;
  std::atomic<uint64_t> made = 0;
  trainer::Ahead ahead(
      [&](uint64_t batch) {
        made = batch + 1;
        if (batch == 2) third.set_value();
        return numbered(batch);
      },
      0, 100);
  ASSERT_TRUE(ahead.next().ok());
  third.get_future().wait();  // for ever where next() alone made them
  EXPECT_LE(made, 4u) << "and no more than have room";
}

TEST_F(Ahead, SaysWhatWentWrongWhereItIsWanted) {
  trainer::Ahead ahead(
      [this](uint64_t batch) -> Result<std::vector<Tensor>> {
        if (batch == 2) return invalid("sample 7 is torn");
        if (batch > 2) throw std::runtime_error("not reached");
        return numbered(batch);
      },
      0, 10);
  EXPECT_TRUE(ahead.next().ok());
  EXPECT_TRUE(ahead.next().ok());
  EXPECT_THAT(text_of(ahead.next().status()), HasSubstr("sample 7 is torn"));
  trainer::Ahead thrown(
      [](uint64_t) -> Result<std::vector<Tensor>> { throw std::runtime_error("no such page"); }, 0,
      1);
  EXPECT_THAT(text_of(thrown.next().status()), HasSubstr("no such page"));
}

TEST_F(Ahead, WaitsForNoBatchBehindTheLast) {
  trainer::Ahead ahead([this](uint64_t batch) { return numbered(batch); }, 3, 4);
  EXPECT_TRUE(ahead.next().ok());
  EXPECT_THAT(text_of(ahead.next().status()), HasSubstr("a batch behind the last one"));
  trainer::Ahead none([this](uint64_t batch) { return numbered(batch); }, 10, 4);
  EXPECT_FALSE(none.next().ok());
}

TEST_F(Ahead, EndsWhereNothingIsTaken) {
  std::atomic<uint64_t> made = 0;
  for (int i = 0; i < 50; ++i) {
    trainer::Ahead ahead(
        [&](uint64_t batch) {
          ++made;
          return numbered(batch);
        },
        0, 1000);
  }
  EXPECT_LE(made, 150u);
}

}  // namespace
}  // namespace tenon::test
