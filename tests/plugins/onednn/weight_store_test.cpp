// SPDX-License-Identifier: Apache-2.0
// Constants in a kernel's layout: made once for all plans of a model, and again for another model.

#include "lowering/weight_store.hpp"

#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

namespace tenon::onednn::test {
namespace {

class Store : public testing::Test {
 protected:
  Store() { std::iota(source_.begin(), source_.end(), 1.0F); }

  // The numbers times two.
  std::shared_ptr<const void> doubled(const std::string& form) {
    const auto bytes = static_cast<int64_t>(source_.size() * sizeof(float));
    return store_.made(source_.data(), bytes, form, bytes, [&](void* to) {
      ++n_made_;
      for (size_t i = 0; i < source_.size(); ++i)
        static_cast<float*>(to)[i] = 2 * source_[i];
    });
  }
  static float last_of(const std::shared_ptr<const void>& numbers) {
    return static_cast<const float*>(numbers.get())[19];
  }

  WeightStore store_;
  std::vector<float> source_ = std::vector<float>(20);
  int n_made_ = 0;
};

TEST_F(Store, MakesAFormOnceWhileSomebodyHoldsIt) {
  std::shared_ptr<const void> first = doubled("rows");
  EXPECT_EQ(doubled("rows"), first);
  EXPECT_EQ(last_of(first), 40);
  EXPECT_EQ(n_made_, 1);
  first.reset();
  doubled("rows");
  EXPECT_EQ(n_made_, 2);
}

TEST_F(Store, DistinguishesForms) {
  const std::shared_ptr<const void> rows = doubled("rows");
  const std::shared_ptr<const void> columns = doubled("columns");
  const dnnl::memory::desc desc({20}, dnnl::memory::data_type::f32, dnnl::memory::dims{1});
  const std::shared_ptr<const void> as_they_are = store_.packed(source_.data(), desc, desc);
  EXPECT_NE(rows, columns);
  EXPECT_EQ(n_made_, 2);
  EXPECT_EQ(last_of(as_they_are), 20);
  EXPECT_EQ(store_.packed(source_.data(), desc, desc), as_they_are);
}

TEST_F(Store, SeesThatAnotherModelLiesThere) {
  const std::shared_ptr<const void> before = doubled("rows");
  source_[19] = 7;
  EXPECT_EQ(last_of(doubled("rows")), 14);
  EXPECT_EQ(last_of(before), 40);
}

}  // namespace
}  // namespace tenon::onednn::test
