// SPDX-License-Identifier: Apache-2.0
#include "files/target.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/blob.hpp"
#include "host/host_fixture.hpp"

namespace tenon::host {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// Writing beyond `bytes` of a file fails as on a full disk, for as long as this object lives.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    former_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &former_);
    rlimit limited{bytes, former_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &former_);
    std::signal(SIGXFSZ, former_handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit former_{};
  void (*former_handler_)(int);
};

class Target : public HostTest {
 protected:
  ~Target() override { EXPECT_EQ(held(Held::kBlob), 0); }
  const tn_host_blob& api = service<tn_host_blob>("tenon.host.blob/1");

  tn_target* create(const std::string& path) {
    tn_target* target = nullptr;
    EXPECT_EQ(text(api.create(ctx(), str(path), &target)), "");
    return target;
  }
  std::string write(tn_target* target, std::string_view sibling, std::string_view data) {
    return text(api.write(target, str(sibling), data.data(), data.size()));
  }
  std::string create_failure(std::string_view path) {
    tn_target* target = reinterpret_cast<tn_target*>(1);
    std::string why = text(api.create(ctx(), str(path), &target));
    EXPECT_EQ(target, nullptr);
    return why;
  }
};

TEST_F(Target, WritesAFileWithTheLongestNameThatThereCanBe) {
  std::string path = (folder() / std::string(255, 'n')).native();
  tn_target* target = create(path);
  ASSERT_NE(target, nullptr);

  EXPECT_EQ(write(target, "", "all of it"), "");
  EXPECT_EQ(text(api.commit(target)), "");

  EXPECT_EQ(content(path), "all of it");
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(Target, AppearsWholeAtCommit) {
  std::string path = file("model.onnx", "old");
  tn_target* target = create(path);
  ASSERT_EQ(write(target, "", "ne"), "");
  ASSERT_EQ(write(target, "model.data", "weights"), "");
  ASSERT_EQ(write(target, "", "w"), "");

  EXPECT_EQ(content(path), "old");
  EXPECT_FALSE(fs::exists(folder() / "model.data"));
  EXPECT_EQ(view(api.target_path(target)), path);
  ASSERT_EQ(text(api.commit(target)), "");
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(content(folder() / "model.data"), "weights");
  EXPECT_EQ(files_in_folder(), 2u);
}

TEST_F(Target, LeavesNothingWhenAbandoned) {
  std::string path = file("model.onnx", "old");
  tn_target* target = create(path);
  ASSERT_EQ(write(target, "", "new"), "");
  ASSERT_EQ(write(target, "model.data", "weights"), "");

  api.abandon(target);
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(Target, KeepsTheOldFileWhenTheDiskIsFull) {
  std::string path = file("model.onnx", "old");
  tn_target* target = create(path);
  {
    FullDisk disk(4096);
    EXPECT_THAT(write(target, "", std::string(10000, 'x')), HasSubstr("cannot write " + path));
  }

  EXPECT_THAT(write(target, "", "more"), HasSubstr("a write failed before"));
  EXPECT_THAT(text(api.commit(target)), HasSubstr("a write failed before"));
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(Target, RefusesPlacesThatCannotBeWritten) {
  EXPECT_THAT(create_failure("/nowhere/model.onnx"), HasSubstr("no such file"));
  EXPECT_THAT(create_failure(folder().native()), HasSubstr("expected a file, got a folder"));
  EXPECT_THAT(create_failure("/dev/null"), HasSubstr("got a device or pipe"));
  EXPECT_THAT(create_failure(""), HasSubstr("expected a path"));
  EXPECT_THAT(create_failure("/proc/model.onnx"), HasSubstr("cannot write /proc/model.onnx"));
}

TEST_F(Target, RefusesAFolderWithoutWritePermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ASSERT_EQ(::chmod(folder().c_str(), 0500), 0);

  EXPECT_THAT(create_failure((folder() / "m").native()), HasSubstr("permission denied"));
  ::chmod(folder().c_str(), 0700);
}

TEST_F(Target, RefusesSiblingsThatLeaveTheFolder) {
  std::string path = (folder() / "model.onnx").native();
  for (std::string_view sibling : {"../x", "/tmp/x", "none/x", "model.onnx"}) {
    tn_target* target = create(path);
    EXPECT_NE(write(target, sibling, "x"), "") << sibling;
    EXPECT_NE(text(api.commit(target)), "");
  }
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(Target, ReplacesWhatALinkLeadsTo) {
  std::string path = file("real", "old");
  fs::create_symlink("real", folder() / "link");
  ::chmod(path.c_str(), 0640);
  tn_target* target = create((folder() / "link").native());
  ASSERT_EQ(write(target, "", "new"), "");
  ASSERT_EQ(text(api.commit(target)), "");

  EXPECT_TRUE(fs::is_symlink(folder() / "link"));
  EXPECT_EQ(content(path), "new");
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(Target, MakesWhatALinkLeadsTo) {
  fs::create_directory(folder() / "runs");
  fs::create_symlink("runs/new", folder() / "middle");
  fs::create_symlink("middle", folder() / "link");
  tn_target* target = create((folder() / "link").native());
  ASSERT_EQ(write(target, "", "new"), "");
  ASSERT_EQ(text(api.commit(target)), "");

  EXPECT_TRUE(fs::is_symlink(folder() / "link"));
  EXPECT_EQ(content((folder() / "runs" / "new").native()), "new");
}

TEST_F(Target, RefusesLinksThatLeadToEachOther) {
  fs::create_symlink("b", folder() / "a");
  fs::create_symlink("a", folder() / "b");
  EXPECT_THAT(create_failure((folder() / "a").native()), HasSubstr("symbolic links"));
}

TEST_F(Target, TheLastCommitToOneFileWins) {
  std::string path = (folder() / "m").native();
  tn_target* first = create(path);
  tn_target* second = create(path);
  ASSERT_EQ(write(first, "", "first"), "");
  ASSERT_EQ(write(second, "", "second"), "");

  ASSERT_EQ(text(api.commit(second)), "");
  ASSERT_EQ(text(api.commit(first)), "");
  EXPECT_EQ(content(path), "first");
  EXPECT_EQ(files_in_folder(), 1u);
}

}  // namespace
}  // namespace tenon::host
