// SPDX-License-Identifier: Apache-2.0
#pragma once
// What compiling makes: buffers, and steps that read and write them. A step is a oneDNN primitive
// or one of our kernels with everything that it needs already made; running only fills in
// addresses.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "tenon/sdk/backend/arena.hpp"

#include "kernels/context.h"
#include "kernels/pointwise.h"
#include "view.hpp"

namespace tenon::onednn {

struct Buffer {
  enum class Kind : uint8_t { kArena, kInput, kOutput, kState, kConstant };
  Kind kind = Kind::kArena;
  int64_t bytes = 0;
  int index = 0;               // of the input, output or state
  const void* data = nullptr;  // constants
  std::shared_ptr<const void> keeper =
      {};                    // keeps packed constants alive, shared between executables
  int64_t arena_offset = 0;  // set by lay_out_arena
};

struct Place {  // an address that is known when a run starts
  int buffer = kNone;
  int64_t offset = 0;  // in bytes
};

struct Argument {  // of a primitive
  int id = 0;      // DNNL_ARG_*
  Place place;
  dnnl::memory::desc desc;
};

// pointers: the step's places, in order; nullptr where a place has no buffer. Called concurrently
// by runs of other threads. Returns what is wrong with the data ("index 7 of 5 rows"), or nullptr.
using KernelFunction = std::function<const char*(const kernels::Context&, void* const* pointers)>;

// Which of an operator's implementations computes a node, and why those in front of it in the
// operator's list do not.
struct Refusal {
  std::string implementation;
  std::string why;
};
constexpr const char* kLeftOut = "the option `without` names it";

// What a run of a node took in an implementation that was measured.
struct Timed {
  std::string implementation;
  int64_t ns = 0;
};

struct Choice {
  std::string implementation;
  std::vector<Refusal> refusals;
  // Of a node that has rivals (implementations/rivals): under which key the decision is kept, for
  // which of them it is, and the times that decided; without times the rules did.
  std::string key = {};
  std::string decided = {};
  std::vector<Timed> measured = {};
};

class Executable;

// Of a Loop's iteration and of its condition, as an iteration finds it and as it leaves it.
constexpr int64_t kLoopControlBytes = 16;

// What a step does that repeats a plan of its own, as a Scan or a Loop does. The body's inputs are
// states, slices of what is scanned, and what is captured; its outputs are states and slices of
// what is collected. Places of the step: the first states, scanned, captured; the last states,
// collected; then another buffer for each state and the body's workspace. A Loop's body has inputs
// in front of these, the iteration (int64) and whether the loop goes on (bool), and, unless that
// stays as it was in front of the loop, an output, whether it does. Its step has three more places:
// the trip count and the first condition, each of which may be absent, and kLoopControlBytes.
struct Loop {
  struct Slices {
    int64_t bytes = 0;  // of one
    bool is_reversed = false;
  };
  std::shared_ptr<Executable> body;
  int64_t length = 0;          // a Scan's, at least 1
  bool has_condition = false;  // a Loop's: how often it runs is known when it runs
  bool decides = false;        // its body says whether it goes on
  size_t n_states = 0;
  std::vector<Slices> scanned = {};
  std::vector<Slices> collected = {};
  size_t n_captured = 0;
  std::vector<int64_t> state_bytes = {};

  size_t n_inputs() const {
    return (has_condition ? 2 : 0) + n_states + scanned.size() + n_captured;
  }
  size_t n_outputs() const { return (decides ? 1 : 0) + n_states + collected.size(); }
  size_t n_pointers() const { return n_inputs() + n_outputs(); }
};

struct Step {
  std::string name = {};    // of the node, for people
  std::string op = {};      // of the node
  std::string kernel = {};  // "jit:avx512_core", "tenon:pointwise (generated)", ...
  std::shared_ptr<const Choice> choice = {};  // shared by the node's steps; empty: there is one way
  double flops = 0;
  double bytes = 0;
  dnnl::primitive primitive = {};  // empty: `kernel_function` or `loop` runs
  std::vector<Argument> arguments = {};
  KernelFunction kernel_function = {};
  std::shared_ptr<const Loop> loop = {};  // neither of both: a plan of its own is repeated
  std::vector<Place> places = {};
  // Of a step that is one pointwise group: places are its sources, then its targets.
  std::shared_ptr<const kernels::PointwisePlan> pointwise = {};
  size_t n_sources = 0;
  // Of a copy of inputs that lie end to end in the result: the bytes of each. Places are theirs,
  // then the result's.
  std::vector<int64_t> end_to_end = {};
  bool always_succeeds = false;  // no data makes it fail; primitives never do
  bool is_invariant = false;     // of a loop's body: makes the same in each iteration
};

struct Plan {
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<int> input_buffers;   // by position; kNone where no step reads it
  std::vector<int> output_buffers;  // by position
  // States are written from this step on: a run that fails or is cancelled leaves all as they were.
  size_t first_commit = SIZE_MAX;
  // Of a loop's body: so many steps, the first ones, need no second iteration.
  size_t n_prologue = 0;
  int n_reorders = 0;
  ElementType real_type =
      ElementType::kF32;      // in which floating-point numbers are kept between steps
  int64_t packed_bytes = 0;   // constants that this plan keeps beside the model's own
  std::vector<bool> is_read;  // by buffer: of an argument or a place of a step
  // What was found out about the weights: plans of the model for other shapes find it while this
  // one lives.
  std::vector<std::shared_ptr<const void>> facts;

  int add_buffer(Buffer buffer) {
    buffers.push_back(std::move(buffer));
    return static_cast<int>(buffers.size()) - 1;
  }
};

// By buffer: whether an argument or a place of a step is in it.
std::vector<bool> buffers_in_use(const Plan& plan);
// From the first step that touches each buffer to the last; what the prologue makes, to the end.
backend::Lives lives_of(const Plan& plan);
// Gives every arena buffer an offset over the steps that use it. Throws CompileError.
tn_arena_size lay_out_arena(Plan& plan);

}  // namespace tenon::onednn
