// SPDX-License-Identifier: Apache-2.0
#pragma once
// What running code uses: sinks to write text to, outputs to request, cancel requests, the host's
// threads, progress, and files out.

#include <atomic>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>

#include "tenon/sdk/tensor.hpp"

namespace tenon {

class Sink {
 public:
  explicit Sink(const tn_sink* raw) : raw_(raw) {}
  Status write(std::string_view text) {
    if (!raw_ || !raw_->write) return {};
    return Status(raw_->write(raw_->ctx, text.data(), text.size()));
  }

 private:
  const tn_sink* raw_;
};

class Outputs {
 public:
  explicit Outputs(const tn_outputs* raw) : raw_(raw) {}
  // Dense CPU memory for result i.
  Result<DLTensor> get(uint64_t i, uint32_t dtype, std::span<const int64_t> shape) const {
    DLTensor out{};
    TN_CHECK(raw_->get(raw_->ctx, i, DenseView(dtype, shape).get(), &out));
    return out;
  }
  const tn_outputs* raw() const { return raw_; }

 private:
  const tn_outputs* raw_;
};

class Cancel {
 public:
  explicit Cancel(const tn_cancel* raw) : raw_(raw) {}
  bool requested() const { return services.cancel->requested(raw_) != 0; }
  Status check() const { return requested() ? Status(TN_CANCELLED, "cancelled") : Status(); }
  const tn_cancel* raw() const { return raw_; }

 private:
  const tn_cancel* raw_;
};

// body(begin, end) on ranges that cover 0..n, none of them twice. What a range throws is thrown
// here, the first if many do; ranges that have not begun by then are left out.
template <class Body>
void parallel_for(tn_ctx* ctx, uint64_t n, uint64_t grain, Body&& body) {
  struct Loop {
    std::remove_reference_t<Body>& body;
    std::atomic<bool> begun{false}, failed{false};
    std::exception_ptr thrown{};
  } loop{body};
  auto call = [](void* arg, uint64_t begin, uint64_t end) {
    auto& all = *static_cast<Loop*>(arg);
    all.begun = true;
    if (all.failed) return;
    try {
      all.body(begin, end);
    } catch (...) {
      if (!all.failed.exchange(true)) all.thrown = std::current_exception();
    }
  };
  Status failed(services.parallel->run(ctx, n, grain, call, &loop));
  const bool untouched = !failed.ok() && !loop.begun;
  if (untouched) call(&loop, 0, n);  // no threads to be had: do it here
  if (loop.thrown) std::rethrow_exception(loop.thrown);
  if (!failed.ok() && !untouched)
    throw std::runtime_error("parallel_for: the host gave up halfway");
}

// Progress of one task; ends when it goes out of scope.
class Progress {
 public:
  Progress(tn_ctx* ctx, std::string_view title, uint64_t total)
      : ctx_(ctx), task_(services.progress->begin(ctx, str(title), total)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { services.progress->end(ctx_, task_); }
  void update(uint64_t done) { services.progress->update(ctx_, task_, done); }

 private:
  tn_ctx* ctx_;
  uint64_t task_;
};

inline void log_line(tn_ctx* ctx, uint32_t level, std::string_view message) {
  services.log->write(ctx, level, str(message));
}

}  // namespace tenon
