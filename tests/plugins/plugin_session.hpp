// SPDX-License-Identifier: Apache-2.0
#pragma once
// A session over the built plugins for tests that drive them as an embedding program does: through
// libtenon's C API, with the SDK's handles over the services that it gives.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tenon/role/dataset.h"
#include "tenon/role/metric.h"
#include "tenon/role/observer.h"
#include "tenon/tenon.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/edit.hpp"

#include "folders.hpp"

namespace tenon::test {

using nlohmann::json;

// The whole message, causes included; empty for success.
inline std::string text_of(const Status& status) {
  return status.text();
}

// A file of tests/golden, as another program wrote it.
inline json golden(std::string_view file) {
  std::ifstream in(cat(kSourceFolder, "/tests/golden/", file));
  json all = json::parse(in, nullptr, false);
  EXPECT_FALSE(all.is_discarded()) << "tests/golden/" << file << " cannot be read";
  return all;
}

// Outputs of a run or a batch, kept as host tensors.
struct Collected {
  explicit Collected(tn_ctx* owner) : ctx(owner) {}
  Collected(const Collected&) = delete;
  tn_ctx* ctx;
  std::vector<Tensor> tensors;
  tn_outputs raw{this, [](void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
                   auto* all = static_cast<Collected*>(self);
                   return guard([&]() -> Status {
                     if (all->tensors.size() <= i) all->tensors.resize(i + 1);
                     TN_TRY(made, Tensor::zeros(all->ctx, dtype_of(*proto), shape_of(*proto)));
                     all->tensors[i] = made;
                     *out = made.dl();
                     return {};
                   });
                 }};
  template <class T>
  std::vector<T> numbers(size_t i) const {
    const T* data = tensors[i].data<T>();
    return {data, data + element_count(tensors[i].dl())};
  }
  std::vector<int64_t> shape(size_t i) const {
    DLTensor t = tensors[i].dl();
    return {t.shape, t.shape + t.ndim};
  }
};

class PluginTest : public testing::Test {
 protected:
  PluginTest() {
    char name[] = "/tmp/tenon_plugins_XXXXXX";
    folder_ = mkdtemp(name);
    setenv("XDG_STATE_HOME", folder_.c_str(), 1);
    // Tests that travel without their build folder are given the folder of the plugins.
    const char* elsewhere = std::getenv("TENON_TEST_PLUGINS");
    std::string plugins = elsewhere ? elsewhere : kPluginFolder;
    std::string config = json{{"plugin_path", {plugins}}}.dump();
    tn_status* failed = tenon_open(str(config), &session_);
    if (failed) tenon_status_release(failed);
  }
  void SetUp() override {
    ASSERT_NE(session_, nullptr);
    ASSERT_EQ(services.fill(*tenon_host(session_)), "");
    ctx_ = tenon_host(session_)->ctx;
  }
  ~PluginTest() override {
    tenon_close(session_);
    std::filesystem::remove_all(folder_);
  }

  std::string write(std::string_view name, std::string_view content) {
    std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  Result<Component> make(std::string_view role, std::string_view id, const json& options = {}) {
    return Component::create(ctx_, role, id, options.is_null() ? "" : options.dump());
  }
  // The message with which a component is refused.
  std::string refusal(std::string_view role, std::string_view id, const json& options = {}) {
    Result<Component> made = make(role, id, options);
    return made.ok() ? "" : text_of(made.status());
  }

  std::filesystem::path folder_;
  tenon_session* session_ = nullptr;
  tn_ctx* ctx_ = nullptr;
};

}  // namespace tenon::test
