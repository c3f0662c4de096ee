// SPDX-License-Identifier: Apache-2.0
#include "convolutions.hpp"

#include <map>

#include "convolution_graph.hpp"

namespace tenon::cuda {
namespace {

// What all convolutions of a device share: the handle belongs to one thread at a time.
struct Handle {
  const Cudnn* cudnn;
  cudnnHandle_t raw = nullptr;
  std::mutex mutex;
  ~Handle() {
    if (raw) cudnn->handle_free(raw);
  }
};

class GraphConvolution : public PreparedConvolution {
 public:
  GraphConvolution(Device& device,
                   std::shared_ptr<Handle> handle,
                   std::shared_ptr<const ConvolutionGraph> graph)
      : device_(device), handle_(std::move(handle)), graph_(std::move(graph)) {}

  uint64_t workspace_bytes() const override { return graph_->workspace_bytes(); }

  Status launch(const void* x,
                const void* w,
                const void* bias,
                const void* z,
                const void* y,
                void* workspace,
                cudaStream_t stream) override {
    std::lock_guard lock(handle_->mutex);
    const Cudnn& cudnn = *handle_->cudnn;
    TN_CHECK(cudnn.check(cudnn.set_stream(handle_->raw, stream), "a stream"));
    Status status = graph_->execute(handle_->raw, {x, w, bias, z, y, workspace});
    if (!status.ok()) TN_CHECK(device_.health().check(cudaPeekAtLastError(), "a convolution"));
    return status;
  }

 private:
  Device& device_;
  std::shared_ptr<Handle> handle_;
  std::shared_ptr<const ConvolutionGraph> graph_;
};

class GraphConvolutions : public Convolutions {
 public:
  GraphConvolutions(Device& device, std::shared_ptr<Handle> handle, Descriptor profile)
      : device_(device), handle_(std::move(handle)), profile_(std::move(profile)) {}

  Result<std::unique_ptr<PreparedConvolution>> prepare(const Convolution& convolution,
                                                       bool tf32) override {
    TN_CHECK(device_.select());
    std::lock_guard lock(mutex_);
    auto [found, is_new] = known_.try_emplace(cat(form_of(convolution), tf32));
    Known& known = found->second;
    if (is_new) {
      Result<ConvolutionGraph> made =
          ConvolutionGraph::make(*handle_->cudnn, convolution, tf32, profile_);
      if (made.ok()) {
        known.graph = std::make_shared<ConvolutionGraph>(std::move(*made));
      } else {
        known.why_none = made.status().text();
      }
    }
    if (!known.graph) return unsupported(known.why_none);
    return std::unique_ptr<PreparedConvolution>(
        std::make_unique<GraphConvolution>(device_, handle_, known.graph));
  }

 private:
  struct Known {
    std::shared_ptr<const ConvolutionGraph> graph;
    std::string why_none;
  };
  Device& device_;
  std::shared_ptr<Handle> handle_;
  Descriptor profile_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by form; claims ask for each more than once
};

}  // namespace

Result<std::unique_ptr<Convolutions>> Convolutions::open(Device& device,
                                                         const std::string& library) {
  TN_TRY(cudnn, Cudnn::get(library));
  TN_CHECK(device.select());
  auto handle = std::make_shared<Handle>();
  handle->cudnn = cudnn;
  TN_CHECK(cudnn->check(cudnn->handle_new(&handle->raw), "a handle"));
  TN_TRY(profile, cudnn_device(*cudnn, device.info().id));
  return std::unique_ptr<Convolutions>(
      std::make_unique<GraphConvolutions>(device, std::move(handle), std::move(profile)));
}

}  // namespace tenon::cuda
