// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tenon/host/graph.h"
#include "tenon/host/op.h"
#include "tenon/host/options.h"
#include "tenon/tenon.h"

#include "capi/capi.hpp"
#include "folders.hpp"

namespace tenon::host {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class CapiModel : public testing::Test {
 protected:
  CapiModel() {
    char name[] = "/tmp/tenon_model_XXXXXX";
    folder_ = mkdtemp(name);
    setenv("XDG_STATE_HOME", folder_.c_str(), 1);
    std::string config = json{{"plugin_path", {cat(test::kTestPluginFolder, "/good")}}}.dump();
    Status(tenon_open(str(config), &session_)).release();
  }
  void SetUp() override {
    const tn_host* host = tenon_host(session_);
    if (!host->get_interface(host, str("tenon.host.eval/1")))
      GTEST_SKIP() << "plugins of the SDK need tenon.host.eval/1, which this host lacks";
  }
  ~CapiModel() override {
    if (graph_) service<tn_host_graph>("tenon.host.graph/1")->release(graph_);
    tenon_close(session_);
    fs::remove_all(folder_);
  }

  std::string file(std::string_view name, std::string_view content) {
    std::ofstream(folder_ / name) << content;
    return (folder_ / name).string();
  }
  Status load(std::string_view path, std::string_view options = "") {
    return Status(tenon_load(session_, str(path), str(options), nullptr, &graph_));
  }
  Status save(const fs::path& path, std::string_view options = "") {
    return Status(tenon_save(session_, graph_, str(path.native()), str(options), nullptr));
  }
  // Applies test.keep with its option `fail`.
  Status keep(std::string_view fail) {
    const auto& options = *service<tn_host_options>("tenon.host.options/1");
    tn_options* given = nullptr;
    TN_CHECK(Status(options.create(context(session_), &given)));
    TN_CHECK(
        Status(options.set(given, str("fail"), {TN_ANY_TEXT, 0, fail.size(), {.p = fail.data()}})));
    tn_sink sink{&report_, append};
    tn_graph* changed = nullptr;
    Status status(tenon_apply(session_, graph_, str("test.keep"), given, nullptr, &sink, &changed));
    EXPECT_EQ(status.ok(), changed != nullptr);
    options.release(given);
    service<tn_host_graph>("tenon.host.graph/1")->release(changed);
    return status;
  }
  static tn_status* append(void* text, const void* data, uint64_t bytes) {
    static_cast<std::string*>(text)->append(static_cast<const char*>(data), bytes);
    return nullptr;
  }

