// SPDX-License-Identifier: Apache-2.0
#include "behind.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <signal.h>
#include <sys/time.h>

#include "tenon/role/dataset.h"

#include "tenon/sdk/collected.hpp"
#include "tenon/sdk/component.hpp"

#include "mutants/mutation.hpp"

namespace tenon::fuzz {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 16;  // of one input
constexpr std::string_view kOptions = R"({"backend": "reference", "max_value_bytes": 16777216})";

// How far inputs came, reported when the process ends.
struct Counts {
  uint64_t read = 0, compiled = 0, ran = 0;
  ~Counts() {
    std::printf("%llu read, %llu compiled or opened, %llu run\n",
                static_cast<unsigned long long>(read), static_cast<unsigned long long>(compiled),
                static_cast<unsigned long long>(ran));
  }
};
Counts counts;
tn_cancel* cancel = nullptr;

void stop(int) {
  if (cancel) tenon_cancel_request(cancel);
}

// Asks a run to stop that takes too long, as Ctrl-C does.
class Clock {
 public:
  explicit Clock(tenon_session* session) {
    if (tenon_cancel_new(session, &cancel)) std::abort();
    signal(SIGVTALRM, stop);
    set(1);
  }
  Clock(const Clock&) = delete;
  ~Clock() {
    set(0);
    tenon_cancel_free(std::exchange(cancel, nullptr));
  }

 private:
  static void set(time_t seconds) {
    itimerval limit{};
    limit.it_value.tv_sec = seconds;
    setitimer(ITIMER_VIRTUAL, &limit, nullptr);
  }
};

void fill_services(tenon_session* session) {
  static const bool is_filled = services.fill(*tenon_host(session)).empty();
  if (!is_filled) std::abort();
}

Result<std::vector<Tensor>> numbers_for(tn_ctx* ctx, Graph graph) {
  Random random(1);
  std::vector<Tensor> out;
  for (Value input : graph.inputs()) {
    Type type = input.type();
    if (type.kind != TN_KIND_TENSOR || !type.ranked) return invalid("an input that is no tensor");
    int64_t n = 1;
    for (int64_t& dim : type.dims) {
      if (dim < 0) dim = 2;
      if (__builtin_mul_overflow(n, dim, &n) || n > kMostElements) return invalid("too large");
    }
    TN_TRY(tensor, filled(ctx, type, random));
    out.push_back(tensor);
  }
  return Result<std::vector<Tensor>>(std::move(out));
}

Status run(tenon_session* session, tn_plan* plan, const tn_graph* graph) {
  tn_ctx* ctx = tenon_host(session)->ctx;
  TN_TRY(inputs, numbers_for(ctx, Graph{graph}));
  std::vector<DLTensor> views;
  for (const Tensor& tensor : inputs)
    views.push_back(tensor.dl());
  std::vector<const DLTensor*> in;
  for (const DLTensor& one : views)
    in.push_back(&one);
  Collected results(ctx, Graph{graph}.outputs().size());
  Clock clock(session);
  TN_CHECK(tenon_run(plan, in.data(), in.size(), results.outputs(), cancel));
  ++counts.ran;
  return {};
}

}  // namespace

void compile_and_run(tenon_session* session, const tn_graph* graph) {
  fill_services(session);
  ++counts.read;
  tn_plan* plan = nullptr;
  if (!Status(tenon_compile(session, graph, str(kOptions), &plan)).ok()) return;
  ++counts.compiled;
  Status refused = run(session, plan, graph);
  services.eval->release(plan);
}

void read_samples(tenon_session* session, const std::string& component, const std::string& path) {
  fill_services(session);
  tn_ctx* ctx = tenon_host(session)->ctx;
  std::string options = cat(R"({"path": ")", path, "\"}");
  Result<Component> made = Component::create(ctx, "tenon.dataset/1", component, options);
  if (!made.ok()) return;
  ++counts.read;
  const auto* data = made->table<tn_dataset>();
  uint64_t size = data->size(made->self());
  if (size == 0 || size == TN_SIZE_UNKNOWN) return;
  ++counts.compiled;
  std::string fields;
  tn_sink sink{&fields, [](void* to, const void* bytes, uint64_t n) -> tn_status* {
                 static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), n);
                 return nullptr;
               }};
  Status report(data->fields(made->self(), &sink));
  Collected results(ctx, static_cast<size_t>(std::count(fields.begin(), fields.end(), '{')));
  uint64_t index[] = {0, size - 1};
  Status read(data->batch(made->self(), index, 2, 1, results.outputs()));
  counts.ran += read.ok();
}

}  // namespace tenon::fuzz
