// SPDX-License-Identifier: Apache-2.0
// The backend "cuda": see README.md. This file is the ABI's side of it.

#include <algorithm>
#include <map>
#include <memory>

#include "tenon/sdk/backend/device.hpp"
#include "tenon/sdk/backend/report.hpp"
#include "tenon/sdk/backend/states.hpp"

#include "device/executable.hpp"
#include "device/has_cudnn.hpp"
#include "handlers/handlers.hpp"
#include "library.hpp"
#include "lowering.hpp"

namespace tenon::cuda {
namespace {

// What one device needs to run plans, made when first asked for.
struct Workshop {
  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Products> products;
  std::unique_ptr<Convolutions> convolutions;
};

template <class Work>
bool has(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [](const Step& step) { return std::holds_alternative<Work>(step.work); });
}

}  // namespace

class Cuda {
 public:
  static Result<Cuda> create(tn_ctx* ctx, const Options& options) {
    Cuda made;
    made.ctx_ = ctx;
    made.own_->cublaslt = options.has("cublaslt") ? options.text("cublaslt") : kCublasltLibrary;
    made.own_->cudnn = options.has("cudnn") ? options.text("cudnn") : kCudnnLibrary;
    made.own_->folder = options.has("kernel_cache") ? options.text("kernel_cache") : "default";
    made.device_ = options.integer("device", -1);
    made.tf32_ = options.text("precision", "fp32") == "tf32";
    return Result<Cuda>(std::move(made));
  }

  Status devices(Sink& out) { return out.write(devices_json(find_devices(), device_)); }

  Status prepare(Sink& out) { return out.write("fusion.default\n"); }

  Status claim(const tn_graph* graph, int32_t device, const tn_claims& claims) {
    TN_TRY(imported, import_graph(graph));
    Target target = target_on(device);
    for (size_t i = 0; i < imported.nodes.size(); ++i) {
      tn_node_id id = imported.nodes[i].source.id;
      std::string why = why_not(imported, static_cast<int>(i), target);
      if (why.empty()) {
        claims.take(claims.ctx, &id, 1);
      } else {
        claims.refuse(claims.ctx, id, str(why));
      }
    }
    return {};
  }

  Result<void*> compile(const tn_graph* part, int32_t device, const Options& options) {
    TN_TRY(gpu, Device::get(device));
    ExecutableOptions how{tf32_, !options.has("graphs") || options.flag("graphs"),
                          reinterpret_cast<cudaStream_t>(options.integer("input_stream", 0))};
    Target target = target_on(device);
    target.architecture = gpu->info().architecture;
    TN_TRY(imported, import_graph(part));
    TN_TRY(plan, lower(imported, target));
    TN_TRY(tools, tools_for(device, has<Product>(plan), has<Convolution>(plan)));
    TN_TRY(made, Executable::make(*gpu, std::move(plan), tools, how));
    return static_cast<void*>(made.release());
  }

  // The arena comes from the allocator, in the order of the run's stream.
  uint64_t workspace(void*) { return 0; }

  Status run(void* exe,
             void* state,
             const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec* exec) {
    if (exec->cancel && services.cancel->requested(exec->cancel))
      return {TN_CANCELLED, "cancelled"};
    return of_exe(exe).run(static_cast<State*>(state), in, n_in, outputs, exec);
  }
  void exe_free(void* exe) { delete static_cast<Executable*>(exe); }

  Status describe(void* exe, Sink& out) {
    const Executable& of = of_exe(exe);
    return out.write(
        cat("{\"steps\": ", of.plan().steps.size(), ", \"arena_bytes\": ", of.arena_bytes(),
            ", \"arena_lower_bound_bytes\": ", of.plan().arena_lower_bound, ", \"peak_step\": ",
            backend::json_text(of.plan().peak_step), ", \"graphs\": ", of.graphs_captured(),
            ", \"kernels\": ", backend::kernel_counts(of.plan().steps),
            ", \"notes\": ", backend::listed(of.plan().notes, backend::json_text), "}"));
  }

