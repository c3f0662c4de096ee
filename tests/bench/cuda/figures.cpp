// SPDX-License-Identifier: Apache-2.0
// Figures of the CUDA backend, each beside what the machine can do, in one run:
//   bf16 product of 8192     by a plan, and by cuBLASLt called alone
//   pointwise chain          by a plan, and the measured bandwidth of a copy on the device
//   small MLP training step  through captured graphs, and queued
//   ResNet-50 and MiniLM     inference and training steps (model_figures.cpp)
// Usage: bench_cuda [plugin folder]. Prints one JSON object.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/tenon.h"

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/run.hpp"

#include "device/products.hpp"
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

// Milliseconds of the device's work that `queue` puts on the stream, the median of many.
Result<double> device_ms(Device& device,
                         cudaStream_t stream,
                         const std::function<Status()>& queue) {
  cudaEvent_t begin = nullptr, end = nullptr;
  TN_CHECK(device.health().check(cudaEventCreate(&begin), "an event"));
  TN_CHECK(device.health().check(cudaEventCreate(&end), "an event"));
  std::vector<double> all;
  for (int i = 0; i < kRounds + 3; ++i) {
    cudaEventRecord(begin, stream);
    TN_CHECK(queue());
    cudaEventRecord(end, stream);
    TN_CHECK(device.health().check(cudaEventSynchronize(end), "a measurement"));
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 3) all.push_back(double{ms});  // the first ones warm up
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return median(all);
}

class Bench {
 public:
  Bench(tenon_session* session, Device& device) : session_(session), device_(device) {}

  Status run(json* out) {
    TN_TRY(stream, device_.new_stream());
    stream_ = stream;
    TN_CHECK(product(out));
    TN_CHECK(chain(out));
    TN_CHECK(step(out));
    device_.free_stream(stream_);
    return {};
  }

 private:
  struct Run {
    tn_plan* plan = nullptr;
    std::vector<Tensor> inputs, outputs;
    tn_outputs out{this, [](void* self, uint64_t i, const DLTensor* proto, DLTensor* to) {
                     auto& all = static_cast<Run*>(self)->outputs;
                     return guard([&]() -> Status {
                       if (all.size() <= i) all.resize(i + 1);
                       if (!all[i]) {
                         TN_TRY(made, Tensor::zeros(tenon_host(session)->ctx, dtype_of(*proto),
                                                    shape_of(*proto)));
                         all[i] = made;
                       }
                       *to = all[i].dl();
                       return {};
                     });
                   }};
    static inline tenon_session* session = nullptr;
    ~Run() {
      if (plan) services.eval->release(plan);
    }
    Status once() {
      std::vector<DLTensor> views;
      std::vector<const DLTensor*> pointers;
      for (const Tensor& input : inputs)
        views.push_back(input.dl());
      for (const DLTensor& view : views)
        pointers.push_back(&view);
      return Status(tenon_run(plan, pointers.data(), pointers.size(), &out, nullptr));
    }
  };

