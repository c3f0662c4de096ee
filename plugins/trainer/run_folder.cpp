// SPDX-License-Identifier: Apache-2.0
#include "run_folder.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "tenon/sdk/run.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kBest = "best/", kAverage = "average/";

// What a process that was killed was writing.
void remove_parts(const std::string& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    bool ours = name.starts_with(".checkpoint.safetensors.") ||
                name.starts_with(".history.jsonl.") || name.starts_with(".step_") ||
                name.starts_with(".checkpoint.") || name.starts_with(".epoch_");
    if (ours && name.ends_with(".part")) fs::remove(entry.path(), ignored);
  }
}

// 7 of "epoch_7.safetensors"; 0: another file.
uint64_t kept_epoch(std::string_view name) {
  constexpr std::string_view kBegin = "epoch_", kEnd = ".safetensors";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return 0;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  uint64_t number = 0;
  auto [end, failed] = std::from_chars(name.begin(), name.end(), number);
  return failed == std::errc() && end == name.end() ? number : 0;
}

// The records of the epochs that a checkpoint counts. A process that was killed may have left more,
// and half a line.
json read_history(const std::string& path, uint64_t epochs) {
  json records = json::array();
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    json record = json::parse(line, nullptr, false);
    if (record.is_object() && record.contains("epoch") && record["epoch"].is_number_unsigned() &&
        record["epoch"].get<uint64_t>() <= epochs)
      records.push_back(std::move(record));
  }
  return records;
}

Status write_all(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return {TN_DATA_LOSS, std::strerror(errno)};
    text.remove_prefix(static_cast<size_t>(written));
  }
  return ::fsync(file) == 0 ? Status() : Status(TN_DATA_LOSS, std::strerror(errno));
}

}  // namespace

RunFolder::~RunFolder() {
  if (locked_ >= 0) ::close(locked_);
}

// The folder itself is locked, so that nothing is left in it. Where the file system knows no locks
// the run goes on without.
Status RunFolder::lock() {
  locked_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (locked_ < 0 || ::flock(locked_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return {TN_FAILED_PRECONDITION,
          cat("option run: ", path_, ": expected a folder in which no training is going on, got ",
              "one with a live training; wait for its end or stop it, or give another folder")};
}

Result<std::optional<RunFolder::Saved>> RunFolder::open(bool resume, const Identity& identity) {
  std::optional<Saved> out;
  if (!is_kept()) return out;
  std::error_code failed;
  if (resume && !fs::exists(path_, failed))  // a script gives resume each time that it is run
    log_line(ctx_, TN_LOG_INFO, cat("option resume: ", path_, ": no run is there yet, one begins"));
  fs::create_directories(path_, failed);
  if (failed) return invalid(cat("option run: ", path_, ": ", failed.message()));
  TN_CHECK(lock());
  if (!fs::exists(checkpoint_path(), failed)) {
    fs::remove(history_path(), failed);  // of a run that was killed before its first checkpoint
    return out;
  }
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
  const json at = run.value("position", json());
  Result<Position> position = Position::from(at);
  if (!position.ok()) return std::move(position).status().in(path);
  out.position = *position;
  out.history = at.contains("history")
                    ? at["history"]
                    : read_history(fs::path(path).parent_path() / "history.jsonl", at["epoch"]);
  for (const json& decision : run.value("decisions", json::array()))
    if (decision.is_string()) out.decisions.insert(decision);
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (name.starts_with(kBest)) {
      out.best[name.substr(kBest.size())] = tensor;
    } else if (name.starts_with(kAverage)) {
      out.average[name.substr(kAverage.size())] = tensor;
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

Status RunFolder::keep_epoch(const Saved& saved, uint64_t n_kept) {
  uint64_t epoch = saved.position.epoch;
  TN_CHECK(write(cat(path_, "/epoch_", epoch, ".safetensors"), saved));
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, ignored)) {
    uint64_t number = kept_epoch(entry.path().filename().string());
    if (number > 0 && (number > epoch || number + n_kept <= epoch))
      TN_CHECK(remove_checkpoint(entry.path().string()));
  }
  return {};
}

Status RunFolder::write(const std::string& path, const Saved& saved) const {
  Checkpoint checkpoint;
  json run = saved.identity.to_json();
  run["position"] = saved.position.to_json();
  if (!saved.decisions.empty()) run["decisions"] = saved.decisions;
  checkpoint.run = run.dump();
  checkpoint.tensors = saved.states;
  for (const auto& [name, tensor] : saved.best)
    checkpoint.tensors[cat(kBest, name)] = tensor;
  for (const auto& [name, tensor] : saved.average)
    checkpoint.tensors[cat(kAverage, name)] = tensor;
  return save_checkpoint(ctx_, path, checkpoint, shard_bytes_);
}

Status RunFolder::begin_history(const json& records) {
  if (!is_kept()) return {};
  std::string text;
  for (const json& record : records)
    text += record.dump() + "\n";
  tn_target* target = nullptr;
  TN_CHECK(services.blob->create(ctx_, str(history_path()), &target));
  Status written(services.blob->write(target, {}, text.data(), text.size()));
  if (!written.ok()) {
    services.blob->abandon(target);
    return written;
  }
  return Status(services.blob->commit(target));
}

Status RunFolder::add_record(const json& record) const {
  if (!is_kept()) return {};
  int file = ::open(history_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return Status(TN_DATA_LOSS, cat(history_path(), ": ", std::strerror(errno)));
  Status written = write_all(file, record.dump() + "\n");
  ::close(file);
  return std::move(written).in(history_path());
}

std::string RunFolder::resume_hint() const {
  if (!is_kept()) return "nothing was kept: give option run, a folder, to be able to go on";
  return cat("go on with --resume ", path_, ", or with options run and resume");
}

}  // namespace tenon::trainer
