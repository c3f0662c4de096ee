// SPDX-License-Identifier: Apache-2.0
// The C library's allocation functions, in front of its own (glibc manual, "Replacing malloc").
#include "guard.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENON_IS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TENON_IS_SANITIZED
#endif
#endif

#ifdef TENON_IS_SANITIZED

uint64_t tenon::fuzz::reserve_guarded() {
  return 0;
}
void tenon::fuzz::guard_memory(uint64_t, uint64_t) {}

#else

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

constexpr size_t kPage = 4096, kPages = size_t{1} << 22;  // 16 GiB of addresses
constexpr size_t kMostPages = size_t{1} << 14;            // of one allocation
constexpr unsigned char kFill = 0xa5;

struct Block {
  uint32_t n_pages = 0;  // 0: not the first page of a block
  uint32_t size = 0;
};

// A ring of pages: what was given back stays out of reach until the ring has come round.
struct Ring {
  char* base = nullptr;
  Block* blocks = nullptr;  // by first page
  size_t next = 0;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;

  bool has(const void* p) const {
    auto at = reinterpret_cast<uintptr_t>(p), from = reinterpret_cast<uintptr_t>(base);
    return base && at >= from && at < from + kPages * kPage;
  }
  size_t page_of(const void* p) const {
    return static_cast<size_t>(static_cast<const char*>(p) - base) / kPage;
  }
};
constinit Ring ring;
constinit std::atomic<uint64_t> every{0}, counter{0};

