// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opening a data set and taking a batch of it.

#include <gmock/gmock.h>

#include "tenon/sdk/fields.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::test {

using testing::ElementsAre;
using testing::HasSubstr;

class DatasetTest : public PluginTest {
 protected:
  static constexpr std::string_view kRole = "tenon.dataset/1";

  Component open(std::string_view id, const json& options) {
    Result<Component> made = make(kRole, id, options);
    EXPECT_TRUE(made.ok());
    if (made.ok()) return std::move(*made);
    ADD_FAILURE() << text_of(made.status());
    return {};
  }
  static uint64_t size(const Component& data) {
    return data.table<tn_dataset>()->size(data.self());
  }
  static json fields(const Component& data) {
    StringSink sink;
    EXPECT_EQ(text_of(Status(data.table<tn_dataset>()->fields(data.self(), sink.get()))), "");
    return json::parse(sink.text);
  }
  std::string batch(const Component& data, std::vector<uint64_t> index, Collected* out) {
    return text_of(Status(
        data.table<tn_dataset>()->batch(data.self(), index.data(), index.size(), 0, &out->raw)));
  }
};

}  // namespace tenon::test
