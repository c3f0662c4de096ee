// SPDX-License-Identifier: Apache-2.0
// Figures of the CUDA backend, each beside what the machine can do, in one run:
//   bf16 product of 8192     by a plan, and by cuBLASLt called alone
//   pointwise chain          by a plan, and the measured bandwidth of a copy on the device
//   small MLP training step  through captured graphs, and queued
//   ResNet-50 and MiniLM     inference and training steps (model_figures.cpp)
// Usage: bench_cuda [plugin folder]. Prints one JSON object a line, as soon as it is measured.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/tenon.h"

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/run.hpp"

#include "device/products.hpp"
#include "device_tensors.hpp"
#include "model_figures.hpp"

namespace tenon::cuda {
namespace {

using nlohmann::json;

constexpr int kRounds = 20;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// How long the device works on what is put on a stream.
class Stopwatch {
 public:
  Stopwatch(Device& device, cudaStream_t stream) : device_(device), stream_(stream) {}
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;

  Result<double> once_ms(const std::function<Status()>& queue) {
    if (!begin_) TN_CHECK(device_.health().check(cudaEventCreate(&begin_), "an event"));
    if (!end_) TN_CHECK(device_.health().check(cudaEventCreate(&end_), "an event"));
    cudaEventRecord(begin_, stream_);
    TN_CHECK(queue());
    cudaEventRecord(end_, stream_);
    TN_CHECK(device_.health().check(cudaEventSynchronize(end_), "a measurement"));
    float ms = 0;
    cudaEventElapsedTime(&ms, begin_, end_);
    return double{ms};
  }
  // The median of many; the first ones warm up.
  Result<double> median_ms(const std::function<Status()>& queue) {
    std::vector<double> all;
    for (int i = 0; i < kRounds + 3; ++i) {
      TN_TRY(ms, once_ms(queue));
      if (i >= 3) all.push_back(ms);
    }
    return median(all);
  }

