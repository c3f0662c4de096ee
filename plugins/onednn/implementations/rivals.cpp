// SPDX-License-Identifier: Apache-2.0
#include "rivals.hpp"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include "lowering/epilogue.hpp"

namespace tenon::onednn {
namespace {

// ---- the key

std::string text_of(const Dims& dims) {
  std::string text;
  for (int64_t dim : dims)
    text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

std::string text_of(const AttributeValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* numbers = std::get_if<Dims>(&value)) return text_of(*numbers);
  return std::to_string(value.index());
}

// As it is stored, where that is known; a constant's content is not part of it.
std::string text_of(const Lowering& lowering, int value) {
  if (value == kNone) return "-";
  const Value& known = lowering.graph().values[value];
  if (!lowering.is_available(value)) return text_of(known.dims);
  const View& view = lowering.view(value);
  std::string text = lowering.is_constant_view(view) ? "=" : "";
  text += element_name(view.type);
  if (view.is_quantized()) text += view.channels != nullptr ? "/channels" : "/scale";
  if (view.quant.zero_point != 0) text += "+";
  text += ":" + text_of(view.dims);
  if (!is_row_major(view)) text += "@" + text_of(view.strides);
  return text;
}

std::string text_of(const Lowering& lowering, const Node& node) {
  std::string text = node.op;
  for (const Attribute& attribute : node.attributes)
    text += " " + attribute.name + "=" + text_of(attribute.value);
  for (int input : node.inputs)
    text += " " + text_of(lowering, input);
  const Value& result = lowering.graph().values[node.outputs[0]];
  return text + " > " + element_name(result.type) + ":" + text_of(result.dims);
}

constexpr int kLongestEpilogue = 6;

// Whether rivals may take the node along; the first that they do not may still say how the result
// should lie.
bool may_be_taken(const Node& node) {
  return !node.expr.empty() || node.op == "QuantizeLinear" || node.op == "DequantizeLinear" ||
         node.op == "BatchNormalization";
}

// Whether all constants together stay in the cores' own caches from run to run.
bool reads_cold_weights(const Lowering& lowering) {
  static const int64_t kCache = std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 1 << 18);
  int64_t bytes = 0;
  for (const Value& value : lowering.graph().values)
    if (value.data != nullptr) bytes += value.bytes();
  return bytes > kCache * lowering.options().threads;
}

// ---- trials

// Of one node: each rival packs them for its trial.
constexpr int64_t kMostWeightBytes = int64_t{32} << 20;

bool has_large_weights(const Lowering& lowering) {
  const Node& node = lowering.graph().nodes[static_cast<size_t>(lowering.node())];
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
    return input != kNone && lowering.is_constant(input) &&
           lowering.graph().values[static_cast<size_t>(input)].bytes() > kMostWeightBytes;
  });
}

// What a trial made: steps, which nodes they are, and where their results are.
struct Tried {
  Plan steps;
  std::vector<bool> done;
  std::vector<View> results;  // by value; of those that later nodes read
};

bool reads_what_is_there(const Lowering& lowering, int node) {
  const std::vector<int>& inputs = lowering.graph().nodes[static_cast<size_t>(node)].inputs;
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](int value) { return value == kNone || lowering.is_available(value); });
}

std::vector<View> results_of(const Lowering& lowering, const std::vector<bool>& before) {
  const Graph& graph = lowering.graph();
  std::vector<View> views(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    const bool is_new = value.producer != kNone && lowering.is_done(value.producer) &&
                        !before[static_cast<size_t>(value.producer)];
    const bool is_read =
        value.n_outputs > 0 || std::any_of(value.users.begin(), value.users.end(),
                                           [&](int user) { return !lowering.is_done(user); });
    if (is_new && is_read) views[i] = lowering.view(static_cast<int>(i));
  }
  return views;
}

// `wanted`: nodes that are to be lowered in any case. Nothing: it cannot be tried so.
std::optional<Tried> try_one(Lowering& lowering,
                             const Rival& rival,
                             const std::vector<bool>& wanted) {
  std::optional<Tried> tried;
  Lowering::Mark mark = lowering.begin_trial();
  try {
    rival.build();
    bool is_whole = true;
    for (size_t i = 0; i < wanted.size() && is_whole; ++i) {
      if (!wanted[i] || lowering.is_done(static_cast<int>(i))) continue;
      is_whole = reads_what_is_there(lowering, static_cast<int>(i));
      if (is_whole) lowering.lower(static_cast<int>(i));
    }
    if (is_whole)
      tried = Tried{lowering.steps_since(mark), lowering.done(),
                    results_of(lowering, mark.progress.node_done_)};
  } catch (const CompileError&) {
    tried.reset();
  } catch (const dnnl::error&) {
    tried.reset();
  }
  lowering.end_trial(std::move(mark));
  return tried;
}

