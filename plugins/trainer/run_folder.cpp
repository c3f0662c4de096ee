// SPDX-License-Identifier: Apache-2.0
#include "run_folder.hpp"

#include <filesystem>

namespace tenon::trainer {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kBest = "best/";

// What a process that was killed was writing.
void remove_parts(const std::string& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    bool ours = name.starts_with(".checkpoint.safetensors.") ||
                name.starts_with(".history.jsonl.") || name.starts_with(".step_");
    if (ours && name.ends_with(".part")) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

Result<std::optional<RunFolder::Saved>> RunFolder::open(bool resume, const Identity& identity) {
  std::optional<Saved> out;
  if (!is_kept()) return out;
  std::error_code failed;
  fs::create_directories(path_, failed);
  if (failed) return invalid(cat("option run: ", path_, ": ", failed.message()));
  if (!fs::exists(checkpoint_path(), failed)) return out;
  if (!resume)
    return Status(TN_ALREADY_EXISTS, cat("option run: ", path_, " holds a run already: go on with ",
                                         "it (resume), or give another folder"));
  remove_parts(path_);
  TN_TRY(saved, read(ctx_, checkpoint_path()));
  TN_CHECK(same_choices(saved.identity, identity).in(checkpoint_path()));
  out = std::move(saved);
  return out;
}

Result<RunFolder::Saved> RunFolder::read(tn_ctx* ctx, const std::string& path) {
  TN_TRY(checkpoint, load_checkpoint(ctx, path));
  json run = json::parse(checkpoint.run, nullptr, false);
  if (!run.is_object()) return Status(TN_DATA_LOSS, cat(path, ": no run inside"));
  Saved out;
  Result<Identity> began = Identity::from(run);
  if (!began.ok()) return std::move(began).status().in(path);
  out.identity = std::move(*began);
  out.identity.writer = checkpoint.writer;
  Result<Position> position = Position::from(run.value("position", json()));
  if (!position.ok()) return std::move(position).status().in(path);
  out.position = *position;
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (name.starts_with(kBest)) {
      out.best[name.substr(kBest.size())] = tensor;
    } else {
      out.states[name] = tensor;
    }
  }
  return out;
}

Status RunFolder::save(const Saved& saved) {
  return is_kept() ? write(checkpoint_path(), saved) : Status();
}

Status RunFolder::keep(const Saved& saved) {
  return write(cat(path_, "/step_", saved.position.steps, ".safetensors"), saved);
}

Status RunFolder::write(const std::string& path, const Saved& saved) const {
  Checkpoint checkpoint;
  json run = saved.identity.to_json();
  run["position"] = saved.position.to_json();
  checkpoint.run = run.dump();
  checkpoint.tensors = saved.states;
  for (const auto& [name, tensor] : saved.best)
    checkpoint.tensors[cat(kBest, name)] = tensor;
  return save_checkpoint(ctx_, path, checkpoint);
}

Status RunFolder::write_history(const json& records) {
  if (!is_kept()) return {};
  std::string text;
  for (const json& record : records)
    text += record.dump() + "\n";
  tn_target* target = nullptr;
  TN_CHECK(services.blob->create(ctx_, str(path_ + "/history.jsonl"), &target));
  Status written(services.blob->write(target, {}, text.data(), text.size()));
  if (!written.ok()) {
    services.blob->abandon(target);
    return written;
  }
  return Status(services.blob->commit(target));
}

std::string RunFolder::resume_hint() const {
  if (!is_kept()) return "nothing was kept: give option run, a folder, to be able to go on";
  return cat("go on with --resume ", path_, ", or with options run and resume");
}

}  // namespace tenon::trainer
