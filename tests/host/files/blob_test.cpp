// SPDX-License-Identifier: Apache-2.0
#include "files/blob.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/host_fixture.hpp"

namespace tenon::host {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Blob : public HostTest {
 protected:
  ~Blob() override { EXPECT_EQ(held(Held::kBlob), 0); }
  const tn_host_blob& api = service<tn_host_blob>("tenon.host.blob/1");

  std::string open_failure(std::string_view path) {
    tn_blob* out = reinterpret_cast<tn_blob*>(1);
    std::string why = text(api.open(ctx(), str(path), &out));
    EXPECT_EQ(out, nullptr);
    return why;
  }
  std::string sibling_failure(std::string_view relative) {
    auto blob = open_blob(ctx(), file("model.onnx", "m"));
    tn_blob* out = reinterpret_cast<tn_blob*>(1);
    std::string why = text(api.sibling(blob->get(), str(relative), &out));
    EXPECT_EQ(out, nullptr) << relative;
    return why;
  }
};

TEST_F(Blob, MapsAFile) {
  std::string path = file("a.bin", "hello");
  tn_blob* blob = nullptr;
  ASSERT_EQ(text(api.open(ctx(), str(path), &blob)), "");
  const void* data = nullptr;
  ASSERT_EQ(text(api.map(blob, 1, 3, &data)), "");

  EXPECT_EQ(std::string(static_cast<const char*>(data), 3), "ell");
  EXPECT_EQ(api.size(blob), 5u);
  EXPECT_EQ(view(api.path(blob)), path);
  EXPECT_EQ(text(api.map(blob, 5, 0, &data)), "");
  EXPECT_THAT(text(api.map(blob, 4, 2, &data)),
              HasSubstr("expected 2 bytes at offset 4, got a file of 5 bytes"));
  EXPECT_EQ(data, nullptr);
  EXPECT_NE(text(api.map(blob, UINT64_MAX, 2, &data)), "");
  EXPECT_NE(text(api.map(blob, 2, UINT64_MAX, &data)), "");
  api.release(blob);
}

// The pages of this process that hold the mapping of the file, in KB.
int64_t resident_kb(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool is_of_path = false;
  for (int64_t kb = 0; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) is_of_path = line.find(path) != std::string::npos;
    if (is_of_path && std::sscanf(line.c_str(), "Rss: %ld kB", &kb) == 1) return kb;
  }
  return -1;
}

TEST_F(Blob, GivesPagesBackAndReadsThemAgain) {
  const std::string path = file("large.bin", std::string(1 << 20, 'x') + "end");
  auto blob = open_blob(ctx(), path);
  ASSERT_TRUE(blob.ok());
  const uint64_t size = (*blob)->size;
  const auto* data = static_cast<const char*>(*(*blob)->window(0, size));
  ASSERT_EQ(std::count(data, data + size, 'x'), 1 << 20);
  ASSERT_GE(resident_kb(path), 1024);

  api.unneeded(blob->get(), 0, size);
  EXPECT_EQ(resident_kb(path), 0);
  EXPECT_EQ(std::count(data, data + size, 'x'), 1 << 20);
  EXPECT_EQ(std::string(data + size - 3, 3), "end");
  api.unneeded(blob->get(), 4097, UINT64_MAX);  // beyond the end: nothing
  EXPECT_GE(resident_kb(path), 1024);
}

TEST_F(Blob, OpensEmptyFiles) {
  auto blob = open_blob(ctx(), file("empty", ""));
  ASSERT_TRUE(blob.ok());

  EXPECT_TRUE((*blob)->window(0, 0).ok());
  EXPECT_FALSE((*blob)->window(0, 1).ok());
}

TEST_F(Blob, SaysWhyAFileCannotBeOpened) {
  EXPECT_THAT(open_failure("/nowhere/model.onnx"),
              HasSubstr("cannot open /nowhere/model.onnx: no such file"));
  EXPECT_THAT(open_failure(folder().native()), HasSubstr("expected a file, got a folder"));
  EXPECT_THAT(open_failure("/dev/zero"), HasSubstr("expected a file, got a device or pipe"));
  EXPECT_THAT(open_failure(""), HasSubstr("expected a path"));
  EXPECT_THAT(open_failure(std::string_view("/etc\0/passwd", 12)), HasSubstr("without NUL"));
}

TEST_F(Blob, DoesNotWaitForTheWriterOfAPipe) {
  std::string pipe = (folder() / "pipe").native();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);

  EXPECT_THAT(open_failure(pipe), HasSubstr("got a device or pipe"));
}

TEST_F(Blob, OpensSiblings) {
  fs::create_directory(folder() / "data");
  file("data/w.bin", "weights");
  auto blob = open_blob(ctx(), file("model.onnx", "m"));
  ASSERT_TRUE(blob.ok());
  auto sibling = open_sibling(*blob->get(), "data/w.bin");

  ASSERT_TRUE(sibling.ok());
  EXPECT_EQ((*sibling)->size, 7u);
}

TEST_F(Blob, KeepsSiblingsInsideTheFolder) {
  fs::create_symlink("/etc/passwd", folder() / "link");
  fs::create_directory_symlink("/etc", folder() / "etc");
  file("w.bin", "w");

  EXPECT_THAT(sibling_failure("/etc/passwd"), HasSubstr("expected a relative path"));
  EXPECT_THAT(sibling_failure("../x"), HasSubstr("'..' may leave the folder"));
  EXPECT_THAT(sibling_failure("a/../../x"), HasSubstr("'..' may leave the folder"));
  EXPECT_THAT(sibling_failure("link"), HasSubstr("leads out of the folder, to /etc/passwd"));
  EXPECT_THAT(sibling_failure("etc/passwd"), HasSubstr("leads out of the folder"));
  EXPECT_THAT(sibling_failure("missing.bin"), HasSubstr("no such file"));
  EXPECT_THAT(sibling_failure("none/w.bin"), HasSubstr("no such file"));
  EXPECT_THAT(sibling_failure("."), ::testing::Not(""));
  EXPECT_THAT(sibling_failure(""), HasSubstr("expected a path"));
}

TEST_F(Blob, FollowsLinksThatStayInside) {
  file("w.bin", "weights");
  fs::create_symlink("w.bin", folder() / "alias");
  auto blob = open_blob(ctx(), file("model.onnx", "m"));
  ASSERT_TRUE(blob.ok());

  EXPECT_TRUE(open_sibling(*blob->get(), "alias").ok());
}

}  // namespace
}  // namespace tenon::host
