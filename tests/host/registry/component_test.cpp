// SPDX-License-Identifier: Apache-2.0
#include "registry/component.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tenon/host/options.h"
#include "tenon/role/pass.h"

#include "folders.hpp"
#include "services/session.hpp"
#include "services/status_object.hpp"

namespace tenon::host {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Component : public testing::Test {
 protected:
  Component() : session_({{cat(test::kTestPluginFolder, "/broken")}, false, false}) {}

  tn_ctx* ctx() { return session_.own; }
  Status create(std::string_view id, tn_component_ref** out, const tn_options* options = nullptr) {
    return Status(service_->create(ctx(), str("tenon.pass/1"), str(id), options, out));
  }
  json balance() { return json::parse(session_.registry->balance()); }

  static tn_status* append(void* text, const void* data, uint64_t bytes) {
    static_cast<std::string*>(text)->append(static_cast<const char*>(data), bytes);
    return nullptr;
  }

  const tn_host_component* service_ =
      static_cast<const tn_host_component*>(find_service("tenon.host.component/1"));
  Session session_;
};

TEST_F(Component, GivesTheTableOfItsRole) {
  tn_component_ref* made = nullptr;
  Status status = create("broken.fine", &made);
  ASSERT_TRUE(status.ok()) << status.text();

  void* self = nullptr;
  const auto* pass =
      static_cast<const tn_pass*>(service_->get_interface(made, str("tenon.pass/1"), &self));
  std::string report;
  tn_sink sink{&report, append};
  Status ran(pass->run(self, nullptr, nullptr, &sink));

  EXPECT_TRUE(ran.ok());
  EXPECT_EQ(report, "{}");
  EXPECT_EQ(view(service_->id(made)), "broken.fine");
  EXPECT_EQ(service_->get_interface(made, str("com.acme.none/1"), &self), nullptr);
  EXPECT_EQ(self, nullptr);
  service_->release(made);
}

TEST_F(Component, IsLentWithAWholeTableOfAKnownRole) {
  tn_pass table{sizeof table, 1, nullptr};
  tn_component_ref* lent = nullptr;
  auto refusal = [&](std::string_view role) {
    return Status(service_->lend(ctx(), str(role), str("mine"), &table, nullptr, nullptr, &lent))
        .text();
  };
  EXPECT_THAT(refusal("tenon.pass/1"), HasSubstr("table tenon.pass/1: function run is NULL"));
  table.run = [](void*, tn_graph*, const tn_cancel*, const tn_sink*) -> tn_status* {
    return nullptr;
  };
  EXPECT_THAT(refusal("tenon.pass/2"), HasSubstr("tenon.pass/1 is the one it has"));
  table.struct_size = 8;
  EXPECT_THAT(refusal("tenon.pass/1"), HasSubstr("function run is NULL or beyond"));
  table.struct_size = sizeof table;
  EXPECT_EQ(refusal("tenon.pass/1"), "");
  service_->release(lent);
}

TEST_F(Component, IsCountedUntilItIsReleased) {
  tn_component_ref* made = nullptr;
  ASSERT_TRUE(create("broken.fine", &made).ok());
  service_->retain(made);

  service_->release(made);
  EXPECT_EQ(balance()["embedder"]["components"], 1);

  service_->release(made);
  EXPECT_EQ(balance()["embedder"]["components"], 0);
  EXPECT_EQ(balance()["embedder"]["options"], 0);
  EXPECT_EQ(balance()["broken.fine"]["components"], 0);
}

TEST_F(Component, RefusesOptionsThatItsSchemaLacks) {
  const auto& options = *static_cast<const tn_host_options*>(find_service("tenon.host.options/1"));
  tn_options* given = nullptr;
  ASSERT_TRUE(Status(options.create(ctx(), &given)).ok());
  ASSERT_TRUE(Status(options.parse(given, str(R"({"ratio": 1})"))).ok());

  tn_component_ref* made = nullptr;
  Status status = create("broken.fine", &made, given);
  options.release(given);

  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
  EXPECT_THAT(status.text(), HasSubstr("broken.fine: "));
  EXPECT_THAT(status.text(), HasSubstr("ratio"));
  EXPECT_EQ(made, nullptr);
}

TEST_F(Component, AFunctionThatIsMissingAnswersInItsName) {
  Result<Made<tn_pass>> pass =
      Made<tn_pass>::create(ctx(), "tenon.pass/1", "broken.short_table", nullptr);
  ASSERT_TRUE(pass.ok()) << pass.status().text();

  Status status = pass->called("run", (*pass)->run(pass->self(), nullptr, nullptr, nullptr));

  EXPECT_EQ(status.code(), TN_UNIMPLEMENTED);
  EXPECT_THAT(status.text(), HasSubstr("broken.short_table: function run of tenon.pass/1"));
  EXPECT_THAT(status.text(), HasSubstr("(role tenon.pass/1) (function run)"));
}

TEST_F(Component, BrokenTablesAreRefused) {
  auto why_not = [this](std::string_view id) {
    return Made<tn_pass>::create(ctx(), "tenon.pass/1", id, nullptr).status().text();
  };
  EXPECT_THAT(why_not("broken.no_table"), HasSubstr("no table for its own role"));
  EXPECT_THAT(why_not("broken.wrong_table"), HasSubstr("its table is broken"));
  EXPECT_THAT(why_not("broken.wrong_table"), HasSubstr("got 7; set it with sizeof"));
}

TEST_F(Component, ListsWhatIsNotLoaded) {
  std::string text;
  tn_sink sink{&text, append};

  ASSERT_TRUE(Status(service_->list(ctx(), str("tenon.pass/1"), &sink)).ok());

  json all = json::parse(text);
  auto fine =
      std::find_if(all.begin(), all.end(), [](const json& c) { return c["id"] == "broken.fine"; });
  ASSERT_NE(fine, all.end());
  EXPECT_EQ((*fine)["plugin"], "broken.fine");
  EXPECT_EQ(balance().size(), 1u);  // nobody was loaded
}

TEST_F(Component, NoComponentIsForAnUnknownFile) {
  std::string text;
  tn_sink sink{&text, append};

  Status status(service_->for_file(ctx(), str("tenon.reader/1"), str("a.xyz"), &sink));

  EXPECT_EQ(status.code(), TN_NOT_FOUND);
  EXPECT_THAT(status.text(), HasSubstr("a.xyz: no reader is for such a file"));
}

TEST_F(Component, OfARoleWithoutFilesIsNamedByItsId) {
  std::string text;
  tn_sink sink{&text, append};

  Status status(service_->for_file(ctx(), str("tenon.pass/1"), str("broken.fime"), &sink));

  EXPECT_EQ(status.code(), TN_NOT_FOUND);
  EXPECT_THAT(status.text(), HasSubstr("component broken.fime of role tenon.pass/1: not found (did "
                                       "you mean 'broken.fine'?)"));
}

// One pass, called by two threads at once.
class Turns : public testing::Test {
 protected:
  Turns() : session_({{cat(test::kTestPluginFolder, "/turns")}, false, false}) {}

