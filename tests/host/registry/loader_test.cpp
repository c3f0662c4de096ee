// SPDX-License-Identifier: Apache-2.0
#include "registry/loader.hpp"

#include <algorithm>
#include <cfenv>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>

#include "tenon/role/pass.h"

#include "folders.hpp"
#include "graph/op_table.hpp"
#include "registry/registry.hpp"
#include "services/log.hpp"
#include "services/session.hpp"

namespace tenon::host {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

const fs::path kPlugins = test::kTestPluginFolder;

// A folder of its own for each test, which is also the user's state folder.
class Loader : public testing::Test {
 protected:
  Loader() {
    char name[] = "/tmp/tenon_loader_XXXXXX";
    folder_ = mkdtemp(name);
    setenv("XDG_STATE_HOME", folder_.c_str(), 1);
    setenv("XDG_DATA_HOME", (folder_ / "data").c_str(), 1);
    unsetenv("TENON_PLUGIN_PATH");
    unsetenv("TENON_SAFE_MODE");
  }
  ~Loader() override { fs::remove_all(folder_); }

  static Session open(const fs::path& folder) { return Session({{folder.string()}, false, false}); }
  fs::path broken(std::string_view way) const { return kPlugins / "broken" / cat(way, ".so"); }
  std::string why_not(std::string_view way) const {
    Session session;
    return session.registry->load(broken(way).string()).text();
  }
  fs::path folder_;
};

// A load is whole or nothing, the second time as well.
TEST_F(Loader, KeepsNoRowOfAPluginThatIsRefused) {
  Session session;
  std::string path = (kPlugins / "half" / "half.so").string();

  std::string first = session.registry->load(path).text();
  std::string second = session.registry->load(path).text();

  EXPECT_THAT(first, HasSubstr("operator test:Wrong: expr"));
  EXPECT_THAT(second, HasSubstr("operator test:Wrong: expr"));
  EXPECT_EQ(session.ops->size(), 0u);
}

TEST_F(Loader, LoadsByPathAndShowsIt) {
  Session session;

  Status status = session.registry->load((kPlugins / "broken" / "fine.so").string());

  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(session.registry->load((kPlugins / "broken" / "fine.so").string()).ok());
  EXPECT_THAT(session.registry->balance(), HasSubstr("\"broken.fine\":{\"statuses\":0"));
}

TEST_F(Loader, LoadsByTheIdOfAComponent) {
  Session session = open(kPlugins / "broken");

  Result<Registry::Found> found = session.registry->find("tenon.pass/1", "broken.fine");

  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(view(found->component->id), "broken.fine");
}

TEST_F(Loader, SaysWhichRoleItDoesNotHave) {
  const std::string why = "this host has no role tenon.pass/2; tenon.pass/1 is the one it has";
  Session session = open(kPlugins / "broken");

  EXPECT_TRUE(session.registry->load("broken.newer_role").ok());  // its other components may do
  EXPECT_THAT(session.registry->find("tenon.pass/1", "broken.newer_role").status().text(),
              HasSubstr(why));
  EXPECT_THAT(session.registry->find("tenon.pass/2", "broken.none").status().text(),
              HasSubstr("not found"));
  EXPECT_THAT(session.registry->doctor(), HasSubstr("component broken.newer_role: " + why));
  EXPECT_THAT(session.registry->list_plugins(), HasSubstr(why));
  EXPECT_THAT(why_no_role("tenon.schedul/1"), HasSubstr("did you mean 'tenon.schedule/1'"));
  EXPECT_EQ(why_no_role("com.acme.thing/1"), "");
}

TEST_F(Loader, SaysWhichComponentStandsInForAnothers) {
  for (const char* way : {"rival", "fine"}) {
    fs::create_directories(folder_ / way);
    fs::copy(broken(way), folder_ / way / cat(way, ".so"));
  }
  Session session({{(folder_ / "rival").string(), (folder_ / "fine").string()}, false, false});
  std::string logged;
  session.log->on_log(
      [](void* arg, uint32_t level, tn_str, tn_str message) {
        if (level == TN_LOG_WARNING) static_cast<std::string*>(arg)->append(view(message));
      },
      &logged);

  EXPECT_TRUE(session.registry->find("tenon.pass/1", "broken.fine").ok());

  EXPECT_THAT(logged, HasSubstr("plugin broken.rival: component broken.fine of role tenon.pass/1 "
                                "is used in place of that of plugin broken.fine"));
  json places = json::parse(session.registry->doctor())["places"];
  EXPECT_THAT(places[0]["files"][0]["remarks"].dump(), HasSubstr("is used in place of"));
  EXPECT_THAT(places[1]["files"][0]["remarks"].dump(), HasSubstr("comes first"));
}

TEST_F(Loader, AnEmptyNameIsNoPlugin) {
  Session session = open(kPlugins / "broken");
  std::ofstream(folder_ / "text.so") << "not a library";
  (void)session.registry->load((folder_ / "text.so").string());

  EXPECT_THAT(session.registry->load("").text(), HasSubstr("expected a path or an id, got ''"));
}

TEST_F(Loader, RefusesAnotherAbi) {
  EXPECT_THAT(why_not("major"), HasSubstr("ABI major: expected 0 to 0, got 6; install a newer"));
  EXPECT_THAT(why_not("minor"), HasSubstr("ABI minor: it needs 0.3, this host has 0.2"));
  EXPECT_THAT(why_not("older"),
              HasSubstr("ABI minor: it was built with 0.1, tables have changed since and "
                        "this host takes 0.2 and newer; rebuild the plugin"));
  EXPECT_THAT(why_not("bits"), HasSubstr("pointer bits: expected 64, got 32"));
}

TEST_F(Loader, RefusesAnotherSanitizer) {
  EXPECT_THAT(why_not("sanitizer"), HasSubstr("memory; build host and plugin with the same"));
}

TEST_F(Loader, PassesOnWhatThePluginRefuses) {
  EXPECT_THAT(why_not("refuses"), HasSubstr("two hands: install libhands"));
  EXPECT_THAT(why_not("init_fails"), HasSubstr("its init failed: broken.init_fails: no licence"));
}

TEST_F(Loader, CallsInitAndDeinitOfAPluginInTurnForAllSessions) {
  std::vector<std::string> refused(3);
  {
    std::vector<std::jthread> threads;
    for (std::string& why : refused)
      threads.emplace_back([&] {
        for (int i = 0; i < 5 && why.empty(); ++i)
          why = why_not("meets");
      });
  }
  EXPECT_THAT(refused, testing::Each(""));
}

TEST_F(Loader, RefusesBrokenTables) {
  EXPECT_THAT(why_not("no_plugin"), HasSubstr("its tn_plugin is NULL"));
  EXPECT_THAT(why_not("small"), HasSubstr("expected struct_size from"));
  EXPECT_THAT(why_not("large"), HasSubstr("got 1048576; set it with sizeof"));
  EXPECT_THAT(why_not("no_create"), HasSubstr("its tn_plugin has no create"));
  EXPECT_THAT(why_not("no_components"), HasSubstr("its tn_plugin has no components"));
}

TEST_F(Loader, RefusesADescriptionThatLies) {
  EXPECT_THAT(why_not("lies"), HasSubstr("component 0 something.else of role tenon.pass/1 is "
                                         "missing in its description"));
}

TEST_F(Loader, RefusesFilesThatAreNoPlugins) {
  EXPECT_THAT(why_not("no_entry"), HasSubstr("expected it to export tenon_plugin_entry"));
  EXPECT_THAT(why_not("absent"), HasSubstr("no such file"));
  std::ofstream(folder_ / "text.so") << "not a library";

  Session session = open(folder_);

  EXPECT_THAT(session.registry->load((folder_ / "text.so").string()).text(),
              HasSubstr("not a shared library: expected an ELF file"));
  EXPECT_THAT(session.registry->doctor(), HasSubstr("expected an ELF file"));
}

TEST_F(Loader, SurvivesEveryCutOfAFile) {
  std::ifstream in(broken("fine"), std::ios::binary);
  std::string whole{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(whole.size(), 1000u);
  for (size_t bytes = 0; bytes < whole.size(); bytes += whole.size() / 150) {
    fs::path cut = folder_ / "cut.so";
    std::ofstream(cut, std::ios::binary | std::ios::trunc).write(whole.data(), bytes);
    EXPECT_FALSE(read_description(cut).ok()) << bytes;
  }
}

TEST_F(Loader, ListingRunsNoCode) {
  fs::path started = folder_ / "started";
  setenv("TENON_TEST_STARTED", started.c_str(), 1);
  fs::create_directories(folder_ / "mine");  // a copy: the file itself may be loaded already
  fs::copy(kPlugins / "good" / "keep.so", folder_ / "mine" / "keep.so");
  Session session = open(folder_ / "mine");

  json plugins = json::parse(session.registry->list_plugins());

  EXPECT_EQ(plugins[0]["id"], "test");
  EXPECT_EQ(plugins[0]["version"], "1.2.3");
  EXPECT_EQ(plugins[0]["components"][0]["id"], "test.keep");
  EXPECT_EQ(plugins[0]["loaded"], false);
  EXPECT_FALSE(fs::exists(started));
  (void)session.registry->load("test");  // to show that the file would be there
  EXPECT_TRUE(fs::exists(started));
  unsetenv("TENON_TEST_STARTED");
}

TEST_F(Loader, NamesTheNearestAndThePlaces) {
  Session session = open(kPlugins / "broken");

  EXPECT_THAT(session.registry->load("broken.fime").text(),
              HasSubstr("did you mean 'broken.fine'"));
  EXPECT_THAT(session.registry->find("tenon.pass/1", "broken.fime").status().text(),
              HasSubstr("did you mean 'broken.fine'"));
  EXPECT_THAT(session.registry->load("zzz").text(), HasSubstr((kPlugins / "broken").string()));
}

TEST_F(Loader, DraftsMustBeEnabled) {
  Session closed = open(kPlugins / "broken");
  Session drafts({{(kPlugins / "broken").string()}, false, true});

  EXPECT_THAT(closed.registry->find("tenon.pass/1", "broken.draft").status().text(),
              HasSubstr("is a draft"));
  EXPECT_TRUE(drafts.registry->find("tenon.pass/1", "broken.draft").ok());
}

// The row is there once drafts are enabled, and until then a warning says why not.
TEST_F(Loader, RowsOfADraftMustBeEnabled) {
  Session closed = open(kPlugins / "rows");
  Session drafts({{(kPlugins / "rows").string()}, false, true});
  std::string logged;
  closed.log->on_log([](void* arg, uint32_t, tn_str,
                        tn_str message) { static_cast<std::string*>(arg)->append(view(message)); },
                     &logged);

  EXPECT_TRUE(closed.registry->load("test.draft_rows").ok());
  EXPECT_TRUE(drafts.registry->load("test.draft_rows").ok());

  EXPECT_EQ(closed.ops->size(), 0u);
  EXPECT_EQ(drafts.ops->size(), 1u);
  EXPECT_THAT(logged, HasSubstr("test.draft_rows: its operators are drafts"));
}

TEST_F(Loader, RowsAreMadeWithTheDefaultsOfTheirOptions) {
  Session session = open(kPlugins / "rows");

  Status status = session.registry->load("test.rows");

  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(*static_cast<double*>(session.ops->find("test", "Scaled")->given.self), 3);
}

TEST_F(Loader, ALibraryChangesNothingOfHowItsCallerRounds) {
  Session session;

  Status status = session.registry->load(broken("rounds").string());

  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST_F(Loader, SafeModeIgnoresAllButTheBuiltIn) {
  setenv("TENON_SAFE_MODE", "1", 1);
  Session session = open(kPlugins / "broken");

  json places = json::parse(session.registry->doctor())["places"];

  EXPECT_EQ(places[0]["folder"], (kPlugins / "broken").string());
  EXPECT_EQ(places[0]["searched"], false);
  EXPECT_THAT(places[0]["why"].get<std::string>(), HasSubstr("safe mode"));
  EXPECT_EQ(places.back()["source"], "built-in");
  EXPECT_FALSE(session.registry->find("tenon.pass/1", "broken.fine").ok());
}

TEST_F(Loader, TheFirstPlaceWinsAndTheOtherIsShown) {
  fs::create_directories(folder_ / "mine");
  fs::copy(broken("fine"), folder_ / "mine" / "fine.so");
  setenv("TENON_PLUGIN_PATH", (kPlugins / "broken").c_str(), 1);
  Session session = open(folder_ / "mine");

  json plugins = json::parse(session.registry->list_plugins());

  EXPECT_EQ(plugins[0]["source"], "config");
  EXPECT_EQ(plugins[0]["usable"], true);
  auto other = std::find_if(plugins.begin(), plugins.end(), [](const json& plugin) {
    return plugin["id"] == "broken.fine" && plugin["source"] == "TENON_PLUGIN_PATH";
  });
  ASSERT_NE(other, plugins.end());
  EXPECT_THAT((*other)["why"].get<std::string>(), HasSubstr("comes first"));
}

}  // namespace
}  // namespace tenon::host
