// SPDX-License-Identifier: Apache-2.0
// ResNet-50 with random weights through the oneDNN backend's compiler: milliseconds per run.
//   bench_onednn_resnet50 fp32|bf16|int8 [batch] [threads] [layers]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "executable.hpp"
#include "plugins/onednn/graph_builder.hpp"

using namespace tenon::onednn;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

int main(int argc, char** argv) {
  std::string precision = argc > 1 ? argv[1] : "fp32";
  int64_t batch = argc > 2 ? std::atoi(argv[2]) : 1;
  int threads = argc > 3 ? std::atoi(argv[3]) : 2;
  test::GraphBuilder builder(1, precision == "int8");
  test::build_resnet50(builder, batch);
  WeightStore store;
  Clock::time_point begin = Clock::now();
  CompileOptions options{.bf16 = precision == "bf16", .threads = threads};
  Executable exe(builder.graph, options, store);
  double compile_ms = since(begin);
  std::shared_ptr<void> x = aligned_bytes(batch * 3 * 224 * 224 * 4);
  std::shared_ptr<void> y = aligned_bytes(batch * 1000 * 4);
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  for (int64_t i = 0; i < batch * 3 * 224 * 224; ++i) {
    static_cast<float*>(x.get())[i] = static_cast<float>(i % 255) / 128.0F - 1.0F;
  }
  const void* inputs[] = {x.get()};
  void* outputs[] = {y.get()};
  std::vector<uint64_t> step_ns(exe.plan().steps.size());
  RunRequest request{.inputs = inputs, .outputs = outputs, .workspace = workspace.get()};
  std::vector<double> times;
  std::vector<uint64_t> best(step_ns.size(), UINT64_MAX);
  for (int i = 0; i < 30; ++i) {
    begin = Clock::now();
    exe.run(request);
    times.push_back(since(begin));
    request.step_ns = &step_ns;
    exe.run(request);
    request.step_ns = nullptr;
    for (size_t k = 0; k < best.size(); ++k)
      best[k] = std::min(best[k], step_ns[k]);
  }
  std::sort(times.begin(), times.end());
  double total = 0;
  for (size_t k = 0; k < best.size(); ++k) {
    const Step& step = exe.plan().steps[k];
    total += static_cast<double>(best[k]) / 1e6;
    if (argc > 4) {
      std::printf("%-60.60s %-28s %8.3f ms %7.1f G/s\n", step.name.c_str(), step.kernel.c_str(),
                  static_cast<double>(best[k]) / 1e6, step.flops / static_cast<double>(best[k]));
    }
  }
  std::printf(
      "%s batch %lld: min %.3f ms, median %.3f, sum of best steps %.3f; compile %.0f ms; "
      "%zu steps, %d reorders; arena %.2f MB, %.3f of the bound; out[0] %g\n",
      precision.c_str(), static_cast<long long>(batch), times.front(), times[times.size() / 2],
      total, compile_ms, exe.plan().steps.size(), exe.plan().n_reorders,
      static_cast<double>(exe.arena().bytes) / 1e6,
      static_cast<double>(exe.arena().bytes) / static_cast<double>(exe.arena().lower_bound),
      static_cast<double>(static_cast<float*>(y.get())[0]));
}
