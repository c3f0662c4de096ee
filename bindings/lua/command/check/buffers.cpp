// SPDX-License-Identifier: Apache-2.0
// A row's plain kernel in memory that tells: inputs that cannot be written to, results with a page
// behind them that nobody may touch, and marks in the bytes between.
#include <algorithm>
#include <cstring>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.hpp"
#include "edit.hpp"
#include "sampled.hpp"

namespace tenon::command::check {
namespace {

constexpr size_t kAlignment = 64;  // that the host promises for data
constexpr unsigned char kMark = 0xA5;

// Some bytes that end, but for their alignment, where a page begins that cannot be touched.
class Guarded {
 public:
  explicit Guarded(size_t n_bytes) : n_bytes_(n_bytes) {
    auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t rounded = (n_bytes + kAlignment - 1) / kAlignment * kAlignment;
    usable_ = (rounded + page - 1) / page * page;
    all_ = usable_ + page;
    void* made = mmap(nullptr, all_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) broken("no memory for guarded buffers");
    base_ = static_cast<unsigned char*>(made);
    mprotect(base_ + usable_, page, PROT_NONE);
    data_ = base_ + usable_ - rounded;
    std::memset(base_, kMark, usable_);
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { munmap(base_, all_); }
  void* data() const { return data_; }
  void protect() const { mprotect(base_, usable_, PROT_READ); }
  // How far a byte outside was changed: before 0, or behind the end; 0: none was.
  int64_t damage() const {
    for (unsigned char* at = base_; at < base_ + usable_; ++at)
      if ((at < data_ || at >= data_ + n_bytes_) && *at != kMark)
        return at < data_ ? at - data_ : at - data_ - static_cast<int64_t>(n_bytes_) + 1;
    return 0;
  }

 private:
  size_t n_bytes_, usable_ = 0, all_ = 0;
  unsigned char *base_ = nullptr, *data_ = nullptr;
};

size_t bytes_of(const DLTensor& t) {
  size_t n = 1;
  for (int32_t d = 0; d < t.ndim; ++d)
    n *= static_cast<size_t>(t.shape[d]);
  return (n * t.dtype.bits * t.dtype.lanes + 7) / 8;
}

// Where a kernel gets its results: guarded, and kept until the call is over.
struct Results {
  std::vector<std::unique_ptr<Guarded>> blocks = {};
  std::vector<std::vector<int64_t>> shapes = {};
  tn_outputs raw{this,
                 [](void* self, uint64_t, const DLTensor* proto, DLTensor* out) -> tn_status* {
                   auto* all = static_cast<Results*>(self);
                   all->shapes.emplace_back(proto->shape, proto->shape + proto->ndim);
                   all->blocks.push_back(std::make_unique<Guarded>(bytes_of(*proto)));
                   *out = *proto;
                   out->device = {kDLCPU, 0};
                   out->shape = all->shapes.back().data();
                   out->strides = nullptr;
                   out->byte_offset = 0;
                   out->data = all->blocks.back()->data();
                   return nullptr;
                 }};
};

// One sample's node with its inputs in guarded memory.
class Bench {
 public:
  Bench(const SessionPtr& session, const tn_op* row, uint64_t seed)
      : session_(session), row_(row), sampled_(sample_of(session, row, seed)) {
    std::mt19937_64 random(seed);
    const tn_graph* graph = sampled_.model.get();
    const tn_host_graph& read = *session->graph;
    std::vector<cxx::Port> ports = sampled_.model.inputs();
    for (uint64_t i = 0; i < read.io_count(graph, sampled_.node, TN_LIST_INPUTS); ++i) {
      tn_value_id value = read.io_at(graph, sampled_.node, TN_LIST_INPUTS, i);
      if (value == 0) {
        views_.push_back({});
        continue;
      }
      if (read.producer(graph, value, nullptr) != 0) throw Skipped{"its sample has other nodes"};
      DLTensor from{};
      cxx::Tensor made;
      if (tn_tensor* constant = read.constant(graph, value)) {
        cxx::check(session->tensor->view(constant, &from));
      } else {
        for (uint64_t p = 0; p < ports.size(); ++p)
          if (read.value_at(graph, TN_LIST_INPUTS, p, 0) == value)
            made = random_tensor(session, ports[p].dtype, ports[p].dims, random);
        from = *made.view();
      }
      keep(from);
    }
  }

  tn_status* run(Results& results) const {
    std::vector<const DLTensor*> in;
    for (const DLTensor& one : views_)
      in.push_back(one.data || one.ndim || one.dtype.bits ? &one : nullptr);
    tn_op_call call{};
    call.struct_size = sizeof call;
    call.ctx = session_->ctx();
    call.graph = sampled_.model.get();
    call.node = sampled_.node;
    call.in = in.data();
    call.n_in = in.size();
    call.outputs = &results.raw;
    return row_->ref(row_->self, &call);
  }

 private:
  void keep(const DLTensor& from) {
    blocks_.push_back(std::make_unique<Guarded>(bytes_of(from)));
    std::memcpy(blocks_.back()->data(), static_cast<const char*>(from.data) + from.byte_offset,
                bytes_of(from));
    blocks_.back()->protect();
    shapes_.push_back(std::make_unique<std::vector<int64_t>>(from.shape, from.shape + from.ndim));
    DLTensor view = from;
    view.data = blocks_.back()->data();
    view.byte_offset = 0;
    view.shape = shapes_.back()->data();
    view.strides = nullptr;
    views_.push_back(view);
  }

  SessionPtr session_;
  const tn_op* row_;
  Sampled sampled_;
  std::vector<std::unique_ptr<Guarded>> blocks_;
  std::vector<std::unique_ptr<std::vector<int64_t>>> shapes_;
  std::vector<DLTensor> views_;
};

size_t held() {
  struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

}  // namespace

void check_buffers(const SessionPtr& session, const tn_op* row, uint64_t first_seed) {
  for (uint64_t seed = first_seed; seed < first_seed + 8; ++seed) {
    Bench bench(session, row, seed);
    Results results;
    int32_t code = code_of(bench.run(results));
    if (code == TN_UNIMPLEMENTED) continue;
    require(code == TN_OK, cat("seed ", seed, ": its kernel fails with code ", code));
    for (size_t i = 0; i < results.blocks.size(); ++i) {
      int64_t at = results.blocks[i]->damage();
      require(at == 0, cat("seed ", seed, ": it wrote ", at < 0 ? -at : at, " bytes ",
                           at < 0 ? "before" : "behind", " result ", i));
    }
  }
}

void check_leaks(const SessionPtr& session, const tn_op* row, uint64_t seed) {
  constexpr size_t kRuns = 256, kMostBytes = kRuns * 8;
  Bench bench(session, row, seed);
  auto some = [&](size_t n) {
    for (size_t i = 0; i < n; ++i) {
      Results results;
      code_of(bench.run(results));
    }
  };
  some(kRuns);  // what is kept from the first runs is no leak
  size_t before = held();
  some(kRuns);
  size_t after = held();
  require(after < before + kMostBytes,
          cat(kRuns, " more runs: expected nothing to be held, got ", after - before, " bytes"));
}

}  // namespace tenon::command::check
