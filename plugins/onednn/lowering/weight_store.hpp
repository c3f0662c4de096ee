// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constants in the layout that kernels want, made once and shared by all executables of one backend
// component that compile the same model for other shapes. Thread-safe. An entry lives as long as
// some executable holds it.

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "tenon/sdk/backend/weights.hpp"

#include "made_primitive.hpp"
#include "packed_files.hpp"
#include "view.hpp"

namespace tenon::onednn {

struct AlignedDelete {
  void operator()(void* p) const;
};
// 64-byte aligned, zeroed; large ones in huge pages where the system has them.
std::shared_ptr<void> aligned_bytes(int64_t bytes);

// What such a block asks of an allocator, and what makes one of the memory that it gave.
struct BlockForm {
  size_t used, bytes, align;  // bytes: used, rounded up
};
BlockForm block_form(int64_t bytes);
void prepare_block(void* memory, const BlockForm& form);

class WeightStore {
 public:
  using Allocate = std::function<std::shared_ptr<void>(int64_t bytes)>;  // as aligned_bytes
  // files: where large ones are kept for later processes; nullptr: nowhere.
  explicit WeightStore(Allocate allocate = aligned_bytes,
                       std::unique_ptr<PackedFiles> files = nullptr)
      : allocate_(std::move(allocate)), files_(std::move(files)) {}

  // source: dense constant at `data`, described by `from`. The result holds it in layout `to`.
  // identity: of the tensor that holds the source; 0: known by its content.
  std::shared_ptr<const void> packed(const void* data,
                                     const dnnl::memory::desc& from,
                                     const dnnl::memory::desc& to,
                                     uint64_t identity = 0);
  // The same for layouts of our own: `fill` writes the `bytes` that stand for the source, which has
  // `source_bytes`. `form` names all that they depend on beside it.
  std::shared_ptr<const void> made(const void* data,
                                   int64_t source_bytes,
                                   const std::string& form,
                                   int64_t bytes,
                                   const std::function<void(void*)>& fill,
                                   uint64_t identity = 0);
  const dnnl::engine& engine() const { return engine_; }
  // How many were found in files.
  int64_t n_found() const { return n_found_.load(std::memory_order_relaxed); }

 private:
  struct Form {
    dnnl::memory::desc from = {};
    dnnl::memory::desc to = {};
    std::string text = {};
    bool operator==(const Form&) const = default;
  };
  struct Source {
    const void* data;
    size_t bytes;
  };
  // Of a file, or filled and then kept in one. form(): all that they depend on beside the source;
  // empty: they are in no file.
  std::shared_ptr<const void> filled(const Source& source,
                                     int64_t bytes,
                                     const std::function<std::string()>& form,
                                     const std::function<void(void*)>& fill);

  Allocate allocate_;
  std::unique_ptr<PackedFiles> files_;
  std::atomic<int64_t> n_found_ = 0;
  dnnl::engine engine_ = new_engine();
  backend::WeightCache<Form, const void> cache_;
};

// The store for one compile, which knows whose tensors hold the constants.
class Weights {
 public:
  using Identify = std::function<uint64_t(const void* data)>;  // 0: of no tensor
  Weights(WeightStore& store, const Identify& identify) : store_(store), identify_(identify) {}

  std::shared_ptr<const void> packed(const void* data,
                                     const dnnl::memory::desc& from,
                                     const dnnl::memory::desc& to) {
    return store_.packed(data, from, to, identity(data));
  }
  std::shared_ptr<const void> made(const void* data,
                                   int64_t source_bytes,
                                   const std::string& form,
                                   int64_t bytes,
                                   const std::function<void(void*)>& fill) {
    return store_.made(data, source_bytes, form, bytes, fill, identity(data));
  }
  // Whether finding what was made of them needs no look at them.
  bool are_of_a_tensor(const void* data) const { return identity(data) != 0; }
  const dnnl::engine& engine() const { return store_.engine(); }

 private:
  uint64_t identity(const void* data) const { return identify_ ? identify_(data) : 0; }

  WeightStore& store_;
  const Identify& identify_;
};

}  // namespace tenon::onednn
