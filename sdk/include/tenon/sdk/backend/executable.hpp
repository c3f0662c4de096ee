// SPDX-License-Identifier: Apache-2.0
#pragma once
// A compiled part on the CPU: steps over the values of an imported graph, one arena for all that
// lies between them. Runs from many threads share it; each has the workspace that the host gives
// it.

#include <functional>
#include <memory>
#include <mutex>

#include "tenon/sdk/backend/arena.hpp"
#include "tenon/sdk/backend/graph.hpp"
#include "tenon/sdk/backend/inputs.hpp"
#include "tenon/sdk/backend/report.hpp"
#include "tenon/sdk/backend/states.hpp"
#include "tenon/sdk/trace.hpp"

namespace tenon::backend {

constexpr uint64_t kArenaAlign = 64;

// What a step has when it runs: dense row-major tensors.
struct Call {
  tn_ctx* ctx;
  const tn_cancel* cancel;
  std::vector<const DLTensor*> in;  // as Step::reads; NULL where absent
  std::vector<DLTensor*> out;       // as Step::writes
  void* scratch = nullptr;

  template <class T>
  const T* input(size_t i) const {
    return i < in.size() && in[i] ? data_of<const T>(*in[i]) : nullptr;
  }
  template <class T>
  T* output(size_t i = 0) const {
    return data_of<T>(*out[i]);
  }
};

struct Step {
  std::string name, op;            // of the node
  std::string kernel;              // what computes it
  std::vector<int> reads, writes;  // values; kNone where absent
  // Called concurrently by runs of other threads.
  std::function<Status(const Call&)> work;
  uint64_t scratch_bytes = 0;  // of the arena, while it runs
  double flops = 0, bytes = 0;
};

class Executable {
 public:
  // alias[value]: the value whose memory it lies in, or kNone. `keeper`: what steps borrow from.
  static Result<std::unique_ptr<Executable>> make(
      tn_ctx* ctx, Graph graph, std::vector<Step> steps, std::vector<int> alias, OwnedGraph keeper);
  uint64_t workspace() const { return arena_.bytes; }
  // states: NULL where the graph has none.
  Status run(StateStore* states,
             const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec& exec);
  std::string describe() const;  // JSON
  std::string profile() const;   // of the last run with TN_EXEC_PROFILE

 private:
  struct Run;
  int memory_of(int value) const {
    while (value != kNone && alias_[static_cast<size_t>(value)] != kNone)
      value = alias_[static_cast<size_t>(value)];
    return value;
  }
  Status lay_out();
  Status bind(Run& run,
              StateStore* states,
              const DLTensor* const* in,
              const tn_outputs* outputs) const;
  Status finish(Run& run) const;

  tn_ctx* ctx_ = nullptr;
  Graph graph_;
  std::vector<Step> steps_;
  std::vector<int> alias_;
  OwnedGraph keeper_;
  tn_arena_size arena_{};
  std::vector<uint64_t> offset_;    // by value, then by step: its scratch
  std::vector<DenseView> headers_;  // by value, without memory
  std::vector<bool> is_outside_;    // by value: an input, output, constant or state
  mutable std::mutex mutex_;        // guards ns_
  std::vector<uint64_t> ns_;
};

// ---- definitions

struct Executable::Run {
  std::vector<DenseView> tensors;  // by value
  std::vector<void*> outputs;      // by output
  std::vector<void*> states;       // by state
};

inline Result<std::unique_ptr<Executable>> Executable::make(
    tn_ctx* ctx, Graph graph, std::vector<Step> steps, std::vector<int> alias, OwnedGraph keeper) {
  auto made = std::make_unique<Executable>();
  made->ctx_ = ctx;
  made->graph_ = std::move(graph);
  made->steps_ = std::move(steps);
  made->alias_ = std::move(alias);
  made->keeper_ = std::move(keeper);
  TN_CHECK(made->lay_out());
  return made;
}

inline Status Executable::lay_out() {
  size_t n = graph_.values.size();
  is_outside_.assign(n, false);
  auto mark = [&](int value) { is_outside_[static_cast<size_t>(memory_of(value))] = true; };
  for (const Value& value : graph_.values)
    headers_.emplace_back(value.dtype, value.dims, value.data);
  for (size_t i = 0; i < n; ++i)
    if (graph_.values[i].data) is_outside_[i] = true;
  for (const std::vector<int>* list : {&graph_.inputs, &graph_.outputs})
    for (int value : *list)
      mark(value);
  for (const auto& state : graph_.states)
    mark(state.first);
  Lives lives(n + steps_.size());
  for (size_t s = 0; s < steps_.size(); ++s) {
    for (const std::vector<int>* list : {&steps_[s].reads, &steps_[s].writes})
      for (int value : *list)
        lives.touch(memory_of(value), s);
    lives.touch(static_cast<int>(n + s), s);
  }
  for (const auto& state : graph_.states)
    lives.touch(memory_of(state.second), steps_.size());
  offset_.assign(n + steps_.size(), 0);
  auto bytes = [&](size_t i) {
    if (i >= n) return steps_[i - n].scratch_bytes;
    return is_outside_[i] || !graph_.values[i].is_known ? 0 : graph_.values[i].bytes();
  };
  TN_TRY(size, lives.place(kArenaAlign, bytes, [&](size_t i, uint64_t at) { offset_[i] = at; }));
  arena_ = size;
  ns_.assign(steps_.size(), 0);
  return {};
}

inline Status Executable::bind(Run& run,
                               StateStore* states,
                               const DLTensor* const* in,
                               const tn_outputs* outputs) const {
  auto put = [&](int value, void* data) {
    run.tensors[static_cast<size_t>(value)].get()->data = data;
  };
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    int value = graph_.outputs[i];
    DLTensor out{};
    TN_CHECK(outputs->get(outputs->ctx, i, headers_[static_cast<size_t>(value)].get(), &out));
    run.outputs.push_back(data_of<void>(out));
    if (graph_.value(value).producer != kNone) put(value, run.outputs.back());
  }
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    const DenseView& wanted = headers_[static_cast<size_t>(graph_.inputs[i])];
    if (const char* why = why_not_as_compiled(*in[i], *wanted))
      return invalid(cat("input ", i, ": ", why));
    put(graph_.inputs[i], data_of<void>(*in[i]));
  }
  for (const auto& [before, after] : graph_.states) {
    const Value& value = graph_.value(before);
    const DenseView& header = headers_[static_cast<size_t>(before)];
    TN_TRY(place, states->place(value.name, *header, row_major_strides(value.dims)));
    put(before, place);
    run.states.push_back(place);
  }
  for (size_t i = 0; i < alias_.size(); ++i)
    if (alias_[i] != kNone)
      run.tensors[i].get()->data =
          run.tensors[static_cast<size_t>(memory_of(static_cast<int>(i)))].get()->data;
  return {};
}

