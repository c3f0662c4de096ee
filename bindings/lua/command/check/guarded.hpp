// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for a component under test: what it is given to read cannot be written to, behind it lies
// a page that must not be touched, and marks in the bytes between show what was written beside a
// result.

#include <algorithm>
#include <memory>
#include <vector>

#include "check.hpp"

namespace tenon::command::check {

size_t bytes_of(const DLTensor& tensor);  // dense

// Some bytes that end, but for their alignment, where a page begins that cannot be touched.
class Guarded {
 public:
  static constexpr size_t kHost = 64;  // the alignment that the host promises for tensors
  // alignment: of the data, a power of two. The smaller, the fewer bytes lie between the end and
  // the page.
  explicit Guarded(size_t n_bytes, size_t alignment = kHost);
  Guarded(const Guarded&) = delete;
  ~Guarded();
  void* data() const { return data_; }
  size_t bytes() const { return n_bytes_; }
  void protect() const;  // from now on a write ends the process
  // How far a byte outside was changed: negative before the data, positive behind their end; 0:
  // none was.
  int64_t damage() const;
  // Throws where a byte outside was changed; `what`: whose memory it is.
  void require_whole(const std::string& what) const;

 private:
  size_t n_bytes_, usable_ = 0, all_ = 0;
  unsigned char *base_ = nullptr, *data_ = nullptr;
};

// A dense copy of a tensor that can be read only.
class GuardedTensor {
 public:
  explicit GuardedTensor(const DLTensor& from);
  GuardedTensor(const GuardedTensor&) = delete;
  const DLTensor* view() const { return &view_; }

 private:
  Guarded block_;
  std::vector<int64_t> shape_;
  DLTensor view_;
};

// A copy of some numbers that can be read only.
template <class T>
class GuardedArray {
 public:
  explicit GuardedArray(const std::vector<T>& from) : block_(from.size() * sizeof(T), sizeof(T)) {
    std::copy(from.begin(), from.end(), static_cast<T*>(block_.data()));
    block_.protect();
  }
  const T* data() const { return static_cast<const T*>(block_.data()); }

 private:
  Guarded block_;
};

// Room for n numbers or ids that a component writes, zeros before.
template <class T>
class GuardedRoom {
 public:
  explicit GuardedRoom(size_t n) : block_(n * sizeof(T), sizeof(T)), n_(n) {
    std::fill_n(data(), n, T{});
  }
  T* data() const { return static_cast<T*>(block_.data()); }
  // What was written; throws where it was beside it. what: whose room it is.
  std::vector<T> read(const std::string& what) const {
    block_.require_whole(what);
    return {data(), data() + n_};
  }

 private:
  Guarded block_;
  size_t n_;
};

// Where a component gets memory for its results: guarded, and kept until the call is over.
class GuardedResults {
 public:
  GuardedResults();
  GuardedResults(const GuardedResults&) = delete;
  const tn_outputs* get() const { return &raw_; }
  // Throws where something was written beside a result; `where` stands in front of the reason.
  void require_whole(const std::string& where) const;

 private:
  std::vector<std::unique_ptr<Guarded>> blocks_;
  std::vector<std::vector<int64_t>> shapes_;
  tn_outputs raw_;
};

}  // namespace tenon::command::check
