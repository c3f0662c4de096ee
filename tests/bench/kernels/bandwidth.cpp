// SPDX-License-Identifier: Apache-2.0
// The roofline's measuring stick, the benchmark's own pool, and main.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "bench.h"

namespace tenon::onednn::kernels::bench {

namespace {

class Pool {
 public:
  explicit Pool(int n_threads) {
    for (int i = 1; i < n_threads; ++i)
      threads_.emplace_back([this] { work(); });
  }
  ~Pool() {
    stop_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread& thread : threads_)
      thread.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(uint64_t n, uint64_t grain, Parallel::Body body, void* arg) {
    body_ = body;
    arg_ = arg;
    n_ = n;
    const uint64_t pieces = (threads_.size() + 1) * 4;
    step_ = std::max<uint64_t>({grain, (n + pieces - 1) / pieces, 1});
    next_ = 0;
    busy_ = static_cast<int>(threads_.size());
    round_.fetch_add(1);
    round_.notify_all();
    drain();
    while (busy_.load() != 0) {
    }
  }

 private:
  void drain() {
    for (uint64_t lo = next_.fetch_add(step_); lo < n_; lo = next_.fetch_add(step_)) {
      body_(arg_, lo, std::min(n_, lo + step_));
    }
  }
  void work() {
    for (uint64_t seen = 0;;) {
      for (int spin = 0; round_.load() == seen && spin < 20000; ++spin) {
      }
      round_.wait(seen);
      seen = round_.load();
      if (stop_) return;
      drain();
      busy_.fetch_sub(1);
    }
  }
  std::vector<std::thread> threads_;
  std::atomic<uint64_t> round_{0};
  std::atomic<uint64_t> next_{0};
  std::atomic<int> busy_{0};
  std::atomic<bool> stop_{false};
  Parallel::Body body_ = nullptr;
  void* arg_ = nullptr;
  uint64_t n_ = 0;
  uint64_t step_ = 1;
};

}  // namespace

Parallel pool(int n_threads) {
  if (n_threads <= 1) return {};
  static std::map<int, std::unique_ptr<Pool>> pools;
  std::unique_ptr<Pool>& slot = pools[n_threads];
  if (!slot) slot = std::make_unique<Pool>(n_threads);
  return {[](void* self, uint64_t n, uint64_t grain, Parallel::Body body, void* arg) {
            static_cast<Pool*>(self)->run(n, grain, body, arg);
          },
          slot.get()};
}

Buffer::Buffer(int64_t n_floats, float low, float high)
    : data_(static_cast<float*>(
          std::aligned_alloc(64, static_cast<uint64_t>(n_floats + 15) / 16 * 64))) {
  if (data_ == nullptr) throw std::bad_alloc();
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> distribution(low, high);
  for (int64_t i = 0; i < n_floats; ++i)
    data_[i] = distribution(random);
}
Buffer::~Buffer() {
  std::free(data_);
}

double bandwidth(int64_t bytes, int n_threads) {
  static std::map<std::pair<int64_t, int>, double> measured;
  double& best = measured[{bytes, n_threads}];
  if (best > 0) return best;
  const int64_t n = bytes / 8;
  Buffer src(n, 0, 1);
  Buffer dst(n, 0, 1);
  const int repeats = static_cast<int>(std::max<int64_t>(5, (int64_t{512} << 20) / bytes));
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(pool(n_threads), n, kGrainBytes / 8, [&](int64_t lo, int64_t hi) {
      const float* from = src.data();
      float* to = dst.data();
      for (int64_t k = lo; k < hi; ++k)
        to[k] = from[k] + 1.0F;
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(bytes) / took.count());
  }
  return best;
}

}  // namespace tenon::onednn::kernels::bench

BENCHMARK_MAIN();