// Outputs that are inputs, constants or another output, and new values of states.
inline Status Executable::finish(Run& run) const {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const DenseView& tensor = run.tensors[static_cast<size_t>(graph_.outputs[i])];
    uint64_t bytes = graph_.value(graph_.outputs[i]).bytes();
    if (bytes > 0 && tensor.get()->data != run.outputs[i])
      std::memcpy(run.outputs[i], tensor.get()->data, bytes);
  }
  std::vector<std::vector<char>> aside;  // a new value may be another state's old one
  for (const auto& [before, after] : graph_.states) {
    const auto* data =
        static_cast<const char*>(run.tensors[static_cast<size_t>(after)].get()->data);
    aside.emplace_back(data, data + graph_.value(before).bytes());
  }
  for (size_t i = 0; i < aside.size(); ++i)
    std::memcpy(run.states[i], aside[i].data(), aside[i].size());
  return {};
}

inline Status Executable::run(StateStore* states,
                              const DLTensor* const* in,
                              uint64_t n_in,
                              const tn_outputs* outputs,
                              const tn_exec& exec) {
  if (n_in != graph_.inputs.size())
    return invalid(cat("expected ", graph_.inputs.size(), " inputs, got ", n_in));
  if (arena_.bytes > 0 && (!exec.workspace || exec.workspace_bytes < arena_.bytes))
    return {TN_FAILED_PRECONDITION,
            cat("expected a workspace of ", arena_.bytes, " bytes, got ", exec.workspace_bytes)};
  Run run{headers_, {}, {}};
  char* arena = static_cast<char*>(exec.workspace);
  for (size_t i = 0; i < headers_.size(); ++i)
    if (!is_outside_[i]) run.tensors[i].get()->data = arena + offset_[i];
  TN_CHECK(bind(run, states, in, outputs));
  const bool is_profiled = exec.flags & TN_EXEC_PROFILE;
  std::vector<uint64_t> ns(is_profiled ? steps_.size() : 0);
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    TN_CHECK(Cancel(exec.cancel).check());
    Call call{ctx_, exec.cancel, {}, {}, arena + offset_[headers_.size() + s]};
    for (int value : step.reads)
      call.in.push_back(value == kNone ? nullptr : run.tensors[static_cast<size_t>(value)].get());
    for (int value : step.writes)
      call.out.push_back(value == kNone ? nullptr : run.tensors[static_cast<size_t>(value)].get());
    uint64_t start = is_profiled ? now_ns() : 0;
    Span span(tracing(ctx_), "node", step.name);
    // A row may be anybody's: what it throws is its node's failure.
    Status done(guard([&] { return step.work(call); }));
    TN_CHECK(std::move(done).in(cat("node ", step.name, " (", step.op, ")")));
    if (is_profiled) ns[s] = now_ns() - start;
  }
  if (is_profiled) {
    std::lock_guard lock(mutex_);
    ns_ = std::move(ns);
  }
  return finish(run);
}

inline std::string Executable::describe() const {
  return cat("{\"steps\": ", steps_.size(), ", \"arena_bytes\": ", arena_.bytes,
             ", \"arena_lower_bound_bytes\": ", arena_.lower_bound,
             ", \"kernels\": ", kernel_counts(steps_), "}");
}

inline std::string Executable::profile() const {
  std::lock_guard lock(mutex_);
  size_t i = 0;
  return listed(steps_, [&](const Step& step) { return layer_text(step, ns_[i++]); });
}

}  // namespace tenon::backend
