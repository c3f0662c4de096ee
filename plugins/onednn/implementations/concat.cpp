// SPDX-License-Identifier: Apache-2.0
// Concat: each input is copied to its place in the result; between quantized values the copies move
// integers, with new scales where they differ. Where inputs lie in memory as the result does, one
// step writes its rows from end to end. A Concat that begins with all that an earlier one holds
// adds the rest to it (lowering/concat_room).

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "byte_table.hpp"
#include "channel_moves.hpp"
#include "handlers.hpp"
#include "lowering/concat_room.hpp"
#include "lowering/epilogue.hpp"

namespace tenon::onednn {
namespace {

// What one input adds to each row of the result.
struct RowPiece {
  int64_t bytes = 0;
  int64_t at = 0;  // in the row
  Requantization quantized = {};
};

// What is written of a result's rows: what its axis and those inside of it hold.
struct RowConcat {
  std::vector<RowPiece> pieces;
  std::vector<Place> places;
  int64_t row_bytes = 0;  // from one row to the next
  int64_t rows = 0;

  int64_t written() const {  // bytes of each row
    int64_t bytes = 0;
    for (const RowPiece& piece : pieces)
      bytes += piece.bytes;
    return bytes;
  }
};

// The inputs of a Concat from `first` on, and where they go: from the index `begin` of `axis` on.
struct Part {
  const Node& node;
  View whole;  // all that the memory has room for
  size_t axis = 0;
  size_t first = 0;
  int64_t begin = 0;
};

// Shorter pieces are not worth a call each.
constexpr int64_t kLeastBytes = 16;

std::optional<RowPiece> row_piece(const View& from, const View& whole, int64_t inner) {
  if (from.count() == 0) return std::nullopt;
  if (!same_strides(from.dims, from.strides, dense_strides_like(from.dims, whole.strides)))
    return std::nullopt;
  RowPiece piece;
  piece.bytes = inner * kernels::element_bytes(from.type);
  if (piece.bytes < kLeastBytes) return std::nullopt;
  const std::optional<Requantization> quantized = requantization(from, whole);
  if (!quantized) return std::nullopt;
  piece.quantized = *quantized;
  return piece;
}

std::optional<RowConcat> by_rows(Lowering& lowering, const Part& part) {
  const View& whole = part.whole;
  int64_t inside = 1;  // numbers inside of the axis
  for (size_t i = 0; i < whole.dims.size(); ++i)
    if (i != part.axis && whole.strides[i] < whole.strides[part.axis]) inside *= whole.dims[i];
  RowConcat made;
  const int64_t index_bytes = inside * kernels::element_bytes(whole.type);
  int64_t at = part.begin * index_bytes;
  for (size_t i = part.first; i < part.node.inputs.size(); ++i) {
    const View& from = lowering.view(part.node.inputs[i]);
    std::optional<RowPiece> piece = row_piece(from, whole, inside * from.dims[part.axis]);
    if (!piece) return std::nullopt;
    piece->at = at;
    at += piece->bytes;
    made.places.push_back(place_of(from));
    made.pieces.push_back(std::move(*piece));
  }
  made.row_bytes = whole.dims[part.axis] * index_bytes;
  made.rows = whole.bytes() / made.row_bytes;
  made.places.push_back(place_of(whole));
  return made;
}

void write_rows(const RowConcat& concat,
                const kernels::Context& context,
                void* const* pointers,
                int64_t lo,
                int64_t hi) {
  auto* to = static_cast<uint8_t*>(pointers[concat.pieces.size()]) + lo * concat.row_bytes;
  for (size_t i = 0; i < concat.pieces.size(); ++i) {
    const RowPiece& piece = concat.pieces[i];
    const uint8_t* from = static_cast<const uint8_t*>(pointers[i]) + lo * piece.bytes;
    if (piece.quantized.table != nullptr) {
      context.table->map_bytes(piece.quantized.table->data(), {.src = from,
                                                               .dst = to + piece.at,
                                                               .n = piece.bytes,
                                                               .rows = hi - lo,
                                                               .src_stride = piece.bytes,
                                                               .dst_stride = concat.row_bytes});
      continue;
    }
    for (int64_t row = 0; row < hi - lo; ++row)
      std::memcpy(to + row * concat.row_bytes + piece.at, from + row * piece.bytes,
                  static_cast<size_t>(piece.bytes));
  }
}

void add_row_concat(Lowering& lowering, const std::string& name, RowConcat concat) {
  Step step{.name = name, .kernel = "tenon:concat", .always_succeeds = true};
  const int64_t written = concat.written();
  step.bytes = 2.0 * static_cast<double>(concat.rows * written);
  step.places = std::move(concat.places);
  const bool requantizes =
      std::any_of(concat.pieces.begin(), concat.pieces.end(),
                  [](const RowPiece& piece) { return piece.quantized.table != nullptr; });
  if (concat.rows == 1 && written == concat.row_bytes && !requantizes)
    for (const RowPiece& piece : concat.pieces)
      step.end_to_end.push_back(piece.bytes);
  step.kernel_function = [concat = std::move(concat), written](
                             const kernels::Context& context,
                             void* const* pointers) -> const char* {
    kernels::parallel_for(
        context.parallel, concat.rows, kernels::grain_rows(2 * written),
        [&](int64_t lo, int64_t hi) { write_rows(concat, context, pointers, lo, hi); });
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

// Type and scale of inputs that all are quantized alike: a Concat moves their quantized values.
const View* quantized_alike(const Lowering& lowering, const Node& node) {
  const View& first = lowering.view(node.inputs[0]);
  const bool are_alike = std::all_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
    const View& view = lowering.view(input);
    return view.channels == nullptr && view.quant.scale > 0 && view.type == first.type &&
           kernels::element_bytes(view.type) == 1 && is_same(view.quant, first.quant);
  });
  return are_alike ? &first : nullptr;
}

// How the result is stored, still without memory, and the value that it is the view of: behind
// QuantizeLinear the quantized values.
struct ResultPlace {
  View view = {};
  int value = kNone;
  bool is_stored = false;  // the value is what is stored, whatever the scale says to the copies
};

ResultPlace describe_result(Lowering& lowering, const Node& node) {
  ResultPlace made{.value = node.outputs[0]};
  const Value& value = lowering.graph().values[made.value];
  View& whole = made.view;
  whole.type = value.type;
  whole.dims = value.dims;
  const View& first = lowering.view(node.inputs[0]);
  bool follows = !lowering.is_constant_view(first) &&
                 (is_dense(first) || in_concat_room(lowering, node.inputs[0]));
  whole.strides =
      follows ? dense_strides_like(value.dims, first.strides) : row_major_strides(value.dims);
  if (value.type != ElementType::kF32) return made;
  const bool stays = value.n_outputs > 0 || value.is_exact;
  whole.type = stays ? ElementType::kF32 : lowering.real_type();
  if (int quantize = only_quantize(lowering, made.value); quantize != kNone) {
    const Node& user = lowering.graph().nodes[quantize];
    lowering.mark_done(quantize);
    whole.quant = *tensor_quant(lowering, user);
    made.value = user.outputs[0];
    made.is_stored = true;
    whole.type = lowering.graph().values[made.value].type;
  } else if (const View* alike = quantized_alike(lowering, node);
             alike != nullptr && value.n_outputs == 0) {
    whole.quant = alike->quant;
    whole.type = alike->type;
  }
  return made;
}

// The view's numbers in its own type and scale, dense and aside: a conversion writes runs, and a
// piece of one channel between others has none.
View converted_aside(Lowering& lowering, const Node& node, const View& from, const View& to) {
  View aside = to;
  aside.strides = row_major_strides(to.dims);
  aside.offset = 0;
  aside.buffer = lowering.scratch(aside.bytes());
  lowering.add_copy(node.name, from, aside);
  return aside;
}

bool has_runs(const View& view) {
  for (size_t i = 0; i < view.dims.size(); ++i)
    if (view.dims[i] != 1 && view.strides[i] == 1) return true;
  return view.count() == 1;
}

void copy_inputs(Lowering& lowering, const Part& part) {
  View target = part.whole;
  target.offset += part.begin * part.whole.strides[part.axis];
  for (size_t i = part.first; i < part.node.inputs.size(); ++i) {
    View from = lowering.view(part.node.inputs[i]);
    if (from.channels != nullptr) from = lowering.dequantized_constant(from);
    target.dims = from.dims;
    View to = target;
    bool moves = from.type == to.type && is_same(from.quant, to.quant);
    if (!moves && from.count() > 0 && !has_runs(to)) {
      from = converted_aside(lowering, part.node, from, to);
      moves = true;
    }
    if (moves) from.quant = to.quant = {};
    if (from.count() > 0) lowering.add_copy(part.node.name, from, to);
    target.offset += from.dims[part.axis] * part.whole.strides[part.axis];
  }
}

}  // namespace

std::string refuse_concat(const Graph& graph, const Node& node) {
  return graph.values[node.outputs[0]].dims.size() > 8 ? "more than eight axes" : "";
}

void lower_concat(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  // What lies in a room is added to, in the next branch, rather than moved.
  if (!in_concat_room(lowering, node.inputs[0]) && lower_channel_concat(lowering, index)) return;
  ResultPlace result = describe_result(lowering, node);
  View& view = result.view;
  const int64_t axis = positive_axis(node.integer("axis", 0), view.dims.size());
  Part part{.node = node, .whole = view, .axis = static_cast<size_t>(axis)};
  if (const RoomPart room = find_concat_room(lowering, index, view)) {
    part.whole = room.whole;
    part.first = room.first;
    part.begin = room.begin;
  } else {
    part.whole.buffer = lowering.scratch(part.whole.bytes());
  }
  view.buffer = part.whole.buffer;
  view.strides = part.whole.strides;
  if (auto rows = by_rows(lowering, part)) {
    add_row_concat(lowering, node.name, std::move(*rows));
  } else {
    copy_inputs(lowering, part);
  }
  if (result.is_stored) view.quant = {};
  lowering.set_view(result.value, view);
}

}  // namespace tenon::onednn
