// SPDX-License-Identifier: Apache-2.0
#pragma once
// A caching allocator in stream order: a freed block goes at once to the next request of the same
// stream, and to others when the work before its freeing is done. Knows nothing of CUDA: where
// memory comes from and what a fence is, its source says, so tests give it one of their own.

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tenon::cuda {

// What a block comes from. Fences mark a point in a stream's work; NULL is one that is done.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  virtual void* allocate(uint64_t bytes) = 0;  // NULL: there is no more
  virtual void release(void* block) = 0;
  virtual void* fence(void* stream) = 0;
  virtual bool is_done(void* fence) = 0;
  virtual void wait(void* fence) = 0;
  virtual void drop(void* fence) = 0;
};

// Who may have a freed block while the work before its freeing is not done.
enum class Reuse {
  kByStream,  // the same stream: it ends through its owner here, so its number is nobody else's
  kWhenDone,  // nobody: somebody else's stream may end unseen, and the CPU does not wait for one
};

struct BlockCounts {
  uint64_t live_bytes = 0, cached_bytes = 0, peak_bytes = 0;  // peak: most that was live at once
  uint64_t live_blocks = 0, allocations = 0;                  // allocations: from the source
};

class BlockCache {
 public:
  explicit BlockCache(BlockSource& source) : source_(source) {}
  ~BlockCache();  // everything must have been freed and be done
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // NULL: out of memory, also after everything cached was given back.
  void* allocate(uint64_t bytes, void* stream);
  // The block's last use is in `stream`, before now; NULL: it is not in use.
  void free(void* block, void* stream, Reuse reuse = Reuse::kByStream);
  // Gives back what is cached and done; `wait`: also what must be waited for.
  void trim(bool wait);
  BlockCounts counts() const;

 private:
  struct Cached {
    void* block;
    void* stream;  // NULL: nobody gets it before its fence is done
    void* fence;
  };
  void* take(uint64_t bytes, void* stream);

  BlockSource& source_;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::vector<Cached>> cached_;  // by size
  std::unordered_map<void*, uint64_t> live_;        // size of each block handed out
  BlockCounts counts_;
};

}  // namespace tenon::cuda