  fs::path folder_;
  tenon_session* session_ = nullptr;
  tn_graph* graph_ = nullptr;
  std::string report_;
};

TEST_F(CapiModel, ReadsByNameByContentAndByFormat) {
  for (const char* name : {"a.vec", "a.unknown"}) {
    Status status = load(file(name, "vector 3"));
    EXPECT_TRUE(status.ok()) << status.text();
    service<tn_host_graph>("tenon.host.graph/1")->release(std::exchange(graph_, nullptr));
  }
  Status status = load(file("b", "vector 3"), R"({"format": "vector"})");
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST_F(CapiModel, SaysWhyAFileCannotBeRead) {
  EXPECT_THAT(load(file("a.vec", "matrix")).text(),
              HasSubstr("a.vec: expected 'vector N' (component vector.reader)"));
  EXPECT_THAT(load(file("a.xyz", "matrix")).text(), HasSubstr("expected a name with .vec"));
  EXPECT_THAT(load(file("a.vec", "vector 3"), R"({"format": "vektor"})").text(),
              AllOf(HasSubstr("expected one of com.acme.apart, vector"),
                    HasSubstr("did you mean 'vector'?")));
  EXPECT_THAT(load(file("a.vec", "vector 3"), R"({"format": "com"})").text(),
              HasSubstr("got 'com'"));
  EXPECT_EQ(load(file("a.vec", "vector 3"), R"({"format": "com.acme.apart"})").text(), "");
  service<tn_host_graph>("tenon.host.graph/1")->release(std::exchange(graph_, nullptr));
  EXPECT_THAT(load(file("a.vec", "vector 3"), "[]").text(), HasSubstr("expected a JSON object"));
  EXPECT_FALSE(load((folder_ / "absent.vec").string()).ok());
}

TEST_F(CapiModel, RefusesOptionsThatAreNestedTooDeep) {
  ASSERT_TRUE(load(file("a.vec", "vector 3")).ok());
  std::string deep = "{\"x\": " + std::string(400000, '[') + std::string(400000, ']') + "}";
  tn_plan* plan = nullptr;
  const tn_outputs none{
      nullptr, [](void*, uint64_t, const DLTensor*, DLTensor*) -> tn_status* { return nullptr; }};

  EXPECT_THAT(save(folder_ / "b.vec", deep).text(), HasSubstr("options: nested deeper than 64"));
  EXPECT_THAT(Status(tenon_compile(session_, graph_, str(deep), &plan)).text(),
              HasSubstr("plan options: nested deeper than 64"));
  EXPECT_THAT(
      Status(tenon_op(session_, str("test.Double"), str(deep), nullptr, 0, 0, &none, nullptr))
          .text(),
      HasSubstr("attributes: nested deeper than 64"));
}

TEST_F(CapiModel, RefusesMoreResultsThanANodeCanHave) {
  const tn_outputs none{
      nullptr, [](void*, uint64_t, const DLTensor*, DLTensor*) -> tn_status* { return nullptr; }};

  Status status(tenon_op(session_, str("test.Double"), {}, nullptr, 0, UINT64_MAX, &none, nullptr));

  EXPECT_THAT(status.text(), HasSubstr("expected at most 1048576 results, got 1844674407370955"));
}

TEST_F(CapiModel, RefusesAReaderThatLeavesAnEditOpen) {
  Status status = load(file("a.vec", "vector 3 and an edit"));

  EXPECT_EQ(status.code(), TN_INTERNAL);
  EXPECT_THAT(status.text(), HasSubstr("vector.reader: it left an edit of the graph open"));
}

TEST_F(CapiModel, WritesWholeFilesOrNone) {
  ASSERT_TRUE(load(file("a.vec", "vector 31")).ok());

  EXPECT_THAT(save(folder_ / "b.vec", R"({"fail": true})").text(), HasSubstr("disk is full"));
  EXPECT_FALSE(fs::exists(folder_ / "b.vec"));
  EXPECT_THAT(save(folder_ / "b.xyz").text(), HasSubstr("no writer is for such a file"));
  ASSERT_TRUE(save(folder_ / "b.vec").ok());

  std::string text;
  std::getline(std::ifstream(folder_ / "b.vec"), text);
  EXPECT_EQ(text, "vector 31");
}

TEST_F(CapiModel, AppliesAPassAndHandsOnItsReport) {
  ASSERT_TRUE(load(file("a.vec", "vector 3")).ok());

  Status status = keep("");

  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(report_, R"({"kept": true})");
}

TEST_F(CapiModel, NamesThePassThatFailsOrThrows) {
  ASSERT_TRUE(load(file("a.vec", "vector 3")).ok());

  Status refused = keep("status");
  EXPECT_EQ(refused.code(), TN_OUT_OF_RANGE);
  EXPECT_THAT(refused.text(),
              HasSubstr("(component test.keep) (role tenon.pass/1) (function run)"));
  EXPECT_THAT(keep("throw").text(), HasSubstr("thrown by the test plugin"));
  EXPECT_THAT(keep("trow").text(), HasSubstr("did you mean 'throw'?"));
}

TEST_F(CapiModel, AnOperatorIsFoundByLoadingThePluginThatBringsIt) {
  const tn_host* host = tenon_host(session_);
  const auto& ops = *service<tn_host_op>("tenon.host.op/1");

  EXPECT_NE(ops.find(host->ctx, str("test"), str("Double")), nullptr);
  EXPECT_EQ(ops.find(host->ctx, str("test"), str("Triple")), nullptr);
}

TEST_F(CapiModel, NothingIsHeldAfterwards) {
  ASSERT_TRUE(load(file("a.vec", "vector 3")).ok());
  ASSERT_TRUE(keep("").ok());
  service<tn_host_graph>("tenon.host.graph/1")->release(std::exchange(graph_, nullptr));
  std::string text;
  tn_sink sink{&text, append};

  ASSERT_TRUE(Status(tenon_plugin_balance(session_, &sink)).ok());

  json balance = json::parse(text);
  for (const auto& [plugin, counts] : balance.items())
    for (const auto& [kind, count] : counts.items())
      EXPECT_EQ(count, 0) << plugin << " " << kind;
}

}  // namespace
}  // namespace tenon::host
