// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder of a run: checkpoint.safetensors and history.jsonl.

#include <optional>

#include "checkpoint.hpp"
#include "identity.hpp"
#include "position.hpp"

namespace tenon::trainer {

class RunFolder {
 public:
  RunFolder(tn_ctx* ctx, std::string path) : ctx_(ctx), path_(std::move(path)) {}
  bool is_kept() const { return !path_.empty(); }
  std::string checkpoint_path() const { return path_ + "/checkpoint.safetensors"; }

  struct Saved {
    Identity identity;
    Position position;
    Weights states, best;
  };
  // Makes the folder. Without resume a run that is there already is refused; with it, nothing is
  // given when there is none.
  Result<std::optional<Saved>> open(bool resume, const Identity& identity);
  Status save(const Saved& saved);
  // Beside the checkpoint, as step_120.safetensors, and never overwritten by later steps.
  Status keep(const Saved& saved);
  static Result<Saved> read(tn_ctx* ctx, const std::string& path);
  Status write_history(const nlohmann::json& records);
  // "run/checkpoint.safetensors, step 120"; what to tell about going on.
  std::string resume_hint() const;

 private:
  Status write(const std::string& path, const Saved& saved) const;

  tn_ctx* ctx_;
  std::string path_;
};

}  // namespace tenon::trainer
