// SPDX-License-Identifier: Apache-2.0
#pragma once
// One pass over the graph in topological order: each node's handler reads the views of its inputs,
// asks for them in the type and layout that it needs (a conversion is added once and remembered),
// looks ahead for what it can absorb, and gives views to its outputs. Layouts follow from this:
// what is indifferent keeps the layout it is given, so a chain of convolutions stays channels-last
// from its first to its last. Throws CompileError or dnnl::error; nothing of it outlives the
// compile.

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "chooser.hpp"
#include "cpu.hpp"
#include "graph/graph.hpp"
#include "loop_invariants.hpp"
#include "made_primitive.hpp"
#include "plan.hpp"
#include "weight_store.hpp"

namespace tenon::onednn {

namespace kernels::code {
class CodeStore;
}

// Whether layers take a kernel: never, where that is faster, or wherever the kernel can.
enum class Use : uint8_t { kOff, kAuto, kAll };

struct CompileOptions {
  // Compute and keep floating-point numbers in bf16, where the CPU can; inputs and outputs stay
  // f32.
  bool bf16 = false;
  // Products with 4-bit weights may take their other operand in 8 bits, a scale for each group.
  bool int8_rows = false;
  Use winograd = Use::kAuto;  // minimal filtering (implementations/winograd)
  Use sparse = Use::kAuto;    // leaving out the zeros of weights (implementations/sparse_product)
  int threads = 1;
  std::vector<std::string> without = {};           // implementations that no node may choose
  Chooser* chooser = nullptr;                      // between rivals; nullptr: the rules are
  kernels::code::CodeStore* code_store = nullptr;  // of all plans; nullptr: each step has its own
  // Whether a state's new value may replace the old one before the last step.
  bool replaces_states = true;
  // Of a loop's body: how many inputs, the last ones, are the same in each iteration.
  size_t n_captured = 0;
  // Compiles the body of a node, with these options and so many captured inputs. Empty: no body is.
  std::function<std::shared_ptr<Executable>(const Graph& body, size_t n_captured)> compile_body =
      {};
  // Whether a constant has been packed since the compile began: else nobody need look for those
  // that are read no more.
  std::function<bool()> packs = {};
  // Called behind the last node that reads a constant, where no step reads it in place.
  std::function<void(const void* data)> has_packed = {};
  Weights::Identify identify = {};
};

struct CompileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Handler;

// Memory that Concats which begin with one another share (concat_room).
struct ConcatRoom {
  View whole;  // all that it will hold
  size_t axis = 0;
  std::vector<int> values = {};  // inputs of the last Concat: all that it holds, in order
  int64_t filled = 0;            // indices of the axis
};

// Where a value is, and where it is as well, in other types or layouts.
struct ValueViews {
  View primary;
  std::vector<View> others;
};

// All that changes while nodes are lowered, so that it can be put back.
struct LoweringProgress {
  Plan plan_ = {};
  std::vector<ValueViews> states_;
  std::vector<bool> node_done_;
  std::shared_ptr<Choice> choice_ = {};
  int node_ = kNone;  // that is being lowered
  std::map<std::pair<int, std::string>, Place> kept_ = {};
  std::vector<ConcatRoom> concat_rooms_ = {};
  Invariants invariants_;
};

class Lowering : LoweringProgress {
 public:
  static constexpr int64_t kSmallTensor = 16384;
  Lowering(const Graph& graph, const CompileOptions& options, WeightStore& store)
      : LoweringProgress{.states_ = std::vector<ValueViews>(graph.values.size()),
                         .node_done_ = std::vector<bool>(graph.nodes.size(), false),
                         .invariants_ = Invariants(options.n_captured)},
        graph_(graph),
        options_(options),
        store_(store, options_.identify) {
    options_.bf16 = options_.bf16 && computes_in_bf16();
    plan_.real_type = real_type();
  }

  Plan run();

  const Graph& graph() const { return graph_; }
  const CompileOptions& options() const { return options_; }
  const dnnl::engine& engine() const { return store_.engine(); }
  Weights& weights() { return store_; }
  Plan& plan() { return plan_; }
  const Buffer& buffer(const View& view) const { return plan_.buffers[view.buffer]; }
  // In a loop's body, whether all iterations read the same there.
  bool is_invariant(const View& view) const {
    return options_.n_captured > 0 && invariants_.is_steady(plan_, view.buffer);
  }
  bool is_constant_view(const View& view) const {
    return buffer(view).kind == Buffer::Kind::kConstant;
  }
  // The type in which floating-point numbers are kept between nodes.
  ElementType real_type() const { return options_.bf16 ? ElementType::kBf16 : ElementType::kF32; }
  // That of one value. Small tensors stay in f32: they are cheap, and a loss or a mean in bf16 is
  // not worth much.
  ElementType stored_type(int value) const {
    const Value& v = graph_.values[static_cast<size_t>(value)];
    const bool stays = v.is_exact || v.n_outputs > 0 || v.count() < kSmallTensor;
    return stays ? ElementType::kF32 : real_type();
  }

  // ---- values ----
  bool is_available(int value) const { return states_[value].primary.exists(); }
  const View& view(int value) const { return states_[value].primary; }
  int buffer_of(int value) const {  // kNone: of no value, or of one that is not made yet
    return value != kNone && is_available(value) ? view(value).buffer : kNone;
  }
  bool is_constant(int value) const { return graph_.values[value].data != nullptr; }
  // The value as stored numbers of `type` with these strides; converts when it is kept otherwise.
  View read(int value, ElementType type, const Dims& strides);
  View read_row_major(int value, ElementType type);
  // As it is when real (f32, bf16), else dequantized to real_type() in the same layout.
  View read_real(int value);
  // Values of an i32, i64, f32, u8, s8 constant as integers.
  Dims constant_integers(int value) const;
  std::vector<float> constant_floats(int value) const;

