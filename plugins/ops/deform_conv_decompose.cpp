// SPDX-License-Identifier: Apache-2.0
// DeformConv from smaller operators, for its gradients and vmap: the pixels under every tap,
// gathered, and a product with the weights. Where all sizes are known.
#include "corners.hpp"
#include "deform_conv.hpp"

namespace tenon::ops::deform {
namespace {

struct Sizes {
  Window window;
  std::vector<int64_t> x, w, y;
  int64_t groups, offset_groups, taps, points;
  uint32_t dtype;  // that it is computed in

  int64_t images() const { return x[0] * offset_groups; }  // with their group of channels
};
Result<Sizes> sizes_of(Node node) {
  Type x = node.input(kX).type(), w = node.input(kW).type(), y = node.output().type();
  if (!x.is_static() || !w.is_static() || !y.is_static() || x.rank() != 4 || w.rank() != 4)
    return unsupported("DeformConv: composite where all sizes are known");
  TN_TRY(window, window_of(node, std::span(x.dims).subspan(2), std::span(w.dims).subspan(2)));
  return Sizes{window,
               x.dims,
               w.dims,
               y.dims,
               node.attr_int("group", 1),
               node.attr_int("offset_group", 1),
               w.dims[2] * w.dims[3],
               y.dims[2] * y.dims[3],
               x.dtype == TN_F64 ? TN_F64 : TN_F32};
}

// Where the taps meet the image without offsets, along one axis: [taps * points].
Value regular_places(Builder& b, const Sizes& z, bool along_rows) {
  size_t axis = kMaxSpatial - (along_rows ? 2 : 1);
  std::vector<double> at;
  for (int64_t tap = 0; tap < z.taps; ++tap)
    for (int64_t point = 0; point < z.points; ++point)
      at.push_back(
          static_cast<double>(along_rows ? z.window.position(axis, point / z.y[3], tap / z.w[3])
                                         : z.window.position(axis, point % z.y[3], tap % z.w[3])));
  Value wide = b.take(b.edit().constant<double>(TN_F64, {z.taps * z.points}, at));
  return b.cast(wide, z.dtype);
}

// The two lines of pixels around each place; outside of the image nothing has a share.
std::vector<Line> lines_around(Builder& b, const Sizes& z, Value offsets, bool along_rows) {
  Value mine = b.op("Gather", {offsets, b.number(along_rows ? 0 : 1, TN_I64)}, {{"axis", 2}});
  Value place =
      b.add(b.reshape(mine, {z.images(), z.taps * z.points}), regular_places(b, z, along_rows));
  Value first = b.op("Floor", {place}), rest = b.sub(place, first), one = b.number(1, z.dtype);
  Value none = b.number(0, z.dtype);
  Value last = b.number(static_cast<double>(z.x[along_rows ? 2 : 3] - 1), z.dtype);
  std::vector<Line> out{{first, b.sub(one, rest)}, {b.add(first, one), rest}};
  for (Line& line : out) {
    Value within = b.op("Clip", {line.at, none, last});
    line.share = b.op("Where", {b.op("Equal", {within, line.at}), line.share, none});
    line.at = within;
  }
  return out;
}

}  // namespace

Result<std::vector<Value>> decomposed(EditView edit, Node node) {
  TN_TRY(z, sizes_of(node));
  Builder b(edit);
  auto input = [&, &sizes = z](Input i) { return b.cast(node.input(i), sizes.dtype); };
  int64_t images = z.images(), run = z.w[1] * z.taps, all = z.taps * z.points;
  Value planes = b.reshape(input(kX), {images, z.x[1] / z.offset_groups, z.x[2] * z.x[3]});
  Value offsets = b.reshape(input(kOffset), {images, z.taps, 2, z.points});
  Value columns = between_corners(b, planes, lines_around(b, z, offsets, true),
                                  lines_around(b, z, offsets, false), z.x[3]);
  if (node.input(kMask)) columns = b.mul(columns, b.reshape(input(kMask), {images, 1, all}));
  columns = b.reshape(columns, {z.x[0], z.groups, run, z.points});
  Value weights = b.reshape(input(kW), {z.groups, z.w[0] / z.groups, run});
  Value y = b.reshape(b.op("MatMul", {weights, columns}), z.y);
  if (node.input(kB)) y = b.add(y, b.reshape(input(kB), {z.w[0], 1, 1}));
  y = b.cast(y, node.input(kX).dtype());
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

}  // namespace tenon::ops::deform
