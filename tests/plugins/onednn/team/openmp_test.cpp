// SPDX-License-Identifier: Apache-2.0
// oneDNN on the team: its calls arrive here, and its results are what they are alone.
#include "team/openmp.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "team/imports.hpp"
#include "team/team.hpp"

namespace tenon::onednn::team {
namespace {

using dnnl::memory;

const void* onednn() {
  return reinterpret_cast<const void*>(dnnl_version);
}

const Import* import_named(const std::vector<Import>& imports, std::string_view name) {
  const auto found = std::find_if(imports.begin(), imports.end(),
                                  [&](const Import& each) { return each.name == name; });
  return found == imports.end() ? nullptr : &*found;
}

TEST(OpenMp, IsTheTeamsInOneDnnAlone) {
  ASSERT_EQ(why_not_on_team(), "");
  const std::vector<Import> imports = imports_of(onednn());
  const Import* asked = import_named(imports, "omp_get_max_threads");
  ASSERT_NE(asked, nullptr);
  auto* in_onednn = reinterpret_cast<int (*)()>(*asked->address);
  const Hold hold(7);
  EXPECT_EQ(in_onednn(), 7);
  // This program's own libgomp knows nothing of it.
  omp_set_num_threads(3);
  EXPECT_EQ(omp_get_max_threads(), 3);
  EXPECT_EQ(in_onednn(), 7);
}

TEST(OpenMp, LeavesTheOtherImports) {
  const std::vector<Import> before = imports_of(onednn());
  ASSERT_EQ(why_not_on_team(), "");
  const Import* allocate = import_named(before, "malloc");
  ASSERT_NE(allocate, nullptr);
  EXPECT_NE(*allocate->address, nullptr);
  EXPECT_EQ(import_named(before, "tenon_no_such_function"), nullptr);
}

// A product large enough for several threads; oneDNN cuts it by their number when it is made.
std::vector<float> product(int threads) {
  constexpr int64_t n = 256;
  const Hold hold(threads);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc square({n, n}, memory::data_type::f32, memory::format_tag::ab);
  std::vector<float> a(n * n), b(n * n), c(n * n, -1);
  std::iota(a.begin(), a.end(), -1000.0F);
  std::iota(b.begin(), b.end(), 7.0F);
  dnnl::matmul matmul(dnnl::matmul::primitive_desc(engine, square, square, square));
  matmul.execute(stream, {{DNNL_ARG_SRC, memory(square, engine, a.data())},
                          {DNNL_ARG_WEIGHTS, memory(square, engine, b.data())},
                          {DNNL_ARG_DST, memory(square, engine, c.data())}});
  return c;
}

// Beside threads that take the CPUs, so that now workers run an id and now the caller.
TEST(OpenMp, ComputesTheSameBitsUnderLoad) {
  ASSERT_EQ(why_not_on_team(), "");
  const std::vector<float> first = product(4);
  std::vector<std::jthread> busy;
  for (int i = 0; i < 4; ++i) {
    busy.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
  }
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(product(4), first);
}

// Sums over a batch: threads wait for each other in a loop of oneDNN's own, in each region.
TEST(OpenMp, HasAThreadForEachIdThatWaits) {
  ASSERT_EQ(why_not_on_team(), "");
  constexpr int64_t kBatch = 8, kChannels = 16, kSide = 32;
  Hold hold(4);
  ASSERT_TRUE(hold.has_all_threads());
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc image({kBatch, kChannels, kSide, kSide}, memory::data_type::f32,
                           memory::format_tag::nhwc);
  const memory::desc channels({kChannels}, memory::data_type::f32, memory::format_tag::a);
  dnnl::batch_normalization_forward norm(dnnl::batch_normalization_forward::primitive_desc(
      engine, dnnl::prop_kind::forward_training, image, image, 1e-5F,
      dnnl::normalization_flags::none));
  std::vector<float> x(kBatch * kChannels * kSide * kSide), y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % kChannels) + (i / kChannels % 2 == 0 ? 1.0F : -1.0F);
  std::vector<float> mean(kChannels), variance(kChannels);
  for (int i = 0; i < 50; ++i) {
    norm.execute(stream, {{DNNL_ARG_SRC, memory(image, engine, x.data())},
                          {DNNL_ARG_DST, memory(image, engine, y.data())},
                          {DNNL_ARG_MEAN, memory(channels, engine, mean.data())},
                          {DNNL_ARG_VARIANCE, memory(channels, engine, variance.data())}});
  }
  for (size_t c = 0; c < kChannels; ++c) {
    EXPECT_NEAR(mean[c], static_cast<float>(c), 1e-4);
    EXPECT_NEAR(variance[c], 1, 1e-4);
  }
}

}  // namespace
}  // namespace tenon::onednn::team
