// SPDX-License-Identifier: Apache-2.0
#pragma once
// A session that knows the fake devices, and plans on them.

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tenon/abi.h"
#include "tenon/tenon.h"

#include "folders.hpp"

namespace tenon::test {

inline tn_str str(const std::string& text) {
  return {text.data(), text.size()};
}

inline tn_sink into(std::string* text) {
  return {text, [](void* to, const void* data, uint64_t len) -> tn_status* {
            static_cast<std::string*>(to)->append(static_cast<const char*>(data), len);
            return nullptr;
          }};
}

// The message, or "" for success; gives the status back.
inline std::string take_text(tn_status* status) {
  std::string text;
  tn_sink sink = into(&text);
  if (status) tenon_status_release(tenon_status_text(status, &sink));
  tenon_status_release(status);
  return text;
}

// Dense f32 tensors in host memory.
struct Array {
  std::vector<int64_t> layout;
  std::vector<float> data;
  DLTensor dl{};
  explicit Array(std::vector<int64_t> shape, float first = 0, float step = 0) : layout(shape) {
    int64_t n = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    for (int64_t i = 0; i < n; ++i)
      data.push_back(first + step * static_cast<float>(i));
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      strides[i - 1] = strides[i] * shape[i];
    layout.insert(layout.end(), strides.begin(), strides.end());
    dl = {data.data(),
          {kDLCPU, 0},
          static_cast<int32_t>(shape.size()),
          {kDLFloat, 32, 1},
          layout.data(),
          layout.data() + shape.size(),
          0};
  }
};

struct Results {
  std::vector<std::unique_ptr<Array>> arrays;
  static tn_status* get(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
    auto& arrays = static_cast<Results*>(self)->arrays;
    if (arrays.size() <= i) arrays.resize(i + 1);
    arrays[i] =
        std::make_unique<Array>(std::vector<int64_t>(proto->shape, proto->shape + proto->ndim));
    *out = arrays[i]->dl;
    return nullptr;
  }
  tn_outputs outputs() { return {this, get}; }
};

class FakeDevice : public testing::Test {
 protected:
  void SetUp() override {
    std::string config = std::string(R"({"plugin_path": [")") + kPluginFolder + "\", \"" +
                         kTestPluginFolder + "/devices\"]}";
    ASSERT_EQ(take_text(tenon_open(str(config), &session_)), "");
    host_ = tenon_host(session_);
    graph_ = table<tn_host_graph>("tenon.host.graph/1");
    eval_ = table<tn_host_eval>("tenon.host.eval/1");
    component_ = table<tn_host_component>("tenon.host.component/1");
  }
  void TearDown() override {
    EXPECT_EQ(live_blocks(), 0);
    tenon_close(session_);
  }
  template <class T>
  const T* table(const std::string& id) {
    return static_cast<const T*>(host_->get_interface(host_, str(id)));
  }
  // A backend's functions, without a plan around them.
  struct Backend {
    tn_component_ref* ref = nullptr;
    const tn_backend* table = nullptr;
    void* self = nullptr;
  };
  Backend backend(const std::string& id) {
    Backend out;
    EXPECT_EQ(take_text(component_->create(host_->ctx, str("tenon.backend/1"), str(id), nullptr,
                                           &out.ref)),
              "");
    out.table = static_cast<const tn_backend*>(
        component_->get_interface(out.ref, str("tenon.backend/1"), &out.self));
    return out;
  }
  int live_blocks() {
    int blocks = 0;
    for (const char* id : {"fakedev", "fakedev.second"}) {
      Backend device = backend(id);
      std::string text;
      tn_sink sink = into(&text);
      EXPECT_EQ(take_text(device.table->devices(device.self, &sink)), "");
      component_->release(device.ref);
      size_t at = text.find("live_blocks\": ");
      blocks += at == std::string::npos ? 1000 : std::stoi(text.substr(at + 14));
    }
    return blocks;
  }
  tn_plan* compile(const std::string& graph_text, const std::string& options) {
    tn_graph* graph = nullptr;
    EXPECT_EQ(take_text(graph_->parse(host_->ctx, str(graph_text), &graph)), "");
    tn_plan* plan = nullptr;
    if (!graph) return nullptr;
    EXPECT_EQ(take_text(tenon_compile(session_, graph, str(options), &plan)), "");
    graph_->release(graph);
    return plan;
  }
  std::string run(tn_plan* plan, std::vector<const Array*> in, Results* results) {
    std::vector<const DLTensor*> pointers;
    for (const Array* array : in)
      pointers.push_back(&array->dl);
    tn_outputs outputs = results->outputs();
    return take_text(tenon_run(plan, pointers.data(), pointers.size(), &outputs, nullptr));
  }
  std::string describe(tn_plan* plan) {
    std::string text;
    tn_sink sink = into(&text);
    EXPECT_EQ(take_text(eval_->describe(plan, &sink)), "");
    return text;
  }

  tenon_session* session_ = nullptr;
  const tn_host* host_ = nullptr;
  const tn_host_graph* graph_ = nullptr;
  const tn_host_eval* eval_ = nullptr;
  const tn_host_component* component_ = nullptr;
};

}  // namespace tenon::test
