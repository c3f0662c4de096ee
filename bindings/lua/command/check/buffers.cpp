// SPDX-License-Identifier: Apache-2.0
// A row's plain kernel in memory that shows wrong accesses: inputs that cannot be written to,
// results with a page behind them that must not be touched, and marks in the bytes between.
#include <algorithm>

#include <malloc.h>

#include "check.hpp"
#include "edit.hpp"
#include "guarded.hpp"
#include "sampled.hpp"

namespace tenon::command::check {
namespace {

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
        inputs_.push_back(nullptr);
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
      inputs_.push_back(std::make_unique<GuardedTensor>(from));
    }
  }

  tn_status* run(GuardedResults& results) const {
    std::vector<const DLTensor*> in;
    for (const auto& one : inputs_)
      in.push_back(one ? one->view() : nullptr);
    tn_op_call call{};
    call.struct_size = sizeof call;
    call.ctx = session_->ctx();
    call.graph = sampled_.model.get();
    call.node = sampled_.node;
    call.in = in.data();
    call.n_in = in.size();
    call.outputs = results.get();
    return row_->ref(row_->self, &call);
  }

 private:
  SessionPtr session_;
  const tn_op* row_;
  Sampled sampled_;
  std::vector<std::unique_ptr<GuardedTensor>> inputs_;  // NULL: an input that is left out
};

size_t held() {
  struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

}  // namespace

void check_buffers(const SessionPtr& session, const tn_op* row, uint64_t first_seed) {
  for (uint64_t seed = first_seed; seed < first_seed + 8; ++seed) {
    Bench bench(session, row, seed);
    GuardedResults results;
    int32_t code = code_of(bench.run(results));
    if (code == TN_UNIMPLEMENTED) continue;
    require(code == TN_OK, cat("seed ", seed, ": its kernel fails with code ", code));
    results.require_whole(cat("seed ", seed, ": "));
  }
}

void check_leaks(const SessionPtr& session, const tn_op* row, uint64_t seed) {
  constexpr size_t kRuns = 256, kMostBytes = kRuns * 8;
  Bench bench(session, row, seed);
  auto some = [&](size_t n) {
    for (size_t i = 0; i < n; ++i) {
      GuardedResults results;
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