 private:
  Device& device_;
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Numbers between -1 and 1 that no two neighbours share.
Result<Tensor> noise(tn_ctx* ctx, const Type& type) {
  TN_TRY(made, Tensor::zeros(ctx, type.dtype, type.dims));
  uint32_t state = 1;
  for (int64_t i = 0; i < type.elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    float number = static_cast<float>(state >> 8) / float{1 << 23} - 1;
    if (type.rank() == 0) number *= 1e-4f;  // a learning rate
    if (type.dtype == TN_F32) made.data<float>()[i] = number;
    if (type.dtype == TN_BF16)
      made.data<uint16_t>()[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
  }
  return made;
}

class Bench {
 public:
  Bench(tenon_session* session, Device& device) : session_(session), device_(device) {}

  Status run(const Print& print) {
    TN_TRY(stream, device_.new_stream());
    stream_ = stream;
    json product, chain, step;
    TN_CHECK(measure_product(&product));
    print("gemm_bf16_8192", product);
    TN_CHECK(measure_chain(&chain));
    print("pointwise_chain", chain);
    TN_CHECK(measure_step(&step));
    print("mlp_step", step);
    device_.free_stream(stream_);
    return {};
  }

 private:
  struct Run {
    Run(tenon_session* of, Device& device) : session(of), inputs(device) {}
    tenon_session* session;
    tn_plan* plan = nullptr;
    DeviceTensors inputs;
    std::vector<Tensor> outputs;
    tn_outputs out{this, [](void* self, uint64_t i, const DLTensor* proto, DLTensor* to) {
                     auto& run = *static_cast<Run*>(self);
                     auto& all = run.outputs;
                     return guard([&]() -> Status {
                       if (all.size() <= i) all.resize(i + 1);
                       if (!all[i]) {
                         TN_TRY(made, Tensor::zeros(tenon_host(run.session)->ctx, dtype_of(*proto),
                                                    shape_of(*proto)));
                         all[i] = made;
                       }
                       *to = all[i].dl();
                       return {};
                     });
                   }};
    ~Run() {
      if (plan) services.eval->release(plan);
    }
    Status once() {
      std::vector<const DLTensor*> pointers = inputs.pointers();
      return Status(tenon_run(plan, pointers.data(), pointers.size(), &out, nullptr));
    }
  };

  Result<std::unique_ptr<Run>> compile(const std::string& text, const std::string& options) {
    tn_ctx* ctx = tenon_host(session_)->ctx;
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->parse(ctx, str(text), &raw));
    OwnedGraph graph = OwnedGraph::take(raw);
    auto made = std::make_unique<Run>(session_, device_);
    TN_CHECK(tenon_compile(session_, raw, str(options), &made->plan));
    std::vector<Value> states = graph.view().list(TN_LIST_STATES, 0);
    for (Value input : graph.view().inputs()) {
      if (std::find(states.begin(), states.end(), input) != states.end()) continue;
      TN_TRY(tensor, noise(ctx, input.type()));
      TN_CHECK(made->inputs.add(tensor));
    }
    return made;
  }

  // Milliseconds of the kernels in a plan's profile.
  static Result<double> profile_once(Run& run) {
    std::vector<const DLTensor*> pointers = run.inputs.pointers();
    StringSink sink;
    TN_CHECK(services.eval->profile(run.plan, pointers.data(), pointers.size(), sink.get()));
    double ns = 0;
    for (const json& layer : json::parse(sink.text))
      ns += layer["ns"].get<double>();
    return ns / 1e6;
  }
  // The median of many.
  Result<double> profiled_ms(Run& run) {
    std::vector<double> all;
    for (int i = 0; i < kRounds / 2 + 2; ++i) {
      TN_TRY(ms, profile_once(run));
      if (i >= 2) all.push_back(ms);
    }
    return median(all);
  }

  Status measure_product(json* out) {
    constexpr int64_t kSize = 8192;
    constexpr uint64_t kBytes = uint64_t{kSize} * kSize * 2;
    Product form;
    form.dtype = form.b_dtype = form.out_dtype = TN_BF16;
    form.m = form.n = form.k = kSize;
    TN_TRY(products, Products::open(device_));
    TN_TRY(bare, products->prepare(form, false, {}));
    TN_TRY(block, device_.allocate(kBytes + kProductWorkspace, stream_, "a matrix"));
    char* at = static_cast<char*>(block);
    TN_TRY(run, compile("graph {\n  input %a: bf16[8192, 8192]\n  input %b: bf16[8192, 8192]\n"
                        "  %y: bf16[8192, 8192] = MatMul(%a, %b) @product\n  output y = %y\n}\n",
                        R"({"backend": "cuda"})"));
    // The same numbers, in turn: how many bits flip and how warm the device is decide how fast its
    // clock may be.
    std::vector<const DLTensor*> in = run->inputs.pointers();
    Stopwatch watch(device_, stream_);
    std::vector<double> by_plan, by_itself, ratios;
    for (int i = 0; i < kRounds + 3; ++i) {
      TN_TRY(ours, profile_once(*run));
      TN_TRY(alone, watch.once_ms([&] {
        return bare->launch(in[0]->data, in[1]->data, nullptr, nullptr, at, at + kBytes, stream_);
      }));
      if (i < 3) continue;
      by_plan.push_back(ours);
      by_itself.push_back(alone);
      ratios.push_back(alone / ours);
    }
    device_.free(block, stream_);
    double tera = 2.0 * kSize * kSize * kSize / 1e9;
    *out = {{"ms", median(by_plan)},
            {"tflops", tera / median(by_plan)},
            {"cublaslt_ms", median(by_itself)},
            {"ratio", median(ratios)},
            {"wanted", 0.95}};
    return {};
  }

  Status measure_chain(json* out) {
    constexpr uint64_t kBytes = uint64_t{256} << 20;
    TN_TRY(block, device_.allocate(2 * kBytes, stream_, "two blocks"));
    char* at = static_cast<char*>(block);
    TN_TRY(copy, Stopwatch(device_, stream_).median_ms([&] {
      return device_.health().check(
          cudaMemcpyAsync(at + kBytes, at, kBytes, cudaMemcpyDeviceToDevice, stream_), "a copy");
    }));
    device_.free(block, stream_);
    TN_TRY(run, compile("graph {\n  input %x: f32[67108864]\n  %a: f32[67108864] = Sigmoid(%x) @a\n"
                        "  %b: f32[67108864] = Mul(%x, %a) @b\n"
                        "  %c: f32[67108864] = Add(%b, %x) @c\n"
                        "  %y: f32[67108864] = Relu(%c) @d\n  output y = %y\n}\n",
                        R"({"backend": "cuda"})"));
    TN_TRY(ours, profiled_ms(*run));
    double moved = 2.0 * static_cast<double>(kBytes) / 1e6;
    *out = {{"ms", ours},
            {"gb_per_s", moved / ours},
            {"copy_gb_per_s", moved / copy},
            {"ratio", copy / ours},
            {"wanted", 0.8}};
    return {};
  }

  // A step of gradient descent on a net of three layers, 64 wide: all launches, little work.
  Status measure_step(json* out) {
    std::string text = R"(graph {
  input %w0: f32[64, 64]
  input %w1: f32[64, 64]
  input %x: f32[64, 64]
  input %t: f32[64, 64]
  input %rate: f32[]
  %h: f32[64, 64] = MatMul(%x, %w0) @first
  %r: f32[64, 64] = Relu(%h) @relu
  %y: f32[64, 64] = MatMul(%r, %w1) @second
  %e: f32[64, 64] = Sub(%y, %t) @error
  %g1: f32[64, 64] = Gemm(%r, %e) {transA = 1} @grad1
  %gr: f32[64, 64] = Gemm(%e, %w1) {transB = 1} @back
  %s: f32[64, 64] = Sign(%r) @mask
  %gh: f32[64, 64] = Mul(%gr, %s) @through
  %g0: f32[64, 64] = Gemm(%x, %gh) {transA = 1} @grad0
  %d0: f32[64, 64] = Mul(%g0, %rate) @scale0
  %n0: f32[64, 64] = Sub(%w0, %d0) @update0
  %d1: f32[64, 64] = Mul(%g1, %rate) @scale1
  %n1: f32[64, 64] = Sub(%w1, %d1) @update1
  output n0 = %n0
  output n1 = %n1
  state %w0 -> %n0
  state %w1 -> %n1
}
)";
    for (bool graphs : {true, false}) {
      TN_TRY(run, compile(text, cat("{\"backend\": \"cuda\", \"graphs\": ",
                                    graphs ? "true}" : "false}")));
      std::vector<double> all;
      for (int i = 0; i < 220; ++i) {
        auto begin = std::chrono::steady_clock::now();
        TN_CHECK(run->once());
        std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        if (i >= 20) all.push_back(took.count());
      }
      (*out)[graphs ? "graph_us" : "queued_us"] = median(all);
    }
    return {};
  }

