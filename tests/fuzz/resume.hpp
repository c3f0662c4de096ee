// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a long run has come to, in a file (--state FILE), so that another process goes on with it:
// the same command again takes up what the last one had not done, also after kill -9.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace tenon::fuzz {

class Resume {
 public:
  using Json = nlohmann::json;
  // file: "" keeps nothing. run: what makes one run another, such as its seed. every: seconds from
  // one writing to the next.
  Resume(std::string file, Json run, uint64_t every)
      : file_(std::move(file)), run_(std::move(run)), every_(every) {}

  // What the file has, {} where there is none yet; why not, where it is another run's.
  std::string read(Json& done) {
    done = Json::object();
    if (file_.empty() || !std::filesystem::exists(file_)) return "";
    std::ifstream in(file_);
    Json all = Json::parse(in, nullptr, false);
    if (all.is_discarded() || !all.contains("done")) return file_ + ": expected the state of a run";
    if (all["run"] != run_)
      return file_ + ": expected the state of " + run_.dump() + ", got that of " +
             all["run"].dump() + ": name another file, or repeat its arguments";
    done = all["done"];
    before_ = done.value("seconds", 0.0);
    return "";
  }

  // Of this process and those before it that wrote to the file.
  double seconds() const {
    return before_ + std::chrono::duration<double>(Clock::now() - start_).count();
  }

  // The file is whole whenever the process ends: it is written beside and renamed.
  void write(Json done) const {
    if (file_.empty()) return;
    done["seconds"] = seconds();
    std::string beside = file_ + ".new";
    std::ofstream(beside) << Json{{"run", run_}, {"done", std::move(done)}}.dump(1) << '\n';
    std::filesystem::rename(beside, file_);
  }

  // Writes what `done` gives when it is time again.
  void tick(const std::function<Json()>& done) {
    if (file_.empty() || Clock::now() - last_ < every_) return;
    last_ = Clock::now();
    write(done());
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string file_;
  Json run_;
  std::chrono::seconds every_;
  double before_ = 0;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace tenon::fuzz