class Lock {
 public:
  Lock() {
    while (ring.busy.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Lock() { ring.busy.clear(std::memory_order_release); }
};

[[noreturn]] void die(const char* why) {
  ssize_t ignored = write(2, why, std::strlen(why));
  static_cast<void>(ignored);
  std::abort();
}

bool is_chosen(size_t align) {
  uint64_t n = every.load(std::memory_order_relaxed);
  if (n != 0 && align > 16) return true;  // tensors and workspaces
  return n != 0 && counter.fetch_add(1, std::memory_order_relaxed) % n == 0;
}

// The first of n_pages and one more that nobody has, or kPages.
size_t free_run(size_t n_pages) {
  for (size_t tries = 0; tries < 1000; ++tries) {
    if (ring.next + n_pages + 1 > kPages) ring.next = 0;
    size_t at = ring.next, taken = 0;
    while (taken <= n_pages && ring.blocks[at + taken].n_pages == 0)
      ++taken;
    if (taken > n_pages) return at;
    ring.next = at + taken + ring.blocks[at + taken].n_pages + 1;
  }
  return kPages;
}

void* guarded(size_t size, size_t align) {
  size_t wide = (std::max<size_t>(size, 1) + align - 1) / align * align;
  size_t n_pages = (wide + kPage - 1) / kPage;
  if (n_pages > kMostPages || align > kPage) return nullptr;
  size_t first = 0;
  {
    Lock lock;
    first = free_run(n_pages);
    if (first == kPages) return nullptr;
    ring.blocks[first] = {static_cast<uint32_t>(n_pages), static_cast<uint32_t>(size)};
    ring.next = first + n_pages + 1;
  }
  char* from = ring.base + first * kPage;
  if (mprotect(from, n_pages * kPage, PROT_READ | PROT_WRITE) != 0) {  // too many mappings
    Lock lock;
    ring.blocks[first] = {};
    return nullptr;
  }
  char *end = from + n_pages * kPage, *out = end - wide;
  std::memset(from, kFill, static_cast<size_t>(end - from));
  return out;
}

// The place of a guarded allocation among its block's bytes.
char* begin_of(size_t first, size_t* out_size) {
  const Block& block = ring.blocks[first];
  *out_size = block.size;
  return ring.base + (first + block.n_pages) * kPage;
}

size_t first_page_of(const void* p) {
  size_t page = ring.page_of(p);
  for (size_t back = 0; back <= kMostPages && back <= page; ++back)
    if (ring.blocks[page - back].n_pages > back) return page - back;
  die("guard: free of memory that nobody has\n");
}

size_t size_of(const void* p) {
  size_t size = 0;
  begin_of(first_page_of(p), &size);
  return size;
}

void give_back(void* p) {
  size_t first = first_page_of(p), size = 0;
  char *end = begin_of(first, &size), *from = ring.base + first * kPage;
  auto* bytes = static_cast<unsigned char*>(p);
  for (unsigned char* at = bytes + size; at < reinterpret_cast<unsigned char*>(end); ++at)
    if (*at != kFill) die("guard: a byte beyond the end was written\n");
  for (auto* at = reinterpret_cast<unsigned char*>(from); at < bytes; ++at)
    if (*at != kFill) die("guard: a byte before the beginning was written\n");
  size_t n_pages = ring.blocks[first].n_pages;
  // A fresh mapping: its bytes are gone, and nobody may touch it.
  void* fresh = mmap(from, n_pages * kPage, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (fresh == MAP_FAILED) die("guard: no mapping\n");
  Lock lock;
  ring.blocks[first] = {};
}

void* allocate(size_t size, size_t align) {
  void* out = is_chosen(align) ? guarded(size, std::max<size_t>(align, 16)) : nullptr;
  if (out) return out;
  return align <= 16 ? __libc_malloc(size) : __libc_memalign(align, size);
}

}  // namespace

#pragma GCC visibility push(default)  // libraries and plugins use these
extern "C" {

void* malloc(size_t size) {
  return allocate(size, 1);
}
void* calloc(size_t n, size_t each) {
  size_t size = 0;
  void* out = nullptr;
  if (is_chosen(1) && !__builtin_mul_overflow(n, each, &size)) out = guarded(size, 16);
  return out ? std::memset(out, 0, size) : __libc_calloc(n, each);
}
void* realloc(void* p, size_t size) {
  if (!ring.has(p)) return __libc_realloc(p, size);
  void* out = allocate(size, 1);
  if (!out) return nullptr;
  std::memcpy(out, p, std::min(size, size_of(p)));
  give_back(p);
  return out;
}
void* aligned_alloc(size_t align, size_t size) {
  return allocate(size, align);
}
void* memalign(size_t align, size_t size) {
  return allocate(size, align);
}
int posix_memalign(void** out, size_t align, size_t size) {
  *out = allocate(size, align);
  return *out ? 0 : ENOMEM;
}
size_t malloc_usable_size(void* p) {
  // Nobody here asks it of the C library's own memory.
  return ring.has(p) ? size_of(p) : 0;
}
void free(void* p) {
  if (ring.has(p))
    give_back(p);
  else
    __libc_free(p);
}

}  // extern "C"

// The C++ library's own would round sizes up before they come here.
void* operator new(size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(align));
}
void* operator new(size_t size, std::align_val_t align) {
  void* out = allocate(size, static_cast<size_t>(align));
  if (!out) throw std::bad_alloc();
  return out;
}
#pragma GCC visibility pop

uint64_t tenon::fuzz::reserve_guarded() {
  constexpr size_t kBlockBytes = kPages * sizeof(Block), kRingBytes = kPages * kPage;
  if (ring.base) return kBlockBytes + kRingBytes;
  auto reserve = [](size_t bytes, int access) {
    void* at = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) die("guard: no addresses\n");
    return at;
  };
  ring.blocks = static_cast<Block*>(reserve(kBlockBytes, PROT_READ | PROT_WRITE));
  ring.base = static_cast<char*>(reserve(kRingBytes, PROT_NONE));
  return kBlockBytes + kRingBytes;
}

void tenon::fuzz::guard_memory(uint64_t wanted, uint64_t phase) {
  if (wanted) reserve_guarded();
  counter = phase;
  every = wanted;
}

#endif
