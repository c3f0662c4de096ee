// SPDX-License-Identifier: Apache-2.0
#include "loop.hpp"

#include <algorithm>

namespace tenon::onednn {
namespace {

// Where the places of each kind begin, and what one iteration reads and writes.
class Iterations {
 public:
  Iterations(const Loop& loop, void* const* pointers, void** room)
      : loop_(loop),
        start_(pointers),
        scanned_(start_ + loop.n_states),
        captured_(scanned_ + loop.scanned.size()),
        final_(captured_ + loop.n_captured),
        collected_(final_ + loop.n_states),
        other_(collected_ + loop.collected.size()),
        inputs_(room),
        outputs_(room + loop.n_inputs()) {
    std::copy_n(captured_, loop.n_captured, inputs_ + loop.n_states + loop.scanned.size());
  }

  void* workspace() const { return other_[loop_.n_states]; }
  std::span<const void* const> inputs() const { return {inputs_, loop_.n_inputs()}; }
  std::span<void* const> outputs() const { return {outputs_, loop_.n_outputs()}; }

  // A state has two buffers, of which an iteration reads one and writes the other: the last one
  // writes the result.
  void point_at(int64_t iteration) {
    const bool writes_result = (loop_.length - 1 - iteration) % 2 == 0;
    for (size_t i = 0; i < loop_.n_states; ++i) {
      void* before = writes_result ? other_[i] : final_[i];
      inputs_[i] = iteration == 0 ? start_[i] : before;
      outputs_[i] = writes_result ? final_[i] : other_[i];
    }
    point_at_slices(loop_.scanned, scanned_, inputs_ + loop_.n_states, iteration);
    point_at_slices(loop_.collected, collected_, outputs_ + loop_.n_states, iteration);
  }

 private:
  void point_at_slices(const std::vector<Loop::Slices>& slices,
                       void* const* whole,
                       void** to,
                       int64_t iteration) const {
    for (size_t i = 0; i < slices.size(); ++i) {
      const int64_t at = slices[i].is_reversed ? loop_.length - 1 - iteration : iteration;
      to[i] = static_cast<char*>(whole[i]) + at * slices[i].bytes;
    }
  }

  const Loop& loop_;
  void* const* start_;
  void* const* scanned_;
  void* const* captured_;
  void* const* final_;
  void* const* collected_;
  void* const* other_;
  void** inputs_;
  void** outputs_;
};

}  // namespace

const char* run_loop(const Loop& loop,
                     void* const* pointers,
                     void** room,
                     const RunRequest& outer,
                     const Step** where) {
  Iterations iterations(loop, pointers, room);
  RunRequest request;
  request.inputs = iterations.inputs();
  request.outputs = iterations.outputs();
  request.workspace = iterations.workspace();
  request.parallel = outer.parallel;
  request.span = outer.span;
  request.traced = outer.traced;
  for (int64_t i = 0; i < loop.length; ++i) {
    if (outer.is_cancelled != nullptr && outer.is_cancelled(outer.cancel)) return kCancelled;
    iterations.point_at(i);
    request.repeats = i > 0;
    if (const char* error = loop.body->run(request, where)) return error;
  }
  return nullptr;
}

}  // namespace tenon::onednn
