// SPDX-License-Identifier: Apache-2.0
// CropAndResize, GridSample and Pad of ONNX Runtime's domain, which ONNX has in another form or not
// at all.
#include <algorithm>
#include <array>

#include "cells.hpp"
#include "dims.hpp"
#include "fused.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using fused::kDomain;
using fused::made;

// ---- GridSample: ONNX's before opset 20, with its names of modes

Status grid_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), grid = node.input(1).type();
  if (!x.ranked || !grid.ranked) return set_output(edit, node, 0, unranked(x.dtype));
  Dims in = dims_of(x), at = dims_of(grid);
  return set_output(edit, node, 0, x.dtype, {in[0], in[1], at[1], at[2]});
}
Result<std::vector<Value>> grid_decompose(EditView edit, Node node) {
  Builder b(edit);
  const std::string_view mode = node.attr_text("mode", "bilinear");
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kModes{
      {{"bilinear", "linear"}, {"nearest", "nearest"}, {"bicubic", "cubic"}}};
  const auto* found = std::ranges::find(kModes, mode, [](const auto& one) { return one.first; });
  if (found == kModes.end())
    return invalid(cat("mode: expected bilinear, nearest or bicubic, got '", mode, "'"));
  return made(b, b.op("GridSample", {node.input(0), node.input(1)},
                      {{"mode", found->second},
                       {"padding_mode", node.attr_text("padding_mode", "zeros")},
                       {"align_corners", node.attr_int("align_corners")}}));
}
Result<Node> grid_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {1, 2, 3, 4}));
  TN_TRY(grid, random.input(TN_F32, {1, 2, 3, 2}));
  return edit.add({.type = "GridSample",
                   .inputs = {x, grid},
                   .attrs = {{"align_corners", random.integer(0, 1)}},
                   .domain = kDomain});
}

// ---- Pad: amounts of one row or in a matrix of one row

std::optional<Dims> amounts_of(Node node) {
  const Value pads = node.input(1);
  if (!pads.is_constant()) return contents(pads);
  const std::vector<int64_t> all = read_ints(pads.constant().dl());
  return Dims(all.begin(), all.end());
}

Status pad_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, unranked(x.dtype));
  Dims dims = dims_of(x);
  const std::optional<Dims> pads = amounts_of(node);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (pads && pads->size() != 2 * dims.size())
      return invalid(cat("pads: expected ", 2 * dims.size(), " numbers, got ", pads->size()));
    dims[d] = pads ? dims[d] + (*pads)[d] + (*pads)[d + dims.size()] : Dim();
  }
  return set_output(edit, node, 0, x.dtype, dims);
}
Result<std::vector<Value>> pad_decompose(EditView edit, Node node) {
  Builder b(edit);
  const std::optional<Dims> pads = amounts_of(node);
  const std::optional<std::vector<int64_t>> known = pads ? known_ints(*pads) : std::nullopt;
  std::vector<Value> inputs{node.input(0), known ? b.ints(*known) : b.reshape(node.input(1), {-1})};
  if (node.input(2)) inputs.push_back(b.reshape(node.input(2), {}));
  return made(b, b.op("Pad", inputs, {{"mode", node.attr_text("mode", "constant")}}));
}
Result<Node> pad_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {2, 3}));
  TN_TRY(pads, edit.constant<int64_t>(TN_I64, {1, 4}, std::vector<int64_t>{0, 1, 1, 2}));
  constexpr std::string_view kModes[] = {"constant", "reflect", "edge"};
  return edit.add({.type = "Pad",
                   .inputs = {x, pads},
                   .attrs = {{"mode", kModes[random.integer(0, 2)]}},
                   .domain = kDomain});
}

// ---- CropAndResize, TensorFlow's with channels first

Status crop_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  std::optional<Dims> size = contents(node.input(3));
  const bool is_known = size && size->size() == 2;
  Type boxes = node.input(1).type();
  return set_output(edit, node, 0, x.dtype,
                    {boxes.ranked ? dims_of(boxes)[0] : Dim(), x.ranked ? dims_of(x)[1] : Dim(),
                     is_known ? (*size)[0] : Dim(), is_known ? (*size)[1] : Dim()});
}

