// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's GroupQueryAttention of few rows with a cache, as generated text repeats it: one
// step (kernels/cached_attention.h), which is quick to compile for each length of the cache. More
// rows are left to its decomposition, whose products are of matrices.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "dense.hpp"
#include "kernels/cached_attention.h"

namespace tenon::onednn {
namespace {

enum Input : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCosines,
  kSines,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};

// Over 80 shapes of 1 to 8 rows, 16 to 2,048 keys, 2 to 32 heads of keys, the step takes 0.25 to
// 0.9 of the decomposition's time.
constexpr int64_t kMostRows = 8;

// Sizes and attributes, without what lies where.
kernels::CachedAttentionArgs args_of(const Graph& graph, const Node& node) {
  const Dims& q = graph.values[node.inputs[kQuery]].dims;
  const Dims& present = graph.values[node.outputs[1]].dims;
  kernels::CachedAttentionArgs args;
  args.batch = q[0], args.rows = q[1];
  args.heads = node.integer("num_heads", 1), args.shared = present[1], args.depth = present[3];
  args.stored = present[2];
  const int past = node.input(kPastKey);
  args.room = past == kNone ? 0 : graph.values[past].dims[2];
  args.q_pitch = q[2];
  const bool is_packed = node.input(kKey) == kNone;
  args.k_pitch = args.v_pitch = is_packed ? q[2] : args.shared * args.depth;
  if (node.integer("do_rotary", 0) != 0 && node.input(kCosines) != kNone) {
    const Dims& angles = graph.values[node.inputs[kCosines]].dims;
    args.positions = angles[0], args.angles = angles[1];
  }
  args.is_interleaved = node.integer("rotary_interleaved", 0) != 0;
  args.epsilon = static_cast<float>(node.real("qk_norm_epsilon", 1e-6));
  args.softcap = static_cast<float>(node.real("softcap", 0));
  const double scale = node.real("scale", 0);
  args.scale =
      static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(args.depth)));
  args.is_causal = node.integer("causal", 1) != 0;
  args.window = node.integer("local_window_size", -1);
  return args;
}

// What a run needs to know of the node.
struct Form {
  kernels::CachedAttentionArgs args;
  size_t n_inputs;
  bool is_packed;
  std::vector<float> sinks;  // where smooth_softmax is asked for and none are given
};

// pointers: the inputs of the node, then its outputs.
const char* run(const Form& form, const kernels::Context& context, void* const* pointers) {
  kernels::CachedAttentionArgs args = form.args;
  const size_t n_inputs = form.n_inputs;
  auto input = [&](size_t i) {
    return i < n_inputs ? static_cast<const float*>(pointers[i]) : nullptr;
  };
  args.q = input(kQuery);
  args.k = form.is_packed ? args.q + args.heads * args.depth : input(kKey);
  args.v = form.is_packed ? args.k + args.shared * args.depth : input(kValue);
  args.past_k = pointers[kPastKey], args.past_v = pointers[kPastValue];
  args.last = static_cast<const int32_t*>(pointers[kLengths]);
  args.total = *static_cast<const int32_t*>(pointers[kTotal]);
  if (args.angles > 0) args.cosines = pointers[kCosines], args.sines = pointers[kSines];
  if (n_inputs > kPositions) args.position_of = static_cast<const int64_t*>(pointers[kPositions]);
  args.sinks = form.sinks.empty() ? input(kSink) : form.sinks.data();
  args.q_norm = input(kQueryNorm), args.k_norm = input(kKeyNorm);
  args.dst = static_cast<float*>(pointers[n_inputs]);
  args.present_k = pointers[n_inputs + 1];
  args.present_v = pointers[n_inputs + 2];
  return kernels::cached_attention(context, args);
}

// All floating-point operands have one type.
std::string why_not_types(const Graph& graph, const Node& node) {
  const ElementType real = graph.values[node.inputs[kQuery]].type;
  if (!kernels::is_real_type(real) && real != ElementType::kF16) return "only f32, f16 and bf16";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    const ElementType wanted = i == kLengths || i == kTotal ? ElementType::kI32
                               : i == kPositions            ? ElementType::kI64
                                                            : real;
    if (graph.values[node.inputs[i]].type != wanted) return "operands of two types";
  }
  return {};
}

// Operands that come two at a time.
bool are_pairs(const Node& node) {
  constexpr std::pair<size_t, size_t> kPairs[] = {
      {kKey, kValue}, {kPastKey, kPastValue}, {kCosines, kSines}};
  return std::ranges::all_of(kPairs, [&](const auto& pair) {
    return (node.input(pair.first) == kNone) == (node.input(pair.second) == kNone);
  });
}

