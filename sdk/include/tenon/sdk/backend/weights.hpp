// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constants in the form that kernels want, made once and shared by all executables of one backend
// that compile the same model for other shapes. An entry lives as long as some executable holds it.
// Thread-safe; two threads that want a new entry at once may both make it.

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "tenon/sdk/status.hpp"

namespace tenon::backend {

// FNV-1a over up to 64 runs of 64 bytes, as pages of large weights may lie in a file.
inline uint64_t sample_hash(const void* data, size_t bytes) {
  constexpr size_t kRun = 64;
  const auto* p = static_cast<const unsigned char*>(data);
  const size_t step = std::max(kRun, bytes / kRun);
  uint64_t hash = 14695981039346656037ULL;
  for (size_t begin = 0; begin < bytes; begin += step)
    for (size_t i = begin; i < std::min(begin + kRun, bytes); ++i)
      hash = (hash ^ p[i]) * 1099511628211ULL;
  return hash;
}

struct WeightSource {
  const void* data;
  size_t bytes;
  uint64_t identity = 0;  // of the tensor that holds them (Tensor::identity); 0: its content counts
};

// Form: all that Made, which is kept, depends on beside the constant; compared with ==.
template <class Form, class Made>
class WeightCache {
 public:
  using Kept = std::shared_ptr<Made>;
  // make() gives a Kept, or a Result of one; what is not ok is handed up and not kept.
  template <class Make>
  auto get(const WeightSource& source, Form form, Make&& make) -> decltype(make()) {
    // An address alone may hold another model later.
    const bool is_known = source.identity != 0;
    Key key{source.data, is_known ? source.identity : sample_hash(source.data, source.bytes),
            is_known, std::move(form)};
    if (Kept found = find(key)) return found;
    auto made = make();
    if constexpr (std::is_same_v<decltype(made), Result<Kept>>) {
      if (made.ok()) keep(std::move(key), *made);
    } else {
      keep(std::move(key), made);
    }
    return made;
  }

 private:
  struct Key {
    const void* data;
    uint64_t stamp;  // the identity, or a hash of the content
    bool is_identity;
    Form form;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::weak_ptr<Made> kept;
  };
  Kept find(const Key& key) {
    std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const Entry& entry) { return entry.kept.expired(); });
    for (const Entry& entry : entries_)
      if (entry.key == key)
        if (Kept found = entry.kept.lock()) return found;
    return nullptr;
  }
  void keep(Key key, const Kept& made) {
    std::lock_guard lock(mutex_);
    entries_.push_back({std::move(key), made});
  }

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace tenon::backend
