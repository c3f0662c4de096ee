// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches that are prepared by a thread of their own while the step before them runs.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon::trainer {

class Ahead {
 public:
  // Called for the batches first, first + 1, ... end - 1 in order, one at a time, by one thread.
  using Make = std::function<Result<std::vector<Tensor>>(uint64_t batch)>;

  Ahead(Make make, uint64_t first, uint64_t end);
  Ahead(const Ahead&) = delete;
  ~Ahead();

  // Batch first, then first + 1, and so on. What went wrong with a batch is said where it is
  // wanted; so is a batch from `end` on, of which there is none.
  Result<std::vector<Tensor>> next();
  double seconds_waited() const { return seconds_waited_; }

 private:
  void work();
  void prepare();

  Make make_;
  uint64_t at_, end_;  // of the thread; of the caller where there is none
  std::mutex mutex_;   // guards ready_, stops_ and ended_
  std::condition_variable is_ready_, has_room_;
  std::deque<Result<std::vector<Tensor>>> ready_;
  bool stops_ = false, ended_ = false;  // the thread is to end; it has
  double seconds_waited_ = 0;
  std::thread thread_;
};

}  // namespace tenon::trainer
