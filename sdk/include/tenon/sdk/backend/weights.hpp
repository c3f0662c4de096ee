// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constants in the form that kernels want, made once and shared by all executables of one backend
// that compile the same model for other shapes. An entry lives as long as some executable holds it.
// Thread-safe; two threads that want a new entry at once may both make it.

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "tenon/sdk/status.hpp"

namespace tenon::backend {

// Of all of it: a sample could take two layers of one shape for each other.
inline uint64_t content_hash(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t hash = 14695981039346656037ULL;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, p + i, std::min<size_t>(8, bytes - i));
    hash = (hash ^ word) * 1099511628211ULL;
    hash ^= hash >> 32;
  }
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
    Key key{source.data, source.bytes,
            is_known ? source.identity : content_hash(source.data, source.bytes), is_known,
            std::move(form)};
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
    size_t bytes;
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
