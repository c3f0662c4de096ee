// SPDX-License-Identifier: Apache-2.0
// Decisions on disk: what is kept is read again, by others too, and what is not whole is left out.

#include "choosing/choice_store.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tenon::onednn::test {
namespace {

namespace fs = std::filesystem;

class Stored : public ::testing::Test {
 protected:
  Stored() {
    std::string name = (fs::temp_directory_path() / "tenon_choices_XXXXXX").native();
    if (mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~Stored() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  ChoiceStore store(const std::string& fingerprint = "a CPU") {
    return {folder_ + "/kept", fingerprint,
            [this](const std::string& what) { notes_.push_back(what); }};
  }
  std::string file() const { return fs::directory_iterator(folder_ + "/kept")->path().native(); }
  std::string content() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& text) const {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << text;
  }

  std::string folder_;
  std::vector<std::string> notes_;
};

std::string name_of(const std::optional<Decision>& decision) {
  return decision ? decision->implementation : "nothing";
}

TEST_F(Stored, WhatIsKeptIsReadAgain) {
  {
    ChoiceStore first = store();
    EXPECT_EQ(name_of(first.find("MatMul 8x8")), "nothing");
    ASSERT_TRUE(first.keep("MatMul 8x8", {"f32 gemm", {{"f32 gemm", 12}, {"onednn, x", 345}}}));
    ASSERT_TRUE(first.keep("Conv", {"onednn"}));
  }
  ChoiceStore second = store();
  const std::optional<Decision> found = second.find("MatMul 8x8");
  ASSERT_EQ(name_of(found), "f32 gemm");
  ASSERT_EQ(found->measured.size(), 2U);
  EXPECT_EQ(found->measured[1].implementation, "onednn, x");
  EXPECT_EQ(found->measured[1].ns, 345);
  EXPECT_EQ(name_of(second.find("Conv")), "onednn");
  EXPECT_TRUE(second.find("Conv")->measured.empty());
  EXPECT_EQ(notes_, std::vector<std::string>{});
}

TEST_F(Stored, WhoKeepsFirstDecides) {
  ChoiceStore one = store(), other = store();
  EXPECT_EQ(name_of(other.find("Conv")), "nothing");  // it has read the file
  EXPECT_EQ(name_of(one.keep("Conv", {"winograd"})), "winograd");
  EXPECT_EQ(name_of(other.keep("Conv", {"onednn"})), "winograd");
  EXPECT_EQ(name_of(other.find("Conv")), "winograd");
  EXPECT_EQ(name_of(store().find("Conv")), "winograd");
}

TEST_F(Stored, AnotherCpuOrVersionHasAFileOfItsOwn) {
  ASSERT_TRUE(store("a CPU").keep("Conv", {"winograd"}));
  EXPECT_EQ(name_of(store("another CPU").find("Conv")), "nothing");
  EXPECT_EQ(notes_, std::vector<std::string>{});
}

TEST_F(Stored, AFileOfAnotherMachineIsLeftOutAndBegunAnew) {
  ASSERT_TRUE(store("a CPU").keep("Conv", {"winograd"}));
  const std::string foreign = content();
  fs::remove_all(folder_ + "/kept");
  ASSERT_TRUE(store("another CPU").keep("Gemm", {"onednn"}));
  write(foreign);

  ChoiceStore here = store("another CPU");
  EXPECT_EQ(name_of(here.find("Conv")), "nothing");
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_NE(notes_[0].find("is damaged or of another machine: it is left out"), std::string::npos);
  EXPECT_EQ(name_of(here.keep("Conv", {"onednn"})), "onednn");
  EXPECT_EQ(name_of(store("another CPU").find("Conv")), "onednn");
  EXPECT_EQ(content().find("a CPU;"), std::string::npos);
}

TEST_F(Stored, ADamagedLineIsLeftOutAndTheOthersCount) {
  for (const char* key : {"first", "second", "third"})
    ASSERT_TRUE(store().keep(key, {"onednn"}));
  std::string text = content();
  text[text.find("second")] = 'S';
  write(text);

  ChoiceStore read = store();
  EXPECT_EQ(name_of(read.find("first")), "onednn");
  EXPECT_EQ(name_of(read.find("second")), "nothing");
  EXPECT_EQ(name_of(read.find("Second")), "nothing");
  EXPECT_EQ(name_of(read.find("third")), "onednn");
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_NE(notes_[0].find("damaged lines: 1"), std::string::npos);
}

// Wherever the power fails: what is whole is read, and what is kept then is read as well.
TEST_F(Stored, AFileMayEndAnywhere) {
  for (const char* key : {"first", "second"})
    ASSERT_TRUE(store().keep(key, {"onednn", {{"onednn", 7}}}));
  const std::string whole = content();
  const size_t begin_of_second = whole.find('\n', whole.find("first")) + 1;
  for (size_t end = 0; end < whole.size(); ++end) {
    write(whole.substr(0, end));
    ChoiceStore cut = store();
    EXPECT_EQ(name_of(cut.find("first")), end + 1 >= begin_of_second ? "onednn" : "nothing") << end;
    ASSERT_EQ(name_of(cut.keep("third", {"winograd"})), "winograd") << end;
    ChoiceStore again = store();
    EXPECT_EQ(name_of(again.find("third")), "winograd") << end;
    EXPECT_EQ(name_of(again.find("first")), end + 1 >= begin_of_second ? "onednn" : "nothing");
  }
}

TEST_F(Stored, NothingIsKeptWhereNothingCanBeWritten) {
  std::ofstream(folder_ + "/kept") << "a file where the folder should be";
  ChoiceStore blocked = store();
  EXPECT_FALSE(blocked.can_keep());
  EXPECT_EQ(name_of(blocked.keep("Conv", {"winograd"})), "nothing");
  EXPECT_EQ(name_of(blocked.find("Conv")), "nothing");
  ASSERT_FALSE(notes_.empty());
  EXPECT_NE(notes_.front().find("so that the rules choose"), std::string::npos);

  ChoiceStore nowhere("", "a CPU", {});
  EXPECT_FALSE(nowhere.can_keep());
  EXPECT_EQ(name_of(nowhere.keep("Conv", {"winograd"})), "nothing");
}

TEST_F(Stored, AFileDoesNotGrowWithoutEnd) {
  ChoiceStore filled = store();
  const std::string filler(100'000, 'x');
  int n_kept = 0;
  while (n_kept < 100 && filled.keep(filler + std::to_string(n_kept), {"onednn"}))
    ++n_kept;
  EXPECT_EQ(n_kept, static_cast<int>(ChoiceStore::kMostBytes / filler.size()) + 1);
  EXPECT_FALSE(store().can_keep());
  EXPECT_EQ(name_of(store().find(filler + "0")), "onednn");
  ASSERT_FALSE(notes_.empty());
  EXPECT_NE(notes_[0].find("it is full"), std::string::npos);
}

TEST_F(Stored, LinesFromElsewhereComeFirst) {
  ASSERT_TRUE(store().keep("Conv", {"winograd"}));
  ChoiceStore given = store();
  EXPECT_EQ(given.take({ChoiceStore::line_of("Conv", {"onednn", {{"onednn", 3}}})}), "");
  EXPECT_EQ(name_of(given.find("Conv")), "onednn");
  EXPECT_EQ(name_of(store().find("Conv")), "winograd");
  for (const char* bad : {"", "Conv", "Conv#", "#onednn", "Conv#onednn#", "Conv#onednn#12",
                          "Conv#onednn#12 ", "Conv#onednn#x winograd"})
    EXPECT_EQ(store().take({bad}), bad);
  EXPECT_EQ(store().take({"Conv#onednn#12 winograd"}), "");
}

// Each of them wants its own number for each key.
TEST_F(Stored, ManyProcessesAgree) {
  constexpr int kProcesses = 6, kKeys = 60;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ChoiceStore mine = store();
      bool is_well = true;
      for (int i = 0; i < kKeys && is_well; ++i) {
        const std::string key = "key " + std::to_string((i * 7 + process * 11) % kKeys);
        const auto kept = mine.keep(key, {"process " + std::to_string(process)});
        is_well = kept && name_of(mine.find(key)) == kept->implementation;
      }
      _exit(is_well ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ChoiceStore read = store();
  for (int i = 0; i < kKeys; ++i)
    EXPECT_NE(name_of(read.find("key " + std::to_string(i))), "nothing") << i;
  const std::string text = content();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), kKeys + 1);
  EXPECT_EQ(notes_, std::vector<std::string>{});
}

}  // namespace
}  // namespace tenon::onednn::test
