// SPDX-License-Identifier: Apache-2.0
// Concat: each input is copied to its place in the result; between quantised values the copies move
// integers, with new scales where they differ. Where inputs lie in memory as the result does, one
// step writes its rows from end to end.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "byte_table.hpp"
#include "channel_moves.hpp"
#include "handlers.hpp"
#include "lowering/epilogue.hpp"

namespace tenon::onednn {
namespace {

// What one input adds to each row of the result.
struct Piece {
  int64_t bytes = 0;
  int64_t at = 0;  // in the row
  Requantization quantized = {};
};

// A result's rows: what its axis and those inside of it hold.
struct RowConcat {
  std::vector<Piece> pieces;
  std::vector<Place> places;
  int64_t row_bytes = 0;
  int64_t rows = 0;
};

// Shorter pieces are not worth a call each.
constexpr int64_t kLeastBytes = 16;

std::optional<Piece> piece_of(const View& from, const View& whole, int64_t inner) {
  if (from.count() == 0) return std::nullopt;
  if (!same_strides(from.dims, from.strides, dense_strides_like(from.dims, whole.strides)))
    return std::nullopt;
  Piece piece;
  piece.bytes = inner * kernels::element_bytes(from.type);
  if (piece.bytes < kLeastBytes) return std::nullopt;
  const std::optional<Requantization> quantized = requantization(from, whole);
  if (!quantized) return std::nullopt;
  piece.quantized = *quantized;
  return piece;
}

std::optional<RowConcat> by_rows(Lowering& lowering,
                                 const Node& node,
                                 const View& whole,
                                 size_t axis) {
  int64_t inside = 1;  // numbers inside of the axis
  for (size_t i = 0; i < whole.dims.size(); ++i)
    if (i != axis && whole.strides[i] < whole.strides[axis]) inside *= whole.dims[i];
  RowConcat made;
  for (int input : node.inputs) {
    const View& from = lowering.view(input);
    std::optional<Piece> piece = piece_of(from, whole, inside * from.dims[axis]);
    if (!piece) return std::nullopt;
    piece->at = made.row_bytes;
    made.row_bytes += piece->bytes;
    made.places.push_back(place_of(from));
    made.pieces.push_back(std::move(*piece));
  }
  made.rows = whole.bytes() / made.row_bytes;
  made.places.push_back(place_of(whole));
  return made;
}

void write_rows(const RowConcat& concat,
                const kernels::Context& context,
                void* const* pointers,
                int64_t lo,
                int64_t hi) {
  auto* to = static_cast<uint8_t*>(pointers[concat.pieces.size()]);
  for (size_t i = 0; i < concat.pieces.size(); ++i) {
    const Piece& piece = concat.pieces[i];
    const auto* from = static_cast<const uint8_t*>(pointers[i]);
    for (int64_t row = lo; row < hi; ++row) {
      uint8_t* const target = to + row * concat.row_bytes + piece.at;
      const uint8_t* const source = from + row * piece.bytes;
      if (piece.quantized.table == nullptr) {
        std::memcpy(target, source, static_cast<size_t>(piece.bytes));
      } else {
        context.table->map_bytes(piece.quantized.table->data(), source, piece.bytes, target);
      }
    }
  }
}

void add_row_concat(Lowering& lowering, const std::string& name, RowConcat concat) {
  Step step{.name = name, .kernel = "tenon:concat", .always_succeeds = true};
  step.bytes = 2.0 * static_cast<double>(concat.rows * concat.row_bytes);
  step.places = std::move(concat.places);
  const bool requantizes =
      std::any_of(concat.pieces.begin(), concat.pieces.end(),
                  [](const Piece& piece) { return piece.quantized.table != nullptr; });
  if (concat.rows == 1 && !requantizes)
    for (const Piece& piece : concat.pieces)
      step.end_to_end.push_back(piece.bytes);
  step.kernel_function = [concat = std::move(concat)](const kernels::Context& context,
                                                      void* const* pointers) -> const char* {
    kernels::parallel_for(
        context.parallel, concat.rows, kernels::grain_rows(2 * concat.row_bytes),
        [&](int64_t lo, int64_t hi) { write_rows(concat, context, pointers, lo, hi); });
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

// The result's memory, and the value that it is the view of: behind QuantizeLinear the quantized
// values.
View place_result(Lowering& lowering, const Node& node, int* result) {
  const Value& value = lowering.graph().values[*result];
  View whole{.type = value.type, .dims = value.dims};
  const View& first = lowering.view(node.inputs[0]);
  bool follows = is_dense(first) && !lowering.is_constant_view(first);
  whole.strides =
      follows ? dense_strides_like(value.dims, first.strides) : row_major_strides(value.dims);
  if (value.type == ElementType::kF32) {
    whole.type = value.n_outputs > 0 ? ElementType::kF32 : lowering.real_type();
  }
  if (int quantize = only_quantize(lowering, *result); quantize != kNone) {
    const Node& user = lowering.graph().nodes[quantize];
    lowering.mark_done(quantize);
    whole.quant = *tensor_quant(lowering, user);
    *result = user.outputs[0];
    whole.type = lowering.graph().values[*result].type;
  }
  whole.buffer = lowering.scratch(whole.bytes());
  return whole;
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

void copy_inputs(Lowering& lowering, const Node& node, const View& whole, size_t axis) {
  View part = whole;
  for (int input : node.inputs) {
    View from = lowering.view(input);
    if (from.channels != nullptr) from = lowering.dequantized_constant(from);
    part.dims = from.dims;
    View to = part;
    bool moves = from.type == to.type && is_same(from.quant, to.quant);
    if (!moves && from.count() > 0 && !has_runs(to)) {
      from = converted_aside(lowering, node, from, to);
      moves = true;
    }
    if (moves) from.quant = to.quant = {};
    if (from.count() > 0) lowering.add_copy(node.name, from, to);
    part.offset += from.dims[axis] * whole.strides[axis];
  }
}

}  // namespace

std::string refuse_concat(const Graph& graph, const Node& node) {
  return graph.values[node.outputs[0]].dims.size() > 8 ? "more than eight axes" : "";
}

void lower_concat(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  int result = node.outputs[0];
  if (lower_channel_concat(lowering, index)) return;
  int64_t axis = node.integer("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(lowering.graph().values[result].dims.size());
  View whole = place_result(lowering, node, &result);
  if (auto rows = by_rows(lowering, node, whole, static_cast<size_t>(axis))) {
    add_row_concat(lowering, node.name, std::move(*rows));
  } else {
    copy_inputs(lowering, node, whole, static_cast<size_t>(axis));
  }
  whole.quant = {};
  lowering.set_view(result, whole);
}

}  // namespace tenon::onednn
