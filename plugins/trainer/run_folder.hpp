// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder of a run: checkpoint.safetensors and history.jsonl.

#include <optional>
#include <set>
#include <string>

#include "checkpoint.hpp"
#include "identity.hpp"
#include "position.hpp"

namespace tenon::trainer {

// One training at a time: from open() on the folder is locked. The lock ends with the process,
// however that ends.
class RunFolder {
 public:
  // shard_bytes: the most of one file of a checkpoint; 0: any.
  RunFolder(tn_ctx* ctx, std::string path, uint64_t shard_bytes = 0)
      : ctx_(ctx), path_(std::move(path)), shard_bytes_(shard_bytes) {}
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  bool is_kept() const { return !path_.empty(); }
  std::string checkpoint_path() const { return path_ + "/checkpoint.safetensors"; }

  struct Saved {
    Identity identity;
    Position position;
    Weights states, best, average;  // average: of the weights of epochs
    nlohmann::json history = nlohmann::json::array();
    std::set<std::string> decisions = {};  // as Stepper has them
  };
  // Makes the folder. Without resume a run that is there already is refused; with it, nothing is
  // given when there is none.
  Result<std::optional<Saved>> open(bool resume, const Identity& identity);
  Status save(const Saved& saved);
  // Beside the checkpoint, as step_120.safetensors, and never overwritten by later steps.
  Status keep(const Saved& saved);
  // As epoch_7.safetensors; of such files the newest so many stay.
  Status keep_epoch(const Saved& saved, uint64_t n_kept);
  static Result<Saved> read(tn_ctx* ctx, const std::string& path);
  // history.jsonl holds these, and then one more: an epoch late in a run costs no more than an
  // early one.
  Status begin_history(const nlohmann::json& records);
  Status add_record(const nlohmann::json& record) const;
  // "run/checkpoint.safetensors, step 120"; what to report about resuming.
  std::string resume_hint() const;

 private:
  Status lock();
  std::string history_path() const { return path_ + "/history.jsonl"; }
  Status write(const std::string& path, const Saved& saved) const;

  tn_ctx* ctx_;
  std::string path_;
  uint64_t shard_bytes_ = 0;
  int locked_ = -1;  // the open folder
};

}  // namespace tenon::trainer
