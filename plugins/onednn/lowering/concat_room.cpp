// SPDX-License-Identifier: Apache-2.0
#include "concat_room.hpp"

#include <algorithm>

#include "epilogue.hpp"
#include "pointwise_group.hpp"

namespace tenon::onednn {
namespace {

size_t axis_of(const Graph& graph, const Node& node) {
  return static_cast<size_t>(
      positive_axis(node.integer("axis", 0), graph.values[node.outputs[0]].dims.size()));
}

// The QuantizeLinear that alone reads the node's result, or kNone. Done or not: the node's own
// lowering takes it along.
int quantize_of(const Lowering& lowering, const Node& node) {
  const Graph& graph = lowering.graph();
  const int user = graph.only_user(node.outputs[0]);
  const bool is_quantize = user != kNone && graph.nodes[user].op == "QuantizeLinear" &&
                           tensor_quant(lowering, graph.nodes[user]).has_value();
  return is_quantize ? user : kNone;
}

// The value that later nodes read for the node's result: behind QuantizeLinear that of the one
// DequantizeLinear. kNone where there are others.
int read_value(const Lowering& lowering, const Node& node) {
  const Graph& graph = lowering.graph();
  const int quantize = quantize_of(lowering, node);
  if (quantize == kNone) return node.outputs[0];
  const int user = graph.only_user(graph.nodes[quantize].outputs[0]);
  const bool is_view = user != kNone && graph.nodes[user].op == "DequantizeLinear";
  return is_view ? graph.nodes[user].outputs[0] : kNone;
}

bool are_stored_alike(const Lowering& lowering, const Node& a, const Node& b) {
  const int first = quantize_of(lowering, a), second = quantize_of(lowering, b);
  if (first == kNone || second == kNone) return first == second;
  const Graph& graph = lowering.graph();
  const Node& one = graph.nodes[first];
  const Node& other = graph.nodes[second];
  return graph.values[one.outputs[0]].type == graph.values[other.outputs[0]].type &&
         is_same(*tensor_quant(lowering, one), *tensor_quant(lowering, other));
}

// Whether `longer` begins with all that `node` holds, and adds something.
bool extends(const Lowering& lowering, const Node& longer, const Node& node) {
  const Graph& graph = lowering.graph();
  if (longer.op != "Concat" || axis_of(graph, longer) != axis_of(graph, node)) return false;
  if (!are_stored_alike(lowering, longer, node)) return false;
  if (longer.inputs.size() > 1 && longer.inputs[0] == read_value(lowering, node)) return true;
  return longer.inputs.size() > node.inputs.size() &&
         std::equal(node.inputs.begin(), node.inputs.end(), longer.inputs.begin());
}

// Pointwise passes and copies read what has gaps as it lies; all else would copy it first.
bool takes_gaps(const Lowering& lowering, const Node& node) {
  const Graph& graph = lowering.graph();
  const int value = read_value(lowering, node);
  if (value == kNone || graph.values[value].n_outputs > 0) return false;
  const std::vector<int>& users = graph.values[value].users;
  return std::all_of(users.begin(), users.end(), [&](int user) {
    return graph.nodes[user].op == "Concat" || is_pointwise(graph, graph.nodes[user]);
  });
}

// The longest Concat of those that each extend the one before; `index` where none does.
int longest_of(const Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  int longest = index;
  for (int i = index + 1; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& before = graph.nodes[longest];
    if (graph.nodes[i].op != "Concat" || !extends(lowering, graph.nodes[i], before)) continue;
    if (!takes_gaps(lowering, before)) break;
    longest = i;
  }
  return longest;
}

// How many of the node's inputs lie in the room, as all that it holds; nothing: others do.
std::optional<size_t> inputs_in(const Lowering& lowering,
                                const ConcatRoom& room,
                                const Node& node) {
  const View& first = lowering.view(node.inputs[0]);
  Dims held = room.whole.dims;
  held[room.axis] = room.filled;
  const bool is_last_result =  // and no part or other form of it
      first.buffer == room.whole.buffer && first.offset == room.whole.offset &&
      first.dims == held && same_strides(held, first.strides, room.whole.strides) &&
      is_same(first.quant, room.whole.quant);
  if (is_last_result) return 1;
  const bool are_listed = node.inputs.size() >= room.values.size() &&
                          std::equal(room.values.begin(), room.values.end(), node.inputs.begin());
  return are_listed ? std::optional(room.values.size()) : std::nullopt;
}

}  // namespace

bool in_concat_room(const Lowering& lowering, int value) {
  const std::vector<ConcatRoom>& rooms = lowering.concat_rooms();
  return std::any_of(rooms.begin(), rooms.end(), [&](const ConcatRoom& room) {
    return room.whole.buffer == lowering.view(value).buffer;
  });
}

RoomPart find_concat_room(Lowering& lowering, int index, const View& result) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const size_t axis = axis_of(graph, node);
  for (ConcatRoom& room : lowering.concat_rooms()) {
    const View& whole = room.whole;
    const bool fits = room.axis == axis && whole.type == result.type &&
                      is_same(whole.quant, result.quant) && room.filled < result.dims[axis] &&
                      result.dims[axis] <= whole.dims[axis];
    const std::optional<size_t> held = fits ? inputs_in(lowering, room, node) : std::nullopt;
    if (!held) continue;
    const RoomPart part{whole, *held, room.filled};
    room.values = node.inputs;
    room.filled = result.dims[axis];
    return part;
  }
  const int longest = longest_of(lowering, index);
  if (longest == index || result.count() == 0) return {};
  ConcatRoom room{
      .whole = result, .axis = axis, .values = node.inputs, .filled = result.dims[axis]};
  room.whole.dims = graph.values[graph.nodes[longest].outputs[0]].dims;
  room.whole.strides = dense_strides_like(room.whole.dims, result.strides);
  room.whole.buffer = lowering.scratch(room.whole.bytes());
  lowering.concat_rooms().push_back(room);
  return {room.whole, 0, 0};
}

}  // namespace tenon::onednn
