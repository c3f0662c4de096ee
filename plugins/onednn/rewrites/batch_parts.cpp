// SPDX-License-Identifier: Apache-2.0
#include "batch_parts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lowering/handler.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kTooLarge = int64_t{16} << 20;  // bytes of an activation that no cache keeps
constexpr int64_t kInCache = int64_t{5} << 20;    // of the largest one of a part

class Cutting {
 public:
  explicit Cutting(Graph& graph) : graph_(graph) {}

  void run() {
    if (!graph_.states.empty()) return;  // a training step keeps all for its backward pass
    find_shared();
    for (int input : graph_.inputs)
      if (cut_behind(input)) return;
  }

 private:
  bool is_batch(int value) const {
    const Dims& dims = graph_.values[value].dims;
    return dims.size() == 4 && dims[0] == samples_;
  }

  // As it is stored: as quantized values where a QuantizeLinear stands behind it or its opposite
  // before.
  int64_t stored_bytes(int value) const {
    const Value& v = graph_.values[value];
    auto is = [&](int node, const char* op) { return graph_.nodes[node].op == op; };
    const bool is_quantized = (v.producer != kNone && is(v.producer, "DequantizeLinear")) ||
                              std::any_of(v.users.begin(), v.users.end(),
                                          [&](int user) { return is(user, "QuantizeLinear"); });
    return is_quantized ? v.count() : v.bytes();
  }

