// SPDX-License-Identifier: Apache-2.0
// Nanoseconds that a call across the C API and a run of a plan cost when they have nothing to do:
// the least of many batches, so that other programs on the machine count little. One line of JSON.
//   bench_calls BACKEND

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>

#include "tenon/abi.h"
#include "tenon/tenon.h"

namespace {

tn_str str(std::string_view text) {
  return {text.data(), text.size()};
}

void must(tn_status* status) {
  if (!status) return;
  tn_str message = tenon_status_message(status);
  std::fprintf(stderr, "bench_calls: %.*s\n", static_cast<int>(message.len), message.data);
  std::exit(1);
}

template <class Call>
double least_ns(int calls, Call call) {
  double best = 1e30;
  for (int batch = 0; batch < 200; ++batch) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
      call();
    auto took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, std::chrono::duration<double, std::nano>(took).count() / calls);
  }
  return best;
}

float result[4];
int64_t layout[] = {4, 1};

// The one result that there is.
tn_status* give(void*, uint64_t, const DLTensor*, DLTensor* out) {
  *out = {result, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, layout, layout + 1, 0};
  return nullptr;
}

tn_plan* compile(tenon_session* session, std::string_view text, std::string_view backend) {
  const auto* graphs = static_cast<const tn_host_graph*>(
      tenon_host(session)->get_interface(tenon_host(session), str("tenon.host.graph/1")));
  tn_graph* graph = nullptr;
  must(graphs->parse(tenon_host(session)->ctx, str(text), &graph));
  std::string options = "{\"backend\": \"" + std::string(backend) + "\"}";
  tn_plan* plan = nullptr;
  must(tenon_compile(session, graph, str(options), &plan));
  graphs->release(graph);
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  const char* backend = argc > 1 ? argv[1] : "onednn";
  tenon_session* session = nullptr;
  must(tenon_open(str(""), &session));
  const auto* eval = static_cast<const tn_host_eval*>(
      tenon_host(session)->get_interface(tenon_host(session), str("tenon.host.eval/1")));
  tn_outputs outputs{nullptr, give};

  double call_ns = least_ns(10000, [] { tenon_status_release(nullptr); });
  tn_cancel* cancel = nullptr;
  double make_ns = least_ns(1000, [&] {
    must(tenon_cancel_new(session, &cancel));
    tenon_cancel_free(cancel);
  });

  tn_plan* nothing = compile(session, "graph {\n}\n", backend);
  double empty_run_ns =
      least_ns(1000, [&] { must(tenon_run(nothing, nullptr, 0, &outputs, nullptr)); });

  tn_plan* one = compile(session,
                         "graph {\n  input %x: f32[4]\n  %y: f32[4] = Neg(%x) @neg\n"
                         "  output y = %y\n}\n",
                         backend);
  float data[4] = {1, 2, 3, 4};
  DLTensor x{data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, layout, layout + 1, 0};
  const DLTensor* in[] = {&x};
  double one_node_ns = least_ns(1000, [&] { must(tenon_run(one, in, 1, &outputs, nullptr)); });

  std::printf(
      "{\"call_ns\": %.1f, \"make_and_free_ns\": %.1f, \"empty_run_ns\": %.1f, "
      "\"one_node_run_ns\": %.1f}\n",
      call_ns, make_ns, empty_run_ns, one_node_ns);
  eval->release(nothing);
  eval->release(one);
  tenon_close(session);
  return result[0] == -1 ? 0 : 1;
}