  Status profile(void* exe, Sink& out) {
    const Executable& of = of_exe(exe);
    std::vector<uint64_t> ns = of.step_ns();
    std::string text = "[";
    for (size_t i = 0; i < ns.size(); ++i) {
      const Step& step = of.plan().steps[i];
      text += cat(i == 0 ? "" : ", ", backend::layer_text(step, ns[i]));
    }
    return out.write(text + "]");
  }

  // What backend/device.hpp and backend/states.hpp make functions of the table.
  Result<void*> alloc(int32_t id, uint64_t bytes) {
    TN_TRY(device, Device::get(id));
    return device->allocate(bytes, nullptr, "a value");
  }
  Status free(int32_t id, void* memory, Event* after) {
    TN_TRY(device, Device::get(id));
    // What a kernel complained of stays for who synchronizes.
    if (after) Status late = device->health().check(cudaEventSynchronize(after->raw), "a run");
    device->free(memory, nullptr);
    return {};
  }
  Status copy(const DLTensor& src, DLTensor& dst, const tn_exec& exec);
  Result<cudaStream_t> new_stream(int32_t id) {
    TN_TRY(device, Device::get(id));
    return device->new_stream();
  }
  void free_stream(cudaStream_t stream) {
    Result<Device*> device = device_with(stream);
    if (device.ok()) (*device)->free_stream(stream);
  }
  void* native_stream(cudaStream_t stream, std::string_view kind) {
    return kind == "cuda" ? stream : nullptr;
  }
  Result<Event*> record(cudaStream_t stream) {
    TN_TRY(device, device_with(stream));
    return device->record(stream);
  }
  Status wait(cudaStream_t stream, Event* event) { return event->device->wait(stream, *event); }
  Status sync(Event* event, uint64_t timeout_ns) {
    return event->device->synchronize(*event, timeout_ns);
  }
  void free_event(Event* event) { event->device->free_event(event); }
  Result<State*> new_state(int32_t id) {
    TN_TRY(device, Device::get(id));
    return new State(*device);
  }

  static tn_backend table();

 private:
  Target target_on(int32_t device) {
    Target target{ctx_};
    target.why_no_product = [this, device](const Product& form) {
      if (std::string why = why_no_cublaslt(own_->cublaslt); !why.empty()) return why;
      Result<Tools> tools = tools_for(device, true, false);
      if (!tools.ok()) return reason_of(tools.status());
      auto plan = tools->products->prepare(form, tf32_, kLeastAligned);
      return plan.ok() ? "" : reason_of(plan.status());
    };
    target.why_no_convolution = [this, device](const Convolution& form) {
      if (std::string why = why_no_cudnn(own_->cudnn); !why.empty()) return why;
      Result<Tools> tools = tools_for(device, false, true);
      if (!tools.ok()) return reason_of(tools.status());
      auto plan = tools->convolutions->prepare(form, tf32_);
      return plan.ok() ? "" : reason_of(plan.status());
    };
    return target;
  }

  // Behind a pointer, so that a Cuda can be moved.
  struct Own {
    std::mutex mutex;
    std::string cublaslt, cudnn;  // the libraries; empty: none
    std::string folder;           // of compiled kernels
    std::map<int32_t, Workshop> shops;
    Weights weights;
  };

  static Result<Device*> device_with(cudaStream_t stream) {
    Health unknown;  // the device's own is not known before the stream has answered
    TN_TRY(id, device_of_stream(stream, unknown));
    return Device::get(id);
  }
  static Executable& of_exe(void* exe) { return *static_cast<Executable*>(exe); }

