// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trainings that keep their run in a folder, and are stopped on the way.

#include <fstream>
#include <iterator>

#include "training_session.hpp"

namespace tenon::test {

class RunFolder : public TrainingTest {
 protected:
  void SetUp() override {
    TrainingTest::SetUp();
    model_ = parse(kLinear);
    options_ = {{"epochs", 4},       {"batch", 8},    {"optimizer", "adamw"}, {"rate", 0.1},
                {"validation", 0.2}, {"patience", 9}, {"run", run()}};
  }
  void TearDown() override {
    lent_.clear();
    model_ = {};
  }
  std::string run() { return (folder_ / "run").string(); }
  std::string run_file(const char* name) { return run() + "/" + name; }
  std::string checkpoint() { return run() + "/checkpoint.safetensors"; }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Trains until so many batches are done, then asks to stop. The message.
  std::string interrupted_after(int batches) {
    if (tn_status* failed = tenon_cancel_new(session_, &cancel_)) return text_of(Status(failed));
    Watch watch{cancel_, batches};
    tenon_on_progress(session_, seen, &watch);
    std::string text = failure(model_, rows(), options_);
    tenon_on_progress(session_, nullptr, nullptr);
    tenon_cancel_free(cancel_);
    cancel_ = nullptr;
    return text;
  }
  Component rows() { return data(table(50)); }
  // The checkpoint with other text of the same length in it.
  void write_with(const std::string& old, const std::string& text) {
    std::string bytes = read(checkpoint());
    size_t at = bytes.find(old);
    ASSERT_NE(at, std::string::npos) << old;
    bytes.replace(at, text.size(), text);
    std::ofstream(checkpoint(), std::ios::binary) << bytes;
  }

  OwnedGraph model_;
  json options_;

 private:
  struct Watch {
    tn_cancel* cancel;
    int left;
  };
  static void seen(void* arg, uint64_t, tn_str, uint64_t, uint64_t) {
    auto* watch = static_cast<Watch*>(arg);
    if (watch->left-- <= 1) tenon_cancel_request(watch->cancel);
  }
};

}  // namespace tenon::test
