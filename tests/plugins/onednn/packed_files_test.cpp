// SPDX-License-Identifier: Apache-2.0
// Packed weights on disk: found again, by whom they are for alone, and never when they are damaged.

#include "lowering/packed_files.hpp"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>

#include "lowering/weight_store.hpp"

namespace tenon::onednn::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kBytes = int64_t{128} << 10;
constexpr int64_t kMost = int64_t{1} << 20;

class Files : public testing::Test {
 protected:
  Files() : folder_(fs::path(testing::TempDir()) / ("packed" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    std::iota(source_.begin(), source_.end(), 1.0F);
  }
  ~Files() override { fs::remove_all(folder_); }

  PackedFiles files(const std::string& fingerprint = "this CPU", int64_t most = kMost) {
    return {folder_, fingerprint, most,
            [this](const std::string& what) { notes_.push_back(what); }};
  }
  PackedKey key(const PackedFiles& of, const char* form = "rows") const {
    return of.key(source_.data(), source_.size() * sizeof(float), form);
  }
  void keep(PackedFiles& in, const char* form = "rows") {
    const auto kept = in.keep(key(in, form), source_.data(), kBytes);
    ASSERT_NE(kept, nullptr);
    EXPECT_TRUE(holds_source(kept));
  }
  bool holds_source(const std::shared_ptr<const void>& found) const {
    return found != nullptr && std::memcmp(found.get(), source_.data(), kBytes) == 0;
  }
  std::vector<fs::path> all() const {
    std::vector<fs::path> paths;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
      paths.push_back(entry.path());
    return paths;
  }
  static void write_at(const fs::path& path, int64_t offset, const std::string& text) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file << text;
  }

  fs::path folder_;
  std::vector<float> source_ = std::vector<float>(kBytes / sizeof(float));
  std::vector<std::string> notes_;
};

TEST_F(Files, AreFoundByLaterProcesses) {
  PackedFiles first = files();
  EXPECT_EQ(first.find(key(first), kBytes), nullptr);
  keep(first);
  PackedFiles later = files();
  const auto found = later.find(key(later), kBytes);
  EXPECT_TRUE(holds_source(found));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(found.get()) % 4096, 0U);
  fs::remove_all(folder_);
  EXPECT_TRUE(holds_source(found));  // as long as somebody holds it
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(Files, AreOfOneSourceFormSizeAndMachine) {
  PackedFiles one = files();
  keep(one);
  EXPECT_EQ(one.find(key(one, "columns"), kBytes), nullptr);
  PackedFiles other = files("another CPU");
  EXPECT_EQ(other.find(key(other), kBytes), nullptr);
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(one.find(key(one), kBytes / 2), nullptr);
  source_[7] = 0;
  EXPECT_EQ(one.find(key(one), kBytes), nullptr);
}

TEST_F(Files, AreLeftOutAndWrittenAnewWhereTheyAreDamaged) {
  PackedFiles store = files();
  const auto cut = [](const fs::path& path) { fs::resize_file(path, kBytes); };
  const auto longer = [](const fs::path& path) { fs::resize_file(path, kBytes + 8192); };
  const auto empty = [](const fs::path& path) { fs::resize_file(path, 0); };
  const auto foreign = [](const fs::path& path) { write_at(path, 0, "something else"); };
  const auto head = [](const fs::path& path) { write_at(path, 20, "x"); };
  const auto bytes = [](const fs::path& path) { write_at(path, 4096 + kBytes - 1, "x"); };
  const std::function<void(const fs::path&)> damages[] = {cut, longer, empty, foreign, head, bytes};
  for (const auto& damage : damages) {
    keep(store);
    ASSERT_EQ(all().size(), 1U);
    damage(all()[0]);
    EXPECT_EQ(store.find(key(store), kBytes), nullptr);
  }
  keep(store);
  EXPECT_TRUE(holds_source(store.find(key(store), kBytes)));
  ASSERT_EQ(notes_.size(), 1U);  // of one file, once
  EXPECT_THAT(notes_[0], HasSubstr("is damaged"));
}