  Result<std::unique_ptr<Run>> compile(const std::string& text, const std::string& options) {
    tn_ctx* ctx = tenon_host(session_)->ctx;
    Run::session = session_;
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->parse(ctx, str(text), &raw));
    OwnedGraph graph = OwnedGraph::take(raw);
    auto made = std::make_unique<Run>();
    TN_CHECK(tenon_compile(session_, raw, str(options), &made->plan));
    std::vector<Value> states = graph.view().list(TN_LIST_STATES, 0);
    for (Value input : graph.view().inputs()) {
      if (std::find(states.begin(), states.end(), input) != states.end()) continue;
      TN_TRY(tensor, Tensor::zeros(ctx, input.type().dtype, input.type().dims));
      made->inputs.push_back(tensor);
    }
    return made;
  }

  // Milliseconds of one kind of kernel in a plan's profile, the median of many runs.
  Result<double> profiled_ms(Run& run) {
    std::vector<DLTensor> views;
    std::vector<const DLTensor*> pointers;
    for (const Tensor& input : run.inputs)
      views.push_back(input.dl());
    for (const DLTensor& view : views)
      pointers.push_back(&view);
    std::vector<double> all;
    for (int i = 0; i < kRounds / 2 + 2; ++i) {
      StringSink sink;
      TN_CHECK(services.eval->profile(run.plan, pointers.data(), pointers.size(), sink.get()));
      double ns = 0;
      for (const json& layer : json::parse(sink.text))
        ns += layer["ns"].get<double>();
      if (i >= 2) all.push_back(ns / 1e6);
    }
    return median(all);
  }

  Status product(json* out) {
    constexpr int64_t kSize = 8192;
    constexpr uint64_t kBytes = uint64_t{kSize} * kSize * 2;
    Product form;
    form.dtype = form.out_dtype = TN_BF16;
    form.m = form.n = form.k = kSize;
    TN_TRY(products, Products::open(device_));
    TN_TRY(bare, products->prepare(form, false));
    TN_TRY(block, device_.allocate(3 * kBytes + kProductWorkspace, stream_, "three matrices"));
    char* at = static_cast<char*>(block);
    cudaMemsetAsync(at, 0, 3 * kBytes, stream_);
    TN_TRY(alone, device_ms(device_, stream_, [&] {
             return bare->launch(at, at + kBytes, nullptr, nullptr, at + 2 * kBytes,
                                 at + 3 * kBytes, stream_);
           }));
    device_.free(block, stream_);
    TN_TRY(run, compile("graph {\n  input %a: bf16[8192, 8192]\n  input %b: bf16[8192, 8192]\n"
                        "  %y: bf16[8192, 8192] = MatMul(%a, %b) @product\n  output y = %y\n}\n",
                        R"({"backend": "cuda"})"));
    TN_TRY(ours, profiled_ms(*run));
    double tera = 2.0 * kSize * kSize * kSize / 1e9;
    (*out)["gemm_bf16_8192"] = {{"ms", ours},
                                {"tflops", tera / ours},
                                {"cublaslt_ms", alone},
                                {"ratio", alone / ours},
                                {"wanted", 0.95}};
    return {};
  }

  Status chain(json* out) {
    constexpr uint64_t kBytes = uint64_t{256} << 20;
    TN_TRY(block, device_.allocate(2 * kBytes, stream_, "two blocks"));
    char* at = static_cast<char*>(block);
    TN_TRY(copy, device_ms(device_, stream_, [&] {
             return device_.health().check(
                 cudaMemcpyAsync(at + kBytes, at, kBytes, cudaMemcpyDeviceToDevice, stream_),
                 "a copy");
           }));
    device_.free(block, stream_);
    TN_TRY(run, compile("graph {\n  input %x: f32[67108864]\n  %a: f32[67108864] = Sigmoid(%x) @a\n"
                        "  %b: f32[67108864] = Mul(%x, %a) @b\n"
                        "  %c: f32[67108864] = Add(%b, %x) @c\n"
                        "  %y: f32[67108864] = Relu(%c) @d\n  output y = %y\n}\n",
                        R"({"backend": "cuda"})"));
    TN_TRY(ours, profiled_ms(*run));
    double moved = 2.0 * static_cast<double>(kBytes) / 1e6;
    (*out)["pointwise_chain"] = {{"ms", ours},
                                 {"gb_per_s", moved / ours},
                                 {"copy_gb_per_s", moved / copy},
                                 {"ratio", copy / ours},
                                 {"wanted", 0.8}};
    return {};
  }

  // A step of gradient descent on a net of three layers, 64 wide: all launches, little work.
  Status step(json* out) {
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
    json figures;
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
      figures[graphs ? "graph_us" : "queued_us"] = median(all);
    }
    (*out)["mlp_step"] = figures;
    return {};
  }

  tenon_session* session_;
  Device& device_;
  cudaStream_t stream_ = nullptr;
};

Status measure(tenon_session* session, json* out) {
  TN_TRY(device, Device::get(0));
  (*out)["device"] = device->info().name;
  TN_CHECK(Bench(session, *device).run(out));
  measure_models(session, &(*out)["models"]);
  return {};
}

}  // namespace
}  // namespace tenon::cuda

int main(int argc, char** argv) {
  nlohmann::json config = nlohmann::json::object(), out;
  if (argc > 1) config["plugin_path"] = {argv[1]};
  tenon_session* session = nullptr;
  tn_status* failed = tenon_open(tenon::str(config.dump()), &session);
  if (failed) {
    std::fprintf(stderr, "bench_cuda: %s\n", tenon_status_message(failed).data);
    return 1;
  }
  tenon::services.fill(*tenon_host(session));
  tenon_status_release(tenon_plugin_load(session, tenon::str("ops")));
  tenon::Status status = tenon::cuda::measure(session, &out);
  if (!status.ok()) {
    tn_status* raw = status.release();
    tenon::StringSink sink;
    tenon::Status told(tenon::services.status->text(raw, sink.get()));
    std::fprintf(stderr, "bench_cuda: %s\n", sink.text.c_str());
    return 1;
  }
  std::printf("%s\n", out.dump(2).c_str());
  tenon_close(session);
  return 0;
}