  // Products and convolutions are there where they are asked for; others may be.
  Result<Tools> tools_for(int32_t id, bool has_products, bool has_convolutions) {
    TN_TRY(device, Device::get(id));
    std::lock_guard lock(own_->mutex);
    Workshop& shop = own_->shops[id];
    if (!shop.kernels) {
      tn_ctx* ctx = ctx_;
      std::string folder = own_->folder == "default" ? KernelCache::default_folder() : own_->folder;
      KernelCache cache(folder, [ctx](const std::string& note) {
        services.log->write(ctx, TN_LOG_WARNING, str(note));
      });
      shop.kernels = std::make_unique<Kernels>(*device, std::move(cache));
    }
    if (has_products && !shop.products) {
      TN_TRY(opened, Products::open(*device, own_->cublaslt));
      shop.products = std::move(opened);
    }
    if (has_convolutions && !shop.convolutions) {
      TN_TRY(opened, Convolutions::open(*device, own_->cudnn));
      shop.convolutions = std::move(opened);
    }
    return Tools{shop.kernels.get(), shop.products.get(), shop.convolutions.get(), &own_->weights};
  }

  tn_ctx* ctx_ = nullptr;
  int64_t device_ = -1;  // the only one to use; -1: the first that can be used
  bool tf32_ = false;
  std::unique_ptr<Own> own_ = std::make_unique<Own>();
};

Status Cuda::copy(const DLTensor& src, DLTensor& dst, const tn_exec& exec) {
  bool from_device = src.device.device_type == kDLCUDA;
  bool to_device = dst.device.device_type == kDLCUDA;
  TN_TRY(device, Device::get(from_device ? src.device.device_id : dst.device.device_id));
  if (from_device && to_device && src.device.device_id != dst.device.device_id)
    return unsupported("cuda: a copy between two devices goes through the CPU");
  uint64_t bytes = bytes_of(dtype_of(src), element_count(src));
  auto queue = [&](cudaStream_t on) -> Status {
    for (uint64_t i = 0; i < exec.wait_count; ++i)
      TN_CHECK(device->wait(on, *static_cast<Event*>(exec.wait_events[i])));
    TN_CHECK(
        device->copy(data_of<void>(src), from_device, data_of<void>(dst), to_device, bytes, on));
    if (!exec.out_done) return {};
    TN_TRY(done, device->record(on));
    *exec.out_done = done;
    return {};
  };
  if (auto stream = static_cast<cudaStream_t>(exec.stream)) {
    TN_CHECK(device->check_stream(stream));
    return queue(stream);
  }
  TN_TRY(own, device->new_stream());
  Status status = queue(own);
  Status done = device->health().check(cudaStreamSynchronize(own), "a copy");
  device->free_stream(own);
  return status.ok() ? std::move(done) : std::move(status);
}

tn_backend Cuda::table() {
  tn_backend t = BackendRole<Cuda>::cpu_table();
  backend::add_device<Cuda, std::remove_pointer_t<cudaStream_t>, Event>(t);
  backend::add_states<Cuda, State>(t);
  return t;
}

}  // namespace tenon::cuda

TENON_BACKEND(cuda,
              tenon::cuda::Cuda,
              "cuda",
              "NVIDIA GPUs: cuBLASLt, kernels of our own, pointwise groups compiled by NVRTC",
              R"({"properties": {
  "precision": {"type": "string", "enum": ["fp32", "tf32"], "default": "fp32",
                "description": "how products of float32 are computed; other types are computed as they are"},
  "device": {"type": "integer", "minimum": 0,
             "description": "number of the GPU to run on, as `tenon plugin doctor` lists them; default: the first that can be used"},
  "cublaslt": {"type": "string", "default": "libcublasLt.so.13",
               "description": "the cuBLASLt library, by name or path; empty: none. Without it products fall back to another backend"},
  "cudnn": {"type": "string", "default": "libcudnn.so.9",
            "description": "the cuDNN library, by name or path; empty: none. Without it convolutions fall back to another backend"},
  "graphs": {"type": "boolean", "default": true,
             "description": "capture a run as a CUDA graph when it comes again with the same memory"},
  "input_stream": {"type": "integer", "minimum": 0, "default": 0,
                   "description": "inputs that lie on the device are ready when the work on this stream is: a cudaStream_t as a number, 1 the default stream, 2 that of the thread, as DLPack counts; 0: they are ready"},
  "kernel_cache": {"type": "string",
                   "description": "folder of compiled kernels; empty: none is kept; default: tenon/cuda in the user's cache folder"}}})")
