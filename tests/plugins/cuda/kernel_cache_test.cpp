// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel_cache.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>

#include "plugins/plugin_session.hpp"

namespace tenon::cuda {
namespace {

class Cached : public tenon::test::PluginTest {
 protected:
  Result<std::string> get(const std::string& key) {
    KernelCache cache((folder_ / "kernels").string(),
                      [this](const std::string& note) { notes_.push_back(note); });
    return cache.get("k", key, [this]() -> Result<std::string> {
      ++compiled_;
      return std::string("machine code");
    });
  }
  std::filesystem::path file() {
    return std::filesystem::directory_iterator(folder_ / "kernels")->path();
  }
  int compiled_ = 0;
  std::vector<std::string> notes_;
};

TEST_F(Cached, CompilesOnce) {
  EXPECT_EQ(*get("text"), "machine code");
  EXPECT_EQ(*get("text"), "machine code");
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(*get("another text"), "machine code");
  EXPECT_EQ(compiled_, 2);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(Cached, BuildsADamagedFileAgainAndSaysSo) {
  EXPECT_TRUE(get("text").ok());
  uint64_t size = std::filesystem::file_size(file());
  for (uint64_t keep : {uint64_t{0}, uint64_t{3}, size - 1}) {
    std::filesystem::resize_file(file(), keep);
    EXPECT_EQ(*get("text"), "machine code");
  }
  std::fstream(file(), std::ios::in | std::ios::out | std::ios::binary).seekp(-2, std::ios::end)
      << '?';
  EXPECT_EQ(*get("text"), "machine code");

  EXPECT_EQ(compiled_, 5);
  ASSERT_EQ(notes_.size(), 4u);
  EXPECT_NE(notes_[0].find("is damaged: compiled again"), std::string::npos);
  EXPECT_EQ(*get("text"), "machine code");
  EXPECT_EQ(compiled_, 5);
}

TEST_F(Cached, WorksWhereNothingCanBeWritten) {
  write("kernels", "a file where the folder should be");

  EXPECT_EQ(*get("text"), "machine code");

  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("cannot be written"), std::string::npos);
}

TEST_F(Cached, LeavesNothingBehindWhereThereIsNoRoom) {
  std::filesystem::create_directory(folder_ / "kernels");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{16, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);

  Result<std::string> code = get("text");

  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(*code, "machine code");
  EXPECT_EQ(notes_.size(), 1u);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "kernels"));
}

TEST_F(Cached, SaysWhereAFileCannotTakeItsPlace) {
  EXPECT_TRUE(get("text").ok());
  std::filesystem::path place = file();
  std::filesystem::remove(place);
  std::filesystem::create_directory(place);

  EXPECT_EQ(*get("text"), "machine code");

  ASSERT_EQ(notes_.size(), 2u);
  EXPECT_NE(notes_[1].find("cannot be written"), std::string::npos);
  EXPECT_EQ(file(), place);  // alone
}

TEST_F(Cached, KeepsNothingOfAFailure) {
  KernelCache cache((folder_ / "kernels").string(), [](const std::string&) {});
  EXPECT_FALSE(cache.get("k", "t", [] { return Result<std::string>(invalid("bad")); }).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "kernels"));
}

}  // namespace
}  // namespace tenon::cuda