  // As it is stored, with these strides: quantized values stay quantized values. As s8, what is u8
  // has its quantized values and its zero point 128 less. Converts once, as read does.
  View read_stored(int value, const Dims& strides, ElementType type);

  void set_view(int value, View view) { states_[value].primary = std::move(view); }
  // New arena memory for a value.
  View make(int value, ElementType type, const Dims& strides, kernels::Quant quant = {});
  // Whether the view's memory is free once `node` and the nodes marked done have run.
  bool dies_with(const View& view, int node) const;
  // Whether a step of `node` may write `dst` where it reads `src`, element by element. `also_read`
  // is all else that the step reads: a scale may be a slice of what is normalized.
  bool may_overwrite(const View& src,
                     const View& dst,
                     int node,
                     std::span<const Place> also_read) const {
    bool is_shared = std::any_of(also_read.begin(), also_read.end(),
                                 [&](const Place& other) { return other.buffer == src.buffer; });
    return !is_shared && src.type == dst.type && src.offset == 0 &&
           plan_.buffers[src.buffer].bytes == dst.bytes() && dies_with(src, node);
  }
  // Where the state lies whose new value this is, when nothing reads the old one after `node`.
  const View* replaced_state(int value, int node) const;
  bool is_state_result(int value) const;

  // ---- nodes ----
  void mark_done(int node) { node_done_[node] = true; }
  bool is_done(int node) const { return node_done_[node]; }
  const std::vector<bool>& done() const { return node_done_; }
  // The one whose handler runs.
  int node() const { return node_; }
  // Runs the handler of a node that is not done; all that it reads is available.
  void lower(int node);

  // What a forward step leaves for the backward step of the same value: statistics, places of
  // maxima. nullptr: nothing of this name.
  void keep(int value, const std::string& name, Place place) { kept_[{value, name}] = place; }
  const Place* kept(int value, const std::string& name) const {
    auto found = kept_.find({value, name});
    return found == kept_.end() ? nullptr : &found->second;
  }

  std::vector<ConcatRoom>& concat_rooms() { return concat_rooms_; }
  const std::vector<ConcatRoom>& concat_rooms() const { return concat_rooms_; }

  // How the node that is being lowered is computed; implementations/choice.hpp fills it in.
  Choice& choice() { return *choice_; }
  const std::vector<std::string>& without() const { return options_.without; }

  // ---- trials (implementations/rivals) ----
  // Nothing that is lowered between the two is left; while a trial lasts, rules choose.
  struct Mark {
    LoweringProgress progress;
    Choice choice;
    Chooser* chooser;
  };
  Mark begin_trial();
  void end_trial(Mark mark);
  // The steps since the mark, as a plan whose only memory is constants and the arena.
  Plan steps_since(const Mark& mark) const;

  // ---- steps ----
  void add_step(Step step) {
    if (options_.n_captured > 0) step.is_invariant = invariants_.add(plan_, step);
    plan_.steps.push_back(std::move(step));
  }
  // Adds the primitive of this description, with scratch memory for its scratchpad. kernel: what
  // reports call it, in place of oneDNN's name.
  template <class Primitive>
  void add_primitive(std::string name,
                     const typename Primitive::primitive_desc& description,
                     std::vector<Argument> arguments,
                     double flops,
                     std::string kernel = {}) {
    if (kernel.empty()) kernel = description.impl_info_str();
    add_primitive_step({.name = std::move(name),
                        .kernel = std::move(kernel),
                        .flops = flops,
                        .primitive = made_from<Primitive>(description)},
                       description.scratchpad_desc(), std::move(arguments));
  }
  void add_primitive_step(Step step,
                          const dnnl::memory::desc& scratchpad,
                          std::vector<Argument> arguments);
  // oneDNN's copy into another layout, as these descriptions say.
  void add_reorder(std::string name,
                   Place from,
                   const dnnl::memory::desc& src,
                   Place to,
                   const dnnl::memory::desc& dst);
  int scratch(int64_t bytes) { return plan_.add_buffer({.bytes = bytes}); }
  Place floats(const std::vector<float>& values);
  Place integers(const std::vector<int32_t>& values);
  // A constant view repacked at compile time.
  Place packed(const View& constant, const dnnl::memory::desc& from, const dnnl::memory::desc& to);
  const void* constant_data(const View& view) const;
  // A new constant of the plan, filled by the caller.
  View make_constant(ElementType type, const Dims& dims, std::shared_ptr<const void> data);
  // A constant per-channel or per-tensor quantized view as real f32 numbers, row-major.
  View dequantized_constant(const View& view);
  // Adds the step that copies `from` into `to` with any change of type, layout and quantization.
  void add_copy(const std::string& name, const View& from, const View& to);

 private:
  bool makes_nothing(const Node& node);
  void report_packed(int node);
  bool is_needed_after(const void* data, int node) const;
  void place_inputs_and_constants();
  void place_outputs();
  void place_states();
  bool is_read_after(const View& view, int node) const;
  void drop_unused_constants();

  const Graph& graph_;
  CompileOptions options_;
  Weights store_;
};

inline Place place_of(const View& view) {
  return {view.buffer, view.offset_bytes()};
}

}  // namespace tenon::onednn
