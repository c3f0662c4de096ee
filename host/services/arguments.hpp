// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of what comes over the ABI, for the guards that abi/generate writes; and structs that may
// grow in the size that this host knows, whatever size the other side has.

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tenon/abi.h"

#include "services/handle.hpp"
#include "services/status.hpp"

struct tenon_session;

namespace tenon::host {

inline constexpr uint32_t kLargestStruct = 1u << 16;

inline bool is_struct_size(uint32_t size) {
  return size >= 8 && size <= kLargestStruct && size % 8 == 0;
}

// The first argument that cannot be; checking costs nothing where all are well.
class Arguments {
 public:
  explicit Arguments(const char* function) : function_(function) {}
  bool ok() const { return fault_ == Fault::kNone; }
  tn_status* refused() const;

  void needed(const void* pointer, const char* name, bool nullable) {
    if (!pointer && !nullable) blame(name, Fault::kNull);
  }
  void callback(bool there, const char* name) {
    if (!there) blame(name, Fault::kNull);
  }
  void list(const void* pointer, uint64_t n, const char* name, bool nullable) {
    if (n > 0) needed(pointer, name, nullable);
  }
  template <class T>
  void handle(const T* pointer, const char* name, bool nullable) {
    if (!pointer) return needed(pointer, name, nullable);
    if (!is_live(pointer)) blame(name, Fault::kKind);
  }
  template <class T>
  void sized(const T* pointer, const char* name, bool nullable) {
    if (!pointer) return needed(pointer, name, nullable);
    if (!is_struct_size(pointer->struct_size)) blame(name, Fault::kSize, pointer->struct_size);
  }
  void text(tn_str text, const char* name) { check_text(text.data, text.len, name); }
  void any(const tn_any& any, const char* name);
  void sink(const tn_sink* sink, const char* name, bool nullable) {
    if (!sink) return needed(sink, name, nullable);
    if (!sink->write) blame(name, Fault::kNoFunction);
  }
  void outputs(const tn_outputs* outputs, const char* name, bool nullable) {
    if (!outputs) return needed(outputs, name, nullable);
    if (!outputs->get) blame(name, Fault::kNoFunction);
  }
  void tensor(const DLTensor* tensor, const char* name, bool nullable) {
    if (!tensor) return needed(tensor, name, nullable);
    if (tensor->ndim < 0 || (tensor->ndim > 0 && !tensor->shape))
      blame(name, Fault::kShape, static_cast<uint64_t>(tensor->ndim));
  }
  template <class T>
  void items(const T* const* items, uint64_t n, const char* name, bool nullable) {
    list(items, n, name, false);
    for (uint64_t i = 0; items && i < n && ok(); ++i) {
      if constexpr (std::is_same_v<T, DLTensor>) {
        tensor(items[i], name, nullable);
      } else {
        sized(items[i], name, nullable);
      }
    }
  }

 private:
  enum class Fault { kNone, kNull, kKind, kSize, kText, kNoFunction, kShape };
  std::string why() const;
  void blame(const char* name, Fault fault, uint64_t got = 0) {
    if (!ok()) return;
    name_ = name;
    fault_ = fault;
    got_ = got;
  }
  void check_text(const void* data, uint64_t len, const char* name) {
    if ((!data && len > 0) || len > INT64_MAX) blame(name, Fault::kText, len);
  }

  const char* function_;
  const char* name_ = nullptr;
  Fault fault_ = Fault::kNone;
  uint64_t got_ = 0;
};

// What a function gives. Where the environment has TENON_CHECK_ERRORS, as in tests, a code that its
// header does not state (`codes`: bit i is code i) becomes TN_INTERNAL, with the failure as its
// cause.
tn_status* checked_failure(tn_status* given, uint32_t codes, const char* function);
inline tn_status* stated(tn_status* given, uint32_t codes, const char* function) {
  return given ? checked_failure(given, codes, function) : nullptr;
}

// The first min(size there, size here) bytes of a struct that begins with struct_size.
template <class T>
void copy_sized(const T* from, T* into) {
  std::memcpy(static_cast<void*>(into), from, std::min<size_t>(from->struct_size, sizeof(T)));
}

// A struct that the other side filled in: itself, or a full-size copy where it is shorter.
template <class T>
class Taken {
 public:
  explicit Taken(const T* from) : from_(from) {
    if (!from || from->struct_size >= sizeof(T)) return;
    copy_sized(from, &full_);
    full_.struct_size = sizeof(T);
    from_ = &full_;
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  const T* get() const { return from_; }

 private:
  T full_{};
  const T* from_;
};

// A struct that the host fills in: no byte behind the other side's size is written, and its
// struct_size stays what it was.
template <class T>
class Given {
 public:
  explicit Given(T* to) : to_(to) { full_.struct_size = sizeof(T); }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  ~Given() {
    full_.struct_size = to_->struct_size;
    std::memcpy(static_cast<void*>(to_), &full_, std::min<size_t>(to_->struct_size, sizeof(T)));
  }
  T* get() { return &full_; }

 private:
  T full_{};
  T* to_;
};

// A list of pointers to structs that the other side filled in.
template <class T>
class TakenList {
 public:
  TakenList(const T* const* from, uint64_t n) : from_(from) {
    bool is_short = std::any_of(from, from + n,
                                [](const T* one) { return one && one->struct_size < sizeof(T); });
    if (!is_short) return;
    full_.resize(n);
    for (uint64_t i = 0; i < n; ++i) {
      if (from[i]) copy_sized(from[i], &full_[i]);
      full_[i].struct_size = sizeof(T);
      list_.push_back(from[i] ? &full_[i] : nullptr);
    }
    from_ = list_.data();
  }
  TakenList(const TakenList&) = delete;
  TakenList& operator=(const TakenList&) = delete;
  const T* const* get() const { return from_; }

 private:
  std::vector<T> full_;
  std::vector<const T*> list_;
  const T* const* from_;
};

}  // namespace tenon::host