  // Weights and the like: constants, and what is made of constants alone.
  void find_shared() {
    for (size_t i = 0; i < graph_.values.size(); ++i)
      if (graph_.values[i].data != nullptr) shared_.insert(static_cast<int>(i));
    for (const Node& node : graph_.nodes) {
      const bool is_shared = std::all_of(node.inputs.begin(), node.inputs.end(), [&](int source) {
        return source == kNone || shared_.count(source) > 0;
      });
      if (is_shared) shared_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  // Whether nothing along its first axis, if it has that of the samples, differs between them.
  bool is_same_for_samples(int value) const {
    const Dims& dims = graph_.values[value].dims;
    return dims.size() < 4 || dims[0] == 1;
  }

  // Reads activations of the segment, and what all samples share.
  bool belongs(const Node& node) const {
    const bool is_apart = node.outputs.size() == 1 && find_handler(node.op).keeps_samples_apart;
    if (!is_apart || !is_batch(node.outputs[0])) return false;
    bool reads_segment = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int source = node.inputs[i];
      if (source == kNone) continue;
      const bool is_weight = node.op == "Conv" && i > 0;
      const bool is_inside = !is_weight && segment_.count(source) > 0;
      reads_segment |= is_inside;
      // Scales along the first axis are each sample's own.
      const bool is_along_samples =
          graph_.values[source].count() == samples_ && node.integer("axis", 1) % 4 == 0;
      const bool is_shared = shared_.count(source) > 0 && !is_along_samples &&
                             (is_weight || is_same_for_samples(source));
      if (!is_inside && !is_shared) return false;
    }
    return reads_segment;
  }

  // The nodes up to the last that reads a large activation.
  bool cut_behind(int input) {
    const Value& x = graph_.values[input];
    if (x.dims.size() != 4 || x.dims[0] < 4) return false;
    samples_ = x.dims[0];
    segment_ = {input};
    is_inside_.assign(graph_.nodes.size(), false);
    int64_t largest = 0;
    int last = kNone;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!belongs(node)) continue;
      is_inside_[i] = true;
      segment_.insert(node.outputs[0]);
      for (int source : node.inputs) {
        if (source == kNone || segment_.count(source) == 0) continue;
        largest = std::max(largest, stored_bytes(source));
        if (stored_bytes(source) >= kTooLarge) last = static_cast<int>(i);
      }
    }
    if (last == kNone) return false;
    end_behind(static_cast<size_t>(last));
    if (!is_worth_it()) return false;
    width_ = std::clamp<int64_t>(kInCache / (largest / samples_), 1, samples_);
    while (samples_ % width_ != 0)
      --width_;
    if (width_ == samples_) return false;
    rebuild(input);
    return true;
  }

  // What ends the pass over the last activations (activation, residual, quantized values) stays
  // with it.
  void end_behind(size_t last) {
    for (size_t i = last + 1; i < graph_.nodes.size(); ++i) {
      if (!is_inside_[i]) continue;
      const Node& node = graph_.nodes[i];
      bool ends_a_pass = node.op != "Conv" && node.op != "DequantizeLinear" &&
                         node.op.find("Pool") == std::string::npos;
      bool stands_alone = false;
      for (int source : node.inputs) {
        if (source == kNone || shared_.count(source) > 0) continue;
        const int maker = graph_.values[source].producer;
        ends_a_pass = ends_a_pass && maker != kNone && is_inside_[maker];
        stands_alone |= graph_.only_user(source) == static_cast<int>(i);
      }
      is_inside_[i] = ends_a_pass && stands_alone;
    }
  }

  // Not where most of what is made is read behind the segment, as in a graph of gradients.
  bool is_worth_it() const {
    int64_t made = 0;
    int64_t kept = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_inside_[i]) continue;
      const int output = graph_.nodes[i].outputs[0];
      made += stored_bytes(output);
      if (is_read_outside(output)) kept += stored_bytes(output);
    }
    return kept * 4 <= made;
  }

  int new_part(int value) {
    Value part;
    part.name = graph_.values[value].name;
    part.type = graph_.values[value].type;
    part.dims = graph_.values[value].dims;
    part.dims[0] = width_;
    part.is_exact = graph_.values[value].is_exact;
    return graph_.add_value(std::move(part));
  }

  bool is_read_outside(int value) const {
    const Value& v = graph_.values[value];
    return v.n_outputs > 0 ||
           std::any_of(v.users.begin(), v.users.end(), [&](int user) { return !is_inside_[user]; });
  }

  void rebuild(int input) {
    const int64_t n_parts = samples_ / width_;
    std::vector<Node> inside, outside;
    std::vector<int> wanted;  // whole
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_inside_[i] && is_read_outside(graph_.nodes[i].outputs[0]))
        wanted.push_back(graph_.nodes[i].outputs[0]);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      (is_inside_[i] ? inside : outside).push_back(std::move(graph_.nodes[i]));
    std::vector<Node> ordered;
    Node split{.op = "Split", .name = graph_.values[input].name + " in parts", .inputs = {input}};
    split.attributes = {{"axis", int64_t{0}}, {"num_outputs", n_parts}};
    for (int64_t part = 0; part < n_parts; ++part)
      split.outputs.push_back(new_part(input));
    const std::vector<int> first = split.outputs;
    ordered.push_back(std::move(split));
    std::map<int, std::vector<int>> parts;  // of each value that is wanted whole
    for (int64_t part = 0; part < n_parts; ++part) {
      std::map<int, int> seen{{input, first[static_cast<size_t>(part)]}};
      for (const Node& node : inside)
        ordered.push_back(copy_of(node, &seen));
      for (int value : wanted)
        parts[value].push_back(seen.at(value));
    }
    for (int value : wanted) {
      Node join{.op = "Concat", .name = graph_.values[value].name + " of parts"};
      join.inputs = parts.at(value);
      join.outputs = {value};
      join.attributes = {{"axis", int64_t{0}}};
      ordered.push_back(std::move(join));
    }
    std::move(outside.begin(), outside.end(), std::back_inserter(ordered));
    graph_.reorder(shared_first(std::move(ordered)));
  }

  Node copy_of(const Node& node, std::map<int, int>* seen) {
    Node copy = node;
    for (int& source : copy.inputs)
      if (auto found = seen->find(source); found != seen->end()) source = found->second;
    const int made = new_part(node.outputs[0]);
    (*seen)[node.outputs[0]] = made;
    copy.outputs[0] = made;
    return copy;
  }

  // Nodes that make what all samples share stand outside, and go first.
  std::vector<Node> shared_first(std::vector<Node> nodes) const {
    auto is_free = [&](const Node& node) {
      return std::all_of(node.outputs.begin(), node.outputs.end(),
                         [&](int output) { return shared_.count(output) > 0; });
    };
    std::stable_partition(nodes.begin(), nodes.end(), is_free);
    return nodes;
  }

  Graph& graph_;
  std::vector<bool> is_inside_;
  int64_t samples_ = 0;
  int64_t width_ = 0;
  std::set<int> shared_;   // values that no input of the graph reaches
  std::set<int> segment_;  // activations
};

}  // namespace

void cut_batches(Graph& graph) {
  Cutting(graph).run();
}

}  // namespace tenon::onednn