// One axis of all boxes, [n, size]: where the image is read, and whether that is inside.
struct Places {
  Value low, high, share;  // i64 i64 f32: the two neighbours, and how far behind the first
  Value nearest;           // i64
  Value is_inside;
};
Places places_of(Builder& b, Value begin, Value end, Value last, int64_t size) {
  Value from = b.mul(begin, last), to = b.mul(end, last), at;
  if (size == 1) {
    at = b.mul(b.mul(b.add(begin, end), b.number(0.5, TN_F32)), last);
  } else {
    std::vector<float> steps(static_cast<size_t>(size)), is_last(steps.size());
    for (size_t i = 0; i < steps.size(); ++i)
      steps[i] = static_cast<float>(i);
    is_last.back() = 1;  // exactly the end
    Value step = b.div(b.mul(b.sub(end, begin), last), b.number(double(size - 1), TN_F32));
    Value row = b.take(b.edit().constant<float>(TN_F32, {1, size}, steps));
    Value ends = b.cast(b.take(b.edit().constant<float>(TN_F32, {1, size}, is_last)), TN_BOOL);
    at = b.op("Where", {ends, to, b.add(from, b.mul(row, step))});
  }
  Value zero = b.number(0, TN_F32);
  Value inside = b.op("And", {b.op("GreaterOrEqual", {at, zero}), b.op("LessOrEqual", {at, last})});
  Value kept = b.op("Where", {inside, at, zero});
  Value low = b.op("Floor", {kept}), high = b.op("Ceil", {kept});
  Value share = b.sub(kept, low);
  Value is_over = b.op("GreaterOrEqual", {share, b.number(0.5, TN_F32)});  // halves go up
  Value nearest = b.op("Where", {is_over, high, low});
  return {b.cast(low, TN_I64), b.cast(high, TN_I64), share, b.cast(nearest, TN_I64), inside};
}

class Cropping {
 public:
  Cropping(Builder& b, Node node) : b_(b), node_(node) {}

  Result<std::vector<Value>> run() {
    const std::optional<std::vector<int64_t>> size = known_ints(node_.input(3));
    const std::string_view mode = node_.attr_text("mode", "bilinear");
    if (!size || size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1)
      return unsupported("decomposed only where crop_size is known: two numbers from 1 on");
    if (mode != "bilinear" && mode != "nearest")
      return invalid(cat("mode: expected bilinear or nearest, got '", mode, "'"));
    rows_ = axis(0, 2, (*size)[0]), columns_ = axis(1, 3, (*size)[1]);
    pixels_ = b_.transpose(node_.input(0), {0, 2, 3, 1});
    Value y = mode == "nearest" ? at(rows_.nearest, columns_.nearest) : bilinear();
    Value inside = b_.op("And", {wide(rows_.is_inside, {2, 3}), wide(columns_.is_inside, {1, 3})});
    const uint32_t dtype = pixels_.dtype();
    Value other = b_.number(node_.attr_float("extrapolation_value"), dtype);
    return made(b_, b_.transpose(b_.op("Where", {inside, y, other}), {0, 3, 1, 2}));
  }

