// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests on a GPU, against the backend "reference"; skipped, test by test, where there is none.

#include <cmath>
#include <cstring>
#include <random>

#include "tenon/role/backend.h"

#include "tenon/sdk/number.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::test {

using Numbers = std::vector<double>;

class OnDevice : public tenon::test::PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    Result<Component> cuda = make("tenon.backend/1", "cuda");
    ASSERT_TRUE(cuda.ok()) << text_of(cuda.status());
    cuda_ = std::make_unique<Component>(std::move(*cuda));
    StringSink sink;
    Status asked(table()->devices(cuda_->self(), sink.get()));
    ASSERT_TRUE(asked.ok()) << asked.message();
    devices_ = json::parse(sink.text);
    for (const json& device : devices_)
      if (device.contains("why")) GTEST_SKIP() << device["why"];
    ASSERT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
  }
  void TearDown() override {
    for (tn_plan* plan : plans_)
      services.eval->release(plan);
    cuda_.reset();
  }
  int architecture() const { return devices_[0]["architecture"]; }
  const tn_backend* table() const { return cuda_->table<tn_backend>(); }

  OwnedGraph parse(const std::string& text) {
    tn_graph* raw = nullptr;
    Status parsed(services.graph->parse(ctx_, str(text), &raw));
    EXPECT_TRUE(parsed.ok()) << parsed.message();
    return OwnedGraph::take(raw);
  }
  tn_plan* compile(const tn_graph* graph, const json& options) {
    tn_plan* plan = nullptr;
    Status made(tenon_compile(session_, graph, str(options.dump()), &plan));
    EXPECT_TRUE(made.ok()) << text_of(std::move(made));
    if (plan) plans_.push_back(plan);
    return plan;
  }
  // Random floats in [-1, 1], small integers for other types; a step that trains, not one that
  // flies apart, whose rounding would grow in every run.
  std::vector<Tensor> inputs_of(const tn_graph* graph, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Tensor> out;
    std::vector<Value> states = Graph{graph}.list(TN_LIST_STATES, 0);
    for (Value input : Graph{graph}.inputs()) {
      if (std::find(states.begin(), states.end(), input) != states.end()) continue;
      Type type = input.type();
      Result<Tensor> made = Tensor::zeros(ctx_, type.dtype, type.dims);
      EXPECT_TRUE(made.ok());
      for (int64_t i = 0; i < type.elements(); ++i) {
        int number = static_cast<int>(random() % 257) - 128;
        if (type.dtype == TN_F32) made->data<float>()[i] = static_cast<float>(number) / 128;
        if (type.dtype == TN_BF16 || type.dtype == TN_F16) {
          // Multiples of 1/128 of few bits are exact in both.
          float value = static_cast<float>(number / 2) / 64;
          uint32_t bits = std::bit_cast<uint32_t>(value);
          uint32_t half = value == 0 ? 0
                                     : (bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) |
                                           (bits >> 13 & 1023);
          made->data<uint16_t>()[i] =
              static_cast<uint16_t>(type.dtype == TN_BF16 ? bits >> 16 : half);
        }
        if (type.dtype == TN_I64) made->data<int64_t>()[i] = number & 1;
      }
      if (input.name() == "learning_rate") *made->data<float>() = 0.01f;
      out.push_back(*made);
    }
    return out;
  }
  // The outputs as numbers, or the failure's text in `failed`.
  std::vector<Numbers> run(tn_plan* plan, const std::vector<Tensor>& inputs, std::string* failed) {
    std::vector<DLTensor> views;
    for (const Tensor& input : inputs)
      views.push_back(input.dl());
    std::vector<const DLTensor*> pointers;
    for (const DLTensor& one : views)
      pointers.push_back(&one);
    Collected results(ctx_);
    *failed =
        text_of(Status(tenon_run(plan, pointers.data(), pointers.size(), &results.raw, nullptr)));
    std::vector<Numbers> out;
    for (size_t i = 0; failed->empty() && i < results.tensors.size(); ++i) {
      Result<Numbers> numbers = numbers_as<double>(results.tensors[i].dl());
      if (!numbers.ok()) *failed = text_of(numbers.status());
      if (failed->empty()) out.push_back(*numbers);
    }
    return out;
  }
  json describe(tn_plan* plan) {
    StringSink sink;
    Status described(services.eval->describe(plan, sink.get()));
    EXPECT_TRUE(described.ok());
    return json::parse(sink.text);
  }
  // `runs` runs, so that queued runs and captured ones are both compared; nothing falls back.
  void agree(const std::string& text, double tolerance, int runs = 3, const json& options = {}) {
    agree_in_parts(text, tolerance, runs, options);
    EXPECT_TRUE(last_["fallback_nodes"].empty()) << last_;
  }
  // The same where some nodes fall back; `last_` says which.
  void agree_in_parts(const std::string& text, double tolerance, int runs, const json& options) {
    OwnedGraph graph = parse(text);
    json with = options.is_null() ? json::object() : options;
    with["backend"] = "cuda";
    tn_plan* device = compile(graph.get(), with);
    tn_plan* reference = compile(graph.get(), {{"backend", "reference"}});
    ASSERT_TRUE(device && reference);
    for (int i = 0; i < runs; ++i) {
      std::vector<Tensor> inputs = inputs_of(graph.get(), 11 + static_cast<uint32_t>(i));
      std::string failed;
      std::vector<Numbers> got = run(device, inputs, &failed);
      ASSERT_EQ(failed, "");
      std::vector<Numbers> wanted = run(reference, inputs, &failed);
      ASSERT_EQ(failed, "");
      compare(got, wanted, tolerance);
    }
    last_ = describe(device);
  }
  static void compare(const std::vector<Numbers>& got,
                      const std::vector<Numbers>& wanted,
                      double tolerance) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t k = 0; k < got.size(); ++k) {
      double most = 1, worst = 0;
      for (size_t i = 0; i < wanted[k].size(); ++i) {
        double x = got[k][i], y = wanted[k][i];
        if (std::isfinite(y)) most = std::max(most, std::abs(y));
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        double error = std::abs(x - y);
        worst = std::isnan(error) ? INFINITY : std::max(worst, error);
      }
      EXPECT_LT(worst / most, tolerance) << "output " << k;
    }
  }

  std::unique_ptr<Component> cuda_;
  std::vector<tn_plan*> plans_;
  json devices_, last_;
};

}  // namespace tenon::test