// The kernel looks at nothing but addresses: operands are as large as its sizes say.
bool have_sizes(const Graph& graph, const Node& node, const kernels::CachedAttentionArgs& args) {
  if (args.heads < 1 || args.shared < 1 || args.heads % args.shared != 0) return false;
  if (node.integer("do_rotary", 0) != 0 && args.angles == 0) return false;
  const int64_t shared = args.shared * args.depth, own = args.heads * args.depth;
  const int64_t packed = node.input(kKey) == kNone ? 2 * shared : 0;
  const Dims rows = {args.batch, args.rows, shared};
  const Dims past = {args.batch, args.shared, args.room, args.depth};
  const Dims angles = {args.positions, args.angles};
  const std::pair<size_t, Dims> operands[] = {{kQuery, {args.batch, args.rows, own + packed}},
                                              {kKey, rows},
                                              {kValue, rows},
                                              {kPastKey, past},
                                              {kPastValue, past},
                                              {kPositions, {args.batch, args.rows}},
                                              {kSink, {args.heads}},
                                              {kQueryNorm, {args.depth}},
                                              {kKeyNorm, {args.depth}}};
  auto has = [&](size_t input, const Dims& dims) {
    return node.input(input) == kNone || graph.values[node.inputs[input]].dims == dims;
  };
  auto count = [&](int value) { return graph.values[value].count(); };
  const int64_t present = args.batch * args.shared * args.stored * args.depth;
  return std::ranges::all_of(operands,
                             [&](const auto& one) { return has(one.first, one.second); }) &&
         (args.angles == 0 || (has(kCosines, angles) && has(kSines, angles))) &&
         count(node.inputs[kLengths]) == args.batch && count(node.inputs[kTotal]) == 1 &&
         count(node.outputs[0]) == args.batch * args.rows * own &&
         count(node.outputs[1]) == present && count(node.outputs[2]) == present;
}

// What is large stays in its type; what else is real becomes f32.
constexpr size_t kStored[] = {kPastKey, kPastValue, kCosines, kSines};

void add_step(Lowering& lowering, const Node& node, Form form) {
  const Graph& graph = lowering.graph();
  const ElementType real = graph.values[node.inputs[kQuery]].type;
  Step step{.name = node.name, .kernel = "tenon:cached_attention"};
  auto place = [&](const View& view) {
    step.bytes += static_cast<double>(view.bytes());
    step.places.push_back(place_of(view));
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int value = node.inputs[i];
    if (value == kNone) {
      step.places.push_back({});
      continue;
    }
    const ElementType own = graph.values[value].type;
    const bool stays = own != real || std::ranges::count(kStored, i) > 0;
    place(lowering.read_row_major(value, stays ? own : ElementType::kF32));
  }
  for (size_t i : {0, 1, 2}) {
    const Value& made = graph.values[node.outputs[i]];
    place(lowering.make(node.outputs[i], i == 0 ? ElementType::kF32 : real,
                        row_major_strides(made.dims)));
  }
  step.kernel_function = [form = std::move(form)](const kernels::Context& context,
                                                  void* const* pointers) -> const char* {
    return run(form, context, pointers);
  };
  lowering.add_step(std::move(step));
}

}  // namespace

std::string refuse_group_query_attention(const Graph& graph, const Node& node) {
  if (std::string why = why_not_types(graph, node); !why.empty()) return why;
  if (graph.values[node.inputs[kQuery]].dims[1] > kMostRows) return "more than 8 rows";
  for (size_t i : {kBias, kKeyScale, kValueScale})
    if (node.input(i) != kNone) return "a bias or scales of a quantized cache";
  for (const char* attribute : {"sliding_window_cache", "qk_output"})
    if (node.integer(attribute, 0) != 0) return cat("the attribute ", attribute);
  for (size_t i : {0, 1, 2})
    if (node.output(i) == kNone) return "a result that is left out";
  const kernels::CachedAttentionArgs args = args_of(graph, node);
  if (!are_pairs(node) || !have_sizes(graph, node, args))
    return "operands of other sizes than the heads say";
  const bool is_whole = args.batch > 0 && args.rows > 0 && args.depth > 0;
  if (!is_whole || args.window == 0) return "nothing to attend to";
  if (args.stored < args.room || args.rows > args.stored)
    return "a cache without room for the rows";
  return 2 * args.angles > args.depth ? "more angles than pairs" : "";
}

void lower_group_query_attention(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  Form form{args_of(graph, node), node.inputs.size(), node.input(kKey) == kNone, {}};
  if (node.integer("smooth_softmax", 0) > 0 && node.input(kSink) == kNone)
    form.sinks.assign(static_cast<size_t>(form.args.heads), 0.0F);
  form.args.cache = graph.values[node.inputs[kQuery]].type;
  add_step(lowering, node, std::move(form));
}

}  // namespace tenon::onednn