  // The largest number of calls that were inside, by what the calls themselves say.
  int most_inside(std::string_view id, int calls) {
    Result<Made<tn_pass>> pass = Made<tn_pass>::create(session_.own, "tenon.pass/1", id, nullptr);
    EXPECT_TRUE(pass.ok()) << pass.status().text();
    std::atomic<int> most{0};
    auto call = [&] {
      for (int i = 0; i < calls; ++i) {
        std::string report;
        tn_sink sink{&report, append};
        Status ran = pass->called("run", (*pass)->run(pass->self(), nullptr, nullptr, &sink));
        EXPECT_TRUE(ran.ok()) << ran.text();
        int inside = std::stoi(report);
        for (int was = most; inside > was && !most.compare_exchange_weak(was, inside);)
          continue;
      }
    };
    std::jthread other(call);
    call();
    other.join();
    return most;
  }
  static tn_status* append(void* text, const void* data, uint64_t bytes) {
    static_cast<std::string*>(text)->append(static_cast<const char*>(data), bytes);
    return nullptr;
  }
  uint32_t flags_of(std::string_view id) {
    tn_component_ref* made = nullptr;
    Status status(service_->create(session_.own, str("tenon.pass/1"), str(id), nullptr, &made));
    EXPECT_TRUE(status.ok()) << status.text();
    uint32_t flags = made ? service_->flags(made) : 0;
    service_->release(made);
    return flags;
  }

  const tn_host_component* service_ =
      static_cast<const tn_host_component*>(find_service("tenon.host.component/1"));
  Session session_;
};

TEST_F(Turns, SerialCallsOfOneComponentDoNotOverlap) {
  EXPECT_EQ(most_inside("turns.serial", 10), 1);
}

TEST_F(Turns, CallsOfAReentrantComponentMeet) {
  EXPECT_EQ(most_inside("turns.meeting", 1), 2);
}

TEST_F(Turns, FlagsAreWhatThePluginSays) {
  EXPECT_EQ(flags_of("turns.serial"), 0u);
  EXPECT_EQ(flags_of("turns.meeting"), TN_COMP_REENTRANT);
}

}  // namespace
}  // namespace tenon::host
