// SPDX-License-Identifier: Apache-2.0
#pragma once
// A session for tests of services, a folder of its own, and what failures and balances say.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "services/session.hpp"
#include "services/status_object.hpp"

namespace tenon::host {

class HostTest : public ::testing::Test {
 protected:
  ~HostTest() override {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  template <class Table>
  static const Table& service(std::string_view id) {
    return *static_cast<const Table*>(find_service(id));
  }
  tn_ctx* ctx() { return session_.own; }
  int64_t held(Held kind) { return ctx()->held[static_cast<size_t>(kind)].load(); }

  // The text of a failure, released; "" for success.
  static std::string text(tn_status* status) {
    std::string line = status_text(status);
    release_status(status);
    return line;
  }

  std::filesystem::path folder() {
    if (folder_.empty()) {
      std::string name = (std::filesystem::temp_directory_path() / "tenon-XXXXXX").native();
      folder_ = ::mkdtemp(name.data());
    }
    return folder_;
  }
  std::string file(std::string_view name, std::string_view content) {
    std::filesystem::path path = folder() / name;
    std::ofstream(path, std::ios::binary) << content;
    return path.native();
  }
  static std::string content(const std::filesystem::path& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  }
  size_t files_in_folder() {
    std::filesystem::directory_iterator entries(folder());
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

  Session session_;
  std::filesystem::path folder_;
};

}  // namespace tenon::host