  tenon_session* session_;
  Device& device_;
  cudaStream_t stream_ = nullptr;
};

Status measure(tenon_session* session) {
  // A line each, so that a run that is cut short has printed what it measured.
  Print print = [](const std::string& name, const json& figures) {
    std::printf("%s\n", json{{name, figures}}.dump().c_str());
    std::fflush(stdout);
  };
  TN_TRY(device, Device::get(0));
  print("device", device->info().name);
  TN_CHECK(Bench(session, *device).run(print));
  measure_models(session, *device, print);
  return {};
}

}  // namespace
}  // namespace tenon::cuda

int main(int argc, char** argv) {
  nlohmann::json config = nlohmann::json::object();
  if (argc > 1) config["plugin_path"] = {argv[1]};
  tenon_session* session = nullptr;
  tn_status* failed = tenon_open(tenon::str(config.dump()), &session);
  if (failed) {
    std::fprintf(stderr, "bench_cuda: %s\n", tenon_status_message(failed).data);
    return 1;
  }
  tenon::services.fill(*tenon_host(session));
  tenon_status_release(tenon_plugin_load(session, tenon::str("ops")));
  tenon::Status status = tenon::cuda::measure(session);
  if (!status.ok()) {
    tn_status* raw = status.release();
    tenon::StringSink sink;
    tenon::Status written(tenon::services.status->text(raw, sink.get()));
    std::fprintf(stderr, "bench_cuda: %s\n", sink.text.c_str());
    return 1;
  }
  tenon_close(session);
  return 0;
}
