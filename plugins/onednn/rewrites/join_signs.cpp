// SPDX-License-Identifier: Apache-2.0
#include "join_signs.hpp"

#include <algorithm>
#include <optional>

#include "graph/binary_weights.hpp"

namespace tenon::onednn {
namespace {

class Joining {
 public:
  explicit Joining(Graph& graph) : graph_(graph), gone_(graph.nodes.size(), false) {}

  void run() {
    bool any = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].op == "Where") any |= join(static_cast<int>(i));
    if (any) graph_.drop(gone_);
  }

 private:
  std::optional<float> number(int value) const {
    if (value == kNone) return std::nullopt;
    const Value& v = graph_.values[value];
    if (v.data == nullptr || v.count() != 1 || v.type != ElementType::kF32) return std::nullopt;
    return *static_cast<const float*>(v.data);
  }

  // Along which axis of x the readers multiply; nothing where one of them does not read signs.
  std::optional<int64_t> axis_for_readers(int value) const {
    const Value& v = graph_.values[value];
    if (v.users.empty() || v.n_outputs > 0) return std::nullopt;
    std::optional<int64_t> axis;
    for (int user : v.users) {
      if (!multiplies_signs(graph_, user, value)) return std::nullopt;
      const bool is_conv = graph_.nodes[user].op == "Conv";
      const int64_t its = is_conv ? 1 : static_cast<int64_t>(v.dims.size()) - 1;
      if (axis && *axis != its) return std::nullopt;
      axis = its;
    }
    return axis;
  }

  // One for all numbers, or one for each index of the axis.
  bool is_threshold(int value, const Dims& dims, int64_t axis) const {
    if (value == kNone) return false;
    const Value& v = graph_.values[value];
    if (v.data == nullptr || v.type != ElementType::kF32 || v.dims.size() > dims.size())
      return false;
    if (v.count() == 1) return true;
    const size_t shift = dims.size() - v.dims.size();
    for (size_t i = 0; i < v.dims.size(); ++i) {
      const bool is_axis = static_cast<int64_t>(i + shift) == axis;
      if (v.dims[i] != (is_axis ? dims[static_cast<size_t>(axis)] : 1)) return false;
    }
    return static_cast<int64_t>(shift) <= axis;
  }

  bool join(int index) {
    const Node& where = graph_.nodes[index];
    const std::optional<float> high = number(where.input(1)), low = number(where.input(2));
    if (!high || !low || !(*high > 0) || *low != -*high) return false;
    const int test = graph_.values[where.inputs[0]].producer;
    if (test == kNone || graph_.nodes[test].op != "GreaterOrEqual") return false;
    const int x = graph_.nodes[test].inputs[0], threshold = graph_.nodes[test].inputs[1];
    const int result = where.outputs[0];
    const Value& numbers = graph_.values[x];
    if (numbers.type != ElementType::kF32 || numbers.dims != graph_.values[result].dims)
      return false;
    const std::optional<int64_t> axis = axis_for_readers(result);
    if (!axis || !is_threshold(threshold, numbers.dims, *axis)) return false;
    if (graph_.only_user(where.inputs[0]) != kNone) gone_[static_cast<size_t>(test)] = true;
    graph_.nodes[index] = {.op = "tenon.Signs",
                           .name = where.name,
                           .inputs = {x, threshold},
                           .outputs = {result},
                           .attributes = {{"scale", double{*high}}, {"axis", *axis}}};
    return true;
  }

  Graph& graph_;
  std::vector<bool> gone_;
};

}  // namespace

void join_signs(Graph& graph) {
  Joining(graph).run();
}

}  // namespace tenon::onednn
