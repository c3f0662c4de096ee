// SPDX-License-Identifier: Apache-2.0
#include "loop.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

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
        workspace_(other_[loop.n_states]),
        all_inputs_(room, loop.n_inputs()),
        all_outputs_(room + loop.n_inputs(), loop.n_outputs()),
        inputs_(room),
        outputs_(room + loop.n_inputs()),
        length_(loop.length) {
    if (loop.has_condition) read_control(other_ + loop.n_states + 1);
    std::copy_n(captured_, loop.n_captured, inputs_ + loop.n_states + loop.scanned.size());
  }

  void* workspace() const { return workspace_; }
  std::span<const void* const> inputs() const { return {all_inputs_.data(), all_inputs_.size()}; }
  std::span<void* const> outputs() const { return all_outputs_; }

  bool goes_on(int64_t iteration) const {
    return iteration < length_ && (conditions_ == nullptr || conditions_[kLeft] != 0);
  }

  // A state has two buffers, of which an iteration reads one and writes the other. Where the length
  // is known the last iteration writes the result.
  void point_at(int64_t iteration) {
    const bool to_result = writes_result(iteration);
    for (size_t i = 0; i < loop_.n_states; ++i) {
      void* before = to_result ? other_[i] : final_[i];
      inputs_[i] = iteration == 0 ? start_[i] : before;
      outputs_[i] = to_result ? final_[i] : other_[i];
    }
    point_at_slices(loop_.scanned, scanned_, inputs_ + loop_.n_states, iteration);
    point_at_slices(loop_.collected, collected_, outputs_ + loop_.n_states, iteration);
    if (conditions_ == nullptr) return;
    *iteration_ = iteration;
    conditions_[kFound] = conditions_[kLeft];
  }

  // Behind so many iterations.
  void end(int64_t n_iterations) const {
    if (n_iterations > 0 && writes_result(n_iterations - 1)) return;
    void* const* last = n_iterations == 0 ? start_ : other_;
    for (size_t i = 0; i < loop_.n_states; ++i)
      std::memcpy(final_[i], last[i], static_cast<size_t>(loop_.state_bytes[i]));
  }

 private:
  enum Condition { kFound, kLeft };

  void read_control(void* const* places) {
    const void* count = places[0];
    const void* first = places[1];
    iteration_ = static_cast<int64_t*>(places[2]);
    conditions_ = reinterpret_cast<uint8_t*>(iteration_ + 1);
    length_ = std::numeric_limits<int64_t>::max();
    if (count != nullptr) std::memcpy(&length_, count, sizeof length_);
    conditions_[kLeft] = first == nullptr || *static_cast<const uint8_t*>(first) != 0;
    *inputs_++ = iteration_;
    *inputs_++ = &conditions_[kFound];
    if (loop_.decides) *outputs_++ = &conditions_[kLeft];
  }

  bool writes_result(int64_t iteration) const { return (length_ - 1 - iteration) % 2 == 0; }

  void point_at_slices(const std::vector<Loop::Slices>& slices,
                       void* const* whole,
                       void** to,
                       int64_t iteration) const {
    for (size_t i = 0; i < slices.size(); ++i) {
      const int64_t at = slices[i].is_reversed ? length_ - 1 - iteration : iteration;
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
  void* workspace_;
  std::span<void*> all_inputs_;
  std::span<void*> all_outputs_;
  void** inputs_;   // behind those of the control
  void** outputs_;  // too
  int64_t length_;  // of a Loop, at most
  int64_t* iteration_ = nullptr;
  uint8_t* conditions_ = nullptr;  // nullptr: a Scan's
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
  request.is_cancelled = outer.is_cancelled;
  request.cancel = outer.cancel;
  request.span = outer.span;
  request.traced = outer.traced;
  Executable::Sequence body(*loop.body);
  int64_t i = 0;
  for (; iterations.goes_on(i); ++i) {
    if (outer.is_cancelled != nullptr && outer.is_cancelled(outer.cancel)) return kCancelled;
    iterations.point_at(i);
    request.repeats = i > 0;
    if (const char* error = body.run(request, where)) return error;
  }
  iterations.end(i);
  return nullptr;
}

}  // namespace tenon::onednn
