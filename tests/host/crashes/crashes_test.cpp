// SPDX-License-Identifier: Apache-2.0
#include <csetjmp>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crashes/load_crashes.hpp"
#include "folders.hpp"
#include "registry/registry.hpp"
#include "services/log.hpp"
#include "services/session.hpp"

namespace tenon::host {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kBroken = fs::path(test::kTestPluginFolder) / "broken";

void collect(void* to, uint32_t level, tn_str, tn_str message) {
  if (level == TN_LOG_WARNING)
    static_cast<std::vector<std::string>*>(to)->emplace_back(message.data, message.len);
}

// A state folder of its own for each test, where crashes are written down.
class Crashes : public testing::Test {
 protected:
  Crashes() {
    char name[] = "/tmp/tenon_crashes_XXXXXX";
    folder_ = mkdtemp(name);
    setenv("XDG_STATE_HOME", (folder_ / "deep" / "state").c_str(), 1);
    setenv("XDG_DATA_HOME", (folder_ / "data").c_str(), 1);
    unsetenv("TENON_PLUGIN_PATH");
    unsetenv("TENON_SAFE_MODE");
  }
  ~Crashes() override { fs::remove_all(folder_); }

  // A process that loads the plugin, which ends it as its argument says. Its core and its output
  // are dropped.
  static pid_t start(const char* how, int words = -1) {
    pid_t child = fork();
    if (child) return child;
    rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    dup2(words < 0 ? open("/dev/null", O_WRONLY) : words, STDERR_FILENO);
    setenv("TENON_TEST_DIE", how, 1);
    Session session;
    (void)session.registry->load(dies().string());
    _exit(0);
  }
  // One that is in the middle of its load.
  static pid_t start_waiting() {
    int words[2];
    EXPECT_EQ(pipe(words), 0);
    pid_t child = start("wait", words[1]);
    char first = 0;
    EXPECT_EQ(read(words[0], &first, 1), 1);
    close(words[0]);
    close(words[1]);
    return child;
  }
  static int ended(pid_t child) {
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    return how;
  }
  static void crash(const char* how) { ended(start(how)); }
  static fs::path dies() { return kBroken / "dies.so"; }
  // What a load says, in a process of its own: a library is loaded once in each.
  std::string load() const {
    fs::path said = folder_ / "said";
    pid_t child = fork();
    if (child == 0) {
      unsetenv("TENON_TEST_DIE");
      Session session;
      std::ofstream(said) << session.registry->load(dies().string()).text();
      _exit(0);
    }
    EXPECT_EQ(ended(child), 0);
    std::ifstream file(said);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::vector<std::string> written() { return crashes_of(dies()).signals; }
  fs::path folder_;
};

TEST_F(Crashes, OneIsForgivenByALoadThatWorks) {
  crash("segv");
  EXPECT_THAT(written(), testing::ElementsAre("SIGSEGV"));

  EXPECT_EQ(load(), "");

  EXPECT_TRUE(written().empty());
}

TEST_F(Crashes, TwoAreQuarantinedUntilForgiven) {
  crash("segv");
  crash("abort");

  EXPECT_THAT(load(), HasSubstr("quarantined: loading it crashed the process 2 times, last by "
                                "SIGABRT; to try again: tenon plugin forgive broken.dies"));

  forget(crashes_of(dies()));
  EXPECT_EQ(load(), "");
}

TEST_F(Crashes, EachFaultOfItsOwnIsWrittenDown) {
  struct Case {
    const char *how, *signal;
  };
  for (Case one : {Case{"segv", "SIGSEGV"}, Case{"abort", "SIGABRT"}, Case{"throw", "SIGABRT"},
                   Case{"ill", "SIGILL"}, Case{"bus", "SIGBUS"}, Case{"overflow", "SIGSEGV"}}) {
    crash(one.how);
    EXPECT_THAT(written(), testing::ElementsAre(one.signal)) << one.how;
    forget(crashes_of(dies()));
  }
}

TEST_F(Crashes, TheProcessStillEndsByItsSignal) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer ends it in its own way";
#endif
  EXPECT_EQ(WTERMSIG(ended(start("segv"))), SIGSEGV);
  EXPECT_EQ(WTERMSIG(ended(start("abort"))), SIGABRT);
}

TEST_F(Crashes, WhatIsNoFaultOfTheLoadIsNone) {
  EXPECT_EQ(WEXITSTATUS(ended(start("exit"))), 3);
  crash("in a child");
  EXPECT_TRUE(written().empty());
  crash("in another thread");
  EXPECT_TRUE(written().empty());
  EXPECT_EQ(load(), "");
}

TEST_F(Crashes, AKillFromOutsideLeavesNothing) {
  for (int number : {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGSEGV, SIGABRT, SIGBUS, SIGILL}) {
    pid_t loading = start_waiting();
    kill(loading, number);
    EXPECT_NE(ended(loading), 0);
    EXPECT_FALSE(fs::exists(folder_ / "deep")) << number;
  }
  EXPECT_EQ(load(), "");
}

TEST_F(Crashes, WhatOthersAreJustLoadingIsNoCrash) {
  pid_t one = start_waiting(), two = start_waiting(), three = start_waiting();

  EXPECT_EQ(load(), "");

  for (pid_t child : {one, two, three}) {
    kill(child, SIGKILL);
    ended(child);
  }
}

TEST_F(Crashes, AnotherBuildOfThePluginStartsAnew) {
  fs::path copy = folder_ / "copy.so";
  fs::copy(dies(), copy);
  std::string record = crashes_of(copy).record;

  fs::last_write_time(copy, fs::last_write_time(copy) + std::chrono::seconds(1));

  EXPECT_NE(crashes_of(copy).record, record);
}

TEST_F(Crashes, AreTakenBackWhereSomebodyCaughtThem) {
  static sigjmp_buf caught;
  auto before = std::signal(SIGSEGV, [](int) { siglongjmp(caught, 1); });
  {
    LoadGuard guard(dies());
    if (sigsetjmp(caught, 1) == 0) std::raise(SIGSEGV);
    EXPECT_EQ(written().size(), 1u);
  }
  std::signal(SIGSEGV, before);
  EXPECT_TRUE(written().empty());
}

TEST_F(Crashes, TheInnermostOfTwoLoadsIsToBlame) {
  fs::path outer = kBroken / "fine.so";
  pid_t child = fork();
  if (child == 0) {
    rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    LoadGuard first(outer);
    LoadGuard second(dies());
    raise(SIGABRT);
  }
  ended(child);
  EXPECT_TRUE(crashes_of(outer).signals.empty());
  EXPECT_EQ(written().size(), 1u);
}

TEST_F(Crashes, HandlersAreAsBeforeAfterALoad) {
  struct sigaction before{}, after{};
  sigaction(SIGSEGV, nullptr, &before);
  {
    LoadGuard guard(dies());
  }
  sigaction(SIGSEGV, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

// Whoever lists a role, or asks for a component of it, may do without: once, and not silently.
TEST_F(Crashes, WhatIsQuarantinedIsReportedWhereItIsMissed) {
  crash("segv");
  crash("segv");
  Session session({{kBroken.string()}, false, false});
  std::vector<std::string> warnings;
  session.log->on_log(collect, &warnings);

  (void)session.registry->list_components("tenon.reader/1");
  EXPECT_TRUE(warnings.empty());
  (void)session.registry->list_components("tenon.pass/1");
  (void)session.registry->described("tenon.pass/1");

  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("plugin broken.dies ("));
  EXPECT_THAT(warnings[0], HasSubstr("is not used: quarantined: loading it crashed"));
  EXPECT_THAT(session.registry->find("tenon.pass/1", "broken.dies").status().text(),
              HasSubstr("tenon plugin forgive broken.dies"));
  EXPECT_THAT(session.registry->list_plugins(), HasSubstr(R"("crashes":["SIGSEGV","SIGSEGV"])"));
}

}  // namespace
}  // namespace tenon::host
