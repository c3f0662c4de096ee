// SPDX-License-Identifier: Apache-2.0
// The backend through the ABI: every operator row's sample, against the backend "reference".

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "tenon/tenon.h"

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/run.hpp"

#include "folders.hpp"

namespace tenon {
namespace {

struct Results {
  std::vector<std::vector<unsigned char>> bytes;
  std::vector<uint32_t> dtypes;
  std::vector<std::unique_ptr<DenseView>> views;  // shapes live as long as the run
};

tn_status* give(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
  auto& results = *static_cast<Results*>(self);
  if (results.bytes.size() <= i) {
    results.bytes.resize(i + 1);
    results.dtypes.resize(i + 1);
    results.views.resize(i + 1);
  }
  results.bytes[i].resize(bytes_of(dtype_of(*proto), element_count(*proto)) + 1);
  results.dtypes[i] = dtype_of(*proto);
  results.views[i] =
      std::make_unique<DenseView>(dtype_of(*proto), shape_of(*proto), results.bytes[i].data());
  *out = **results.views[i];
  return nullptr;
}

class OneDnnBackend : public testing::Test {
 protected:
  void SetUp() override {
    std::string config = std::string(R"({"plugin_path": [")") + test::kPluginFolder + R"("]})";
    tn_status* failed = tenon_open(str(config), &session_);
    ASSERT_EQ(failed, nullptr) << view(tenon_status_message(failed));
    host_ = tenon_host(session_);
    services.fill(*host_);
    ASSERT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
  }
  void TearDown() override { tenon_close(session_); }

  static std::vector<unsigned char> random_data(uint32_t dtype, int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<unsigned char> bytes(bytes_of(dtype, count) + 8);
    for (int64_t i = 0; i < count; ++i) {
      float x = std::uniform_real_distribution<float>(-2, 2)(random);
      if (dtype == TN_F32)
        reinterpret_cast<float*>(bytes.data())[i] = x;
      else if (dtype == TN_F64)
        reinterpret_cast<double*>(bytes.data())[i] = double{x};
      else if (dtype == TN_I64)
        reinterpret_cast<int64_t*>(bytes.data())[i] = std::lround(x);
      else if (dtype == TN_I32)
        reinterpret_cast<int32_t*>(bytes.data())[i] = static_cast<int32_t>(std::lround(x));
      else if (dtype == TN_BOOL)
        bytes[static_cast<size_t>(i)] = x > 0;
      else if (TN_DTYPE_BITS(dtype) == 8)
        bytes[static_cast<size_t>(i)] = static_cast<unsigned char>(std::lround(x));
    }
    return bytes;
  }

  // Runs the graph on one backend. Fallbacks: how many nodes it left to the reference.
  Status run(const tn_graph* graph,
             std::string_view options,
             uint32_t seed,
             Results* results,
             std::string* description) {
    tn_plan* plan = nullptr;
    TN_CHECK(tenon_compile(session_, graph, str(options), &plan));
    std::vector<std::vector<unsigned char>> data;
    std::vector<DenseView> views;
    std::vector<const DLTensor*> inputs;
    for (Value input : Graph{graph}.inputs()) {
      Type type = input.type();
      data.push_back(random_data(type.dtype, type.elements(), ++seed));
      views.emplace_back(type.dtype, type.dims, data.back().data());
    }
    for (const DenseView& input : views)
      inputs.push_back(input.get());
    tn_outputs outputs{results, give};
    Status status(tenon_run(plan, inputs.data(), inputs.size(), &outputs, nullptr));
    StringSink sink;
    Status described(services.eval->describe(plan, sink.get()));
    *description = sink.text;
    services.eval->release(plan);
    return status;
  }

  tenon_session* session_ = nullptr;
  const tn_host* host_ = nullptr;
};

double number(const std::vector<unsigned char>& bytes, uint32_t dtype, size_t i) {
  if (dtype == TN_F32) return double{reinterpret_cast<const float*>(bytes.data())[i]};
  if (dtype == TN_F64) return reinterpret_cast<const double*>(bytes.data())[i];
  if (dtype == TN_I64)
    return static_cast<double>(reinterpret_cast<const int64_t*>(bytes.data())[i]);
  if (dtype == TN_I32) return reinterpret_cast<const int32_t*>(bytes.data())[i];
  return dtype == TN_I8 ? static_cast<signed char>(bytes[i]) : bytes[i];
}

// The largest difference relative to the largest finite magnitude; equal NaN and infinities agree.
double difference(const Results& got, const Results& expected) {
  double worst = 0;
  for (size_t k = 0; k < expected.bytes.size(); ++k) {
    if (got.dtypes[k] != expected.dtypes[k] || got.bytes[k].size() != expected.bytes[k].size()) {
      return INFINITY;
    }
    size_t count = (expected.bytes[k].size() - 1) * 8 / TN_DTYPE_BITS(expected.dtypes[k]);
    double most = 1;
    for (size_t i = 0; i < count; ++i) {
      double x = std::abs(number(expected.bytes[k], expected.dtypes[k], i));
      if (std::isfinite(x)) most = std::max(most, x);
    }
    for (size_t i = 0; i < count; ++i) {
      double a = number(got.bytes[k], got.dtypes[k], i);
      double b = number(expected.bytes[k], expected.dtypes[k], i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      double error = std::abs(a - b) / most;
      worst = std::max(worst, std::isnan(error) ? INFINITY : error);
    }
  }
  return worst;
}

TEST_F(OneDnnBackend, AgreesWithTheReferenceOnEverySample) {
  uint64_t n_rows = services.op->count(host_->ctx);
  int n_claimed = 0;
  for (uint64_t row = 0; row < n_rows; ++row) {
    const tn_op* op = services.op->at(host_->ctx, row);
    if (op->sample == nullptr) continue;
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(cat(view(op->type), " seed ", seed));
      tn_graph* graph = nullptr;
      ASSERT_EQ(services.graph->create(host_->ctx, &graph), nullptr);
      tn_edit* edit = nullptr;
      ASSERT_EQ(services.edit->begin(graph, &edit), nullptr);
      tn_node_id node = 0;
      Status sampled(op->sample(op->self, edit, seed, &node));
      if (!sampled.ok()) {
        services.edit->rollback(edit);
        services.graph->release(graph);
        continue;
      }
      uint64_t n_out = services.graph->io_count(services.edit->graph(edit), node, TN_LIST_OUTPUTS);
      for (uint64_t i = 0; i < n_out; ++i) {
        tn_value_id value =
            services.graph->io_at(services.edit->graph(edit), node, TN_LIST_OUTPUTS, i);
        std::string name = cat("y", i);
        if (value == 0) continue;
        EXPECT_EQ(services.edit->add_output(edit, str(name), value), nullptr);
      }
      Status committed(services.edit->commit(edit));
      ASSERT_TRUE(committed.ok()) << committed.message();
      Results expected;
      Results got;
      std::string ignored;
      std::string description;
      Status reference = run(graph, R"({"backend": "reference"})", 5, &expected, &ignored);
      if (reference.ok()) {
        Status status = run(graph, R"({"backend": "onednn", "threads": 2})", 5, &got, &description);
        EXPECT_TRUE(status.ok()) << status.message();
        bool claimed = description.find("\"fallback_nodes\":[]") != std::string::npos;
        n_claimed += claimed;
        if (status.ok() && claimed) {
          EXPECT_LT(difference(got, expected), 2e-5) << description;
        }
      }
      services.graph->release(graph);
    }
  }
  EXPECT_GT(n_claimed, 100);
}

}  // namespace
}  // namespace tenon