 private:
  // From columns of the boxes: the image's axis behind channels.
  Places axis(int64_t begin, int64_t end, int64_t size) {
    auto column = [&](int64_t i) {
      Value one = b_.op("Slice", {node_.input(1), b_.ints({i}), b_.ints({i + 1}), b_.ints({1})});
      return b_.cast(one, TN_F32);
    };
    Value length = fused::dim_of(b_, node_.input(0), begin + 2);
    Value last = b_.cast(b_.sub(length, b_.ints({1})), TN_F32);
    return places_of(b_, column(begin), column(end), last, size);
  }
  Value wide(Value x, const std::vector<int64_t>& axes) {
    return b_.op("Unsqueeze", {x, b_.ints(axes)});
  }
  // The pixels of all boxes at these rows and columns: [n, height, width, channels].
  Value at(Value row, Value column) {
    Value image = b_.reshape(b_.cast(node_.input(2), TN_I64), {-1, 1, 1});
    Value y = wide(row, {2}), x = wide(column, {1});
    Value zeros = b_.mul(b_.add(y, x), b_.number(0, TN_I64));
    std::vector<Value> parts;
    for (Value one : {image, y, x})
      parts.push_back(wide(b_.add(one, zeros), {3}));
    return b_.op("GatherND", {pixels_, b_.op("Concat", parts, {{"axis", 3}})});
  }
  Value between(Value a, Value z, Value share) { return b_.add(a, b_.mul(b_.sub(z, a), share)); }
  Value bilinear() {
    const uint32_t dtype = pixels_.dtype();
    Value down = b_.cast(wide(rows_.share, {2, 3}), dtype),
          right = b_.cast(wide(columns_.share, {1, 3}), dtype);
    Value top = between(at(rows_.low, columns_.low), at(rows_.low, columns_.high), right);
    Value bottom = between(at(rows_.high, columns_.low), at(rows_.high, columns_.high), right);
    return between(top, bottom, down);
  }

  Builder& b_;
  Node node_;
  Places rows_, columns_;
  Value pixels_;  // [images, height, width, channels]
};
Result<std::vector<Value>> crop_decompose(EditView edit, Node node) {
  Builder b(edit);
  return Cropping(b, node).run();
}
Result<Node> crop_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {2, 3, 4, 5}));
  TN_TRY(boxes, edit.constant<float>(
                    TN_F32, {2, 4}, std::vector<float>{0, 0.1f, 0.9f, 1, 0.3f, -0.2f, 0.7f, 0.6f}));
  TN_TRY(images, edit.constant<int32_t>(TN_I32, {2}, std::vector<int32_t>{1, 0}));
  const std::vector<int32_t> wanted{static_cast<int32_t>(random.integer(1, 3)), 2};
  TN_TRY(size, edit.constant<int32_t>(TN_I32, {2}, wanted));
  return edit.add(
      {.type = "CropAndResize",
       .inputs = {x, boxes, images, size},
       .attrs = {{"mode", random.coin() ? "bilinear" : "nearest"}, {"extrapolation_value", 0.5}},
       .domain = kDomain});
}

constexpr tn_op kGrid =
    op_row({.type = "GridSample",
            .domain = kDomain,
            .attributes = R"([{"name": "align_corners", "type": "int", "default": 0},
                              {"name": "mode", "type": "string", "default": "bilinear"},
                              {"name": "padding_mode", "type": "string", "default": "zeros"}])",
            .shape = shape<grid_shape, "x: T[n c h w], grid: T[n h' w' 2] ; T = float">,
            .decompose = decompose<grid_decompose>,
            .sample = sample<grid_sample>});
constexpr tn_op kPad =
    op_row({.type = "Pad",
            .domain = kDomain,
            .attributes = R"([{"name": "mode", "type": "string", "default": "constant"}])",
            .shape = shape<pad_shape, "x: T, pads: i64, value: T[one]?">,
            .decompose = decompose<pad_decompose>,
            .sample = sample<pad_sample>});
constexpr tn_op kCrop = op_row(
    {.type = "CropAndResize",
     .domain = kDomain,
     .attributes = R"([{"name": "extrapolation_value", "type": "float", "default": 0.0},
                       {"name": "mode", "type": "string", "default": "bilinear"}])",
     .shape = shape<crop_shape,
                    "x: T[m c h w], rois: T[n 4], batch_indices: i32[n], crop_size: i32[2] ; "
                    "T = float">,
     .decompose = decompose<crop_decompose>,
     .sample = sample<crop_sample>});

}  // namespace

TENON_OPS(image_operators, &kGrid, &kPad, &kCrop)

}  // namespace tenon::ops
