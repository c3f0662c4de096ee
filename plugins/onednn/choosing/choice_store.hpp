// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decisions on disk: one file of text for each fingerprint, which many processes read and append
// to. Who keeps a key first decides it for all. Each line has a checksum: one that is cut short or
// changed is left out, and a file of another kind or of another CPU is begun anew. A file does not
// grow beyond kMostBytes.
//
//   ChoiceStore store(default_folder(), fingerprint(), note);
//   std::optional<Decision> found = store.find(key);
//   std::optional<Decision> kept = store.keep(key, decision);  // what counts from now on

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lowering/chooser.hpp"

namespace tenon::onednn {

class ChoiceStore {
 public:
  using Note = std::function<void(const std::string&)>;
  static constexpr uint64_t kMostBytes = 1 << 20;
  static constexpr char kSeparator = '#';  // in no key and no name

  // folder: empty: nothing is read or kept on disk. note: notified, once each, of what is damaged
  // and of why nothing can be kept.
  ChoiceStore(std::string folder, std::string fingerprint, Note note);

  // The folder "onednn" of Tenon's in the user's cache folder, or empty where there is none.
  static std::string default_folder();

  std::optional<Decision> find(const std::string& key);
  // Nothing where it cannot be kept. What another process has kept meanwhile stays.
  std::optional<Decision> keep(const std::string& key, const Decision& decision);
  // Whether keep() may succeed.
  bool can_keep();

  // Lines as line_of makes them, from elsewhere: for these keys neither file nor clock is asked.
  // Returns what of them cannot be read; empty: nothing.
  std::string take(const std::vector<std::string>& lines);
  // Without its checksum.
  static std::string line_of(const std::string& key, const Decision& decision);

 private:
  class File;
  using Decisions = std::map<std::string, Decision, std::less<>>;

  void read_once();
  void read(std::string_view content);
  void note_once(const std::string& what);
  std::string sealed(const std::string& line) const;

  std::string folder_, path_, fingerprint_;
  Note note_;
  std::mutex mutex_;  // guards all below
  bool is_read_ = false;
  std::string why_not_kept_;
  std::map<std::string, bool> noted_;
  Decisions kept_, taken_;
};

}  // namespace tenon::onednn