bool lies_alike(const View& a, const View& b) {
  if (a.exists() != b.exists()) return false;
  return !a.exists() || (a.type == b.type && a.is_quantized() == b.is_quantized() &&
                         same_strides(a.dims, a.strides, b.strides));
}

// Whether both compute the same nodes and leave results that later nodes find as they lie.
bool is_comparable(const Tried& a, const Tried& b) {
  return a.done == b.done &&
         std::equal(a.results.begin(), a.results.end(), b.results.begin(), lies_alike);
}

// Those of the rivals that can be compared with the first.
std::vector<Contestant> contestants_of(Lowering& lowering, std::span<const Rival> rivals) {
  // What one of them takes along, the others lower as well; what these take then may be more.
  constexpr int kPasses = 3;
  std::vector<bool> wanted = lowering.done();
  std::vector<std::optional<Tried>> tried;
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::vector<bool> before = wanted;
    tried.clear();
    for (const Rival& rival : rivals) {
      tried.push_back(try_one(lowering, rival, before));
      if (!tried.back()) continue;
      for (size_t i = 0; i < wanted.size(); ++i)
        wanted[i] = wanted[i] || tried.back()->done[i];
    }
    if (wanted == before) break;
  }
  std::vector<Contestant> contestants;
  if (!tried[0]) return contestants;
  for (size_t i = 0; i < rivals.size(); ++i)
    if (tried[i] && is_comparable(*tried[0], *tried[i]))
      contestants.push_back({rivals[i].name, std::move(tried[i]->steps)});
  return contestants;
}

Decision decide(Lowering& lowering, std::span<const Rival> rivals, const std::string& key) {
  Chooser& chooser = *lowering.options().chooser;
  if (std::optional<Decision> kept = chooser.kept(key)) return std::move(*kept);
  if (!chooser.measures() || has_large_weights(lowering))
    return chooser.keep_ruled(key, rivals[0].name);
  Contest contest{.key = key,
                  .contestants = contestants_of(lowering, rivals),
                  .threads = lowering.options().threads,
                  .reads_cold_weights = reads_cold_weights(lowering),
                  .engine = lowering.engine()};
  if (contest.contestants.size() < 2) return chooser.keep_ruled(key, rivals[0].name);
  return chooser.decide(std::move(contest));
}

}  // namespace

std::string contest_key(const Lowering& lowering, std::span<const Rival> rivals) {
  const Graph& graph = lowering.graph();
  std::string key;
  for (const Rival& rival : rivals)
    key += std::string(key.empty() ? "" : " | ") + rival.name +
           (rival.traits.empty() ? "" : " (" + rival.traits + ")");
  key += "; threads=" + std::to_string(lowering.options().threads);
  if (lowering.options().bf16) key += " bf16";
  if (reads_cold_weights(lowering)) key += " cold";
  int at = lowering.node();
  for (int i = 0; i <= kLongestEpilogue && at != kNone; ++i) {
    const Node& node = graph.nodes[static_cast<size_t>(at)];
    const bool is_taken = i == 0 || may_be_taken(node);
    key += "; " + (is_taken || node.op == "Transpose" ? text_of(lowering, node) : node.op);
    at = is_taken ? graph.only_user(node.outputs[0]) : kNone;
  }
  // It becomes part of a line.
  std::replace_if(key.begin(), key.end(), [](unsigned char c) { return c < ' ' || c == '#'; }, ' ');
  return key;
}

void build_fastest(Lowering& lowering, std::span<const Rival> rivals) {
  const std::string key = contest_key(lowering, rivals);
  const Decision decision = decide(lowering, rivals, key);
  const auto is_it = [&](const Rival& rival) { return rival.name == decision.implementation; };
  const auto chosen = std::find_if(rivals.begin(), rivals.end(), is_it);
  Choice& choice = lowering.choice();
  choice.key = key;
  choice.decided = decision.implementation;
  choice.measured = decision.measured;
  if (chosen != rivals.begin() && chosen != rivals.end())
    choice.refusals.push_back({rivals[0].name, "measured to be slower"});
  // Somebody else's decision may be for what no longer is a rival.
  (chosen != rivals.end() ? *chosen : rivals[0]).build();
}

}  // namespace tenon::onednn