TEST_F(Files, ThatWereNotUsedForLongGoFirst) {
  PackedFiles store = files("this CPU", 3 * (kBytes + 4096));
  const auto age = [&](const char* form, int hours) {
    const auto path = [&] {
      const std::vector<fs::path> before = all();
      keep(store, form);
      for (const fs::path& each : all())
        if (std::find(before.begin(), before.end(), each) == before.end()) return each;
      return fs::path();
    }();
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  fs::create_directories(folder_);
  age("oldest", 9);
  age("old", 5);
  age("new", 1);
  EXPECT_TRUE(holds_source(store.find(key(store, "oldest"), kBytes)));  // now it is the newest
  keep(store, "another");
  EXPECT_EQ(store.find(key(store, "old"), kBytes), nullptr);
  EXPECT_TRUE(holds_source(store.find(key(store, "oldest"), kBytes)));
  EXPECT_TRUE(holds_source(store.find(key(store, "new"), kBytes)));
  EXPECT_EQ(all().size(), 3U);
}

TEST_F(Files, OfProcessesThatWereKilledGoAfterAnHour) {
  PackedFiles store = files();
  keep(store);
  const fs::path begun = folder_ / "0.packed.unfinished-abcdef";
  std::ofstream(begun) << "half";
  keep(store, "columns");
  EXPECT_TRUE(fs::exists(begun));
  fs::last_write_time(begun, fs::file_time_type::clock::now() - std::chrono::hours(2));
  keep(store, "blocks");
  EXPECT_FALSE(fs::exists(begun));
}

TEST_F(Files, AreNotKeptWhereTheyCannotBe) {
  PackedFiles small = files("this CPU", kBytes);
  EXPECT_EQ(small.keep(key(small), source_.data(), kBytes), nullptr);
  std::ofstream(folder_ / "file") << "a file where the folder should be";
  PackedFiles none(folder_ / "file", "this CPU", kMost,
                   [this](const std::string& what) { notes_.push_back(what); });
  EXPECT_EQ(none.keep(key(none), source_.data(), kBytes), nullptr);
  EXPECT_EQ(none.keep(key(none), source_.data(), kBytes), nullptr);
  ASSERT_EQ(notes_.size(), 2U);
  EXPECT_THAT(notes_[0], HasSubstr("keep_packed_mb"));
  EXPECT_THAT(notes_[1], HasSubstr("packed weights are not kept"));
  PackedFiles nowhere("", "this CPU", kMost, {});
  EXPECT_EQ(nowhere.keep(key(nowhere), source_.data(), kBytes), nullptr);
}

// Descriptions of oneDNN's, and what it describes to nobody.
TEST_F(Files, HoldFormsOfOneDnnThatAreFullyDescribed) {
  using Desc = dnnl::memory::desc;
  using Type = dnnl::memory::data_type;
  const Desc rows({256, 128}, Type::f32, dnnl::memory::dims{128, 1});
  const Desc columns({256, 128}, Type::f32, dnnl::memory::dims{1, 256});
  const Desc narrow({256, 128}, Type::s8, dnnl::memory::dims{1, 256});
  const auto pack = [&](const Desc& to) {
    WeightStore store(aligned_bytes,
                      std::make_unique<PackedFiles>(folder_, "this CPU", kMost, nullptr));
    const auto packed = store.packed(source_.data(), rows, to);
    EXPECT_NE(packed, nullptr);
    EXPECT_FALSE(to == columns && static_cast<const float*>(packed.get())[1] != source_[128]);
    return store.n_found();
  };
  EXPECT_EQ(pack(columns), 0);
  EXPECT_EQ(pack(columns), 1);
  EXPECT_EQ(pack(rows), 0);
  EXPECT_EQ(pack(narrow) + pack(narrow), 0);
  EXPECT_EQ(all().size(), 2U);
}

}  // namespace
}  // namespace tenon::onednn::test
