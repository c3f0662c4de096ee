// SPDX-License-Identifier: Apache-2.0
// Col2Im: windows added up to the image that they are of.
#include <algorithm>

#include "tenon/wrapping.hpp"

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

// x [n, c*block, windows] gives [n, c, image..].
Status col2im_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  std::optional<Dims> image = contents(node.input(1)), block = contents(node.input(2));
  if (!image) return set_output(edit, node, 0, unranked(x.dtype));
  if (block && block->size() != image->size())
    return invalid(cat("block: expected ", image->size(), " sizes, got ", block->size()));
  for (const char* name : {"strides", "dilations"})
    for (int64_t number : ints_or(node, name, image->size(), 1))
      if (number < 1 || number > INT32_MAX)
        return invalid(cat(name, ": expected numbers from 1, got ", number));
  for (auto [name, times] : {std::pair{"strides", 1u}, {"dilations", 1u}, {"pads", 2u}})
    if (size_t n = ints_or(node, name, times * image->size(), 1).size(); n != times * image->size())
      return invalid(cat(name, ": expected ", times * image->size(), " numbers, got ", n));
  for (const Dims* sizes : {&*image, block ? &*block : &*image})
    for (const Dim& size : *sizes)
      if (size.known() && *size.value < 1)
        return invalid(cat("image and block: expected sizes from 1, got ", *size.value));
  Dims in = x.ranked && x.rank() == 3 ? dims_of(x) : Dims(3), out{in[0], Dim()};
  if (block) out[1] = quotient({in[1]}, *block);
  out.insert(out.end(), image->begin(), image->end());
  return set_output(edit, node, 0, x.dtype, out);
}

// Where the taps of the windows meet the image.
struct Windows {
  Ints image, block, dilations, pads, strides;
  Ints counts = {};  // of windows, along each axis
  Ints steps = {};   // from one row of the image to the next

  static Result<Windows> of(Node node, std::span<const int64_t> x, Ints image, Ints block) {
    size_t n = image.size();
    Windows w{std::move(image), std::move(block), ints_or(node, "dilations", n, 1),
              ints_or(node, "pads", 2 * n, 0), ints_or(node, "strides", n, 1)};
    bool fits = x.size() == 3 && w.block.size() == n && w.dilations.size() == n &&
                w.pads.size() == 2 * n && w.strides.size() == n;
    for (const Ints* sizes : {&w.image, &w.block, &w.strides, &w.dilations})
      fits = fits && std::ranges::all_of(*sizes, [](int64_t size) { return size > 0; });
    if (!fits)
      return invalid("expected x [n, c*block, windows], and sizes from 1 for each image axis");
    for (size_t d = 0; d < n; ++d) {
      int64_t room = w.image[d] + w.pads[d] + w.pads[n + d] - w.dilations[d] * (w.block[d] - 1) - 1;
      w.counts.push_back(room < 0 ? 0 : room / w.strides[d] + 1);
    }
    w.steps = dense_strides(w.image);
    int64_t taps = w.n_taps(), count = element_count(w.counts);
    if (x[1] % taps != 0 || x[2] != count)
      return invalid(cat("x: expected [n, c*", taps, ", ", count, "]"));
    return w;
  }
  int64_t n_taps() const { return element_count(block); }
  // The element of the image, or -1 in the padding.
  int64_t at(const Odometer& window, const Odometer& tap) const {
    int64_t sum = 0;
    for (size_t d = 0; d < image.size(); ++d) {
      int64_t i = window[d] * strides[d] - pads[d] + tap[d] * dilations[d];
      if (i < 0 || i >= image[d]) return -1;
      sum += i * steps[d];
    }
    return sum;
  }
};

Status col2im_ref(const Call& call) {
  std::span<const int64_t> x = call.shape(0);
  TN_TRY(image, read_shape(call.in(1), "image"));
  TN_TRY(block, read_shape(call.in(2), "block"));
  TN_TRY(windows, Windows::of(call.node(), x, image, block));
  int64_t taps = windows.n_taps(), count = x[2];
  Ints shape{x[0], x[1] / taps};
  shape.insert(shape.end(), image.begin(), image.end());
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  int64_t plane = element_count(image);
  return dispatch<kNumeric>(call.dtype(0), [&, &y = out, &all = windows]<class T>() -> Status {
    for (int64_t p = 0; p < shape[0] * shape[1]; ++p) {
      std::vector<Wide<T>> sums(static_cast<size_t>(plane));
      Odometer tap(all.block);
      for (int64_t k = 0; k < taps; ++k, tap.next()) {
        Odometer window(all.counts);
        for (int64_t w = 0; w < count; ++w, window.next()) {
          int64_t at = all.at(window, tap);
          if (at < 0) continue;
          Wide<T>& sum = sums[static_cast<size_t>(at)];
          sum =
              wrapping_add(sum, static_cast<Wide<T>>(call.data<T>(0)[(p * taps + k) * count + w]));
        }
      }
      for (int64_t i = 0; i < plane; ++i)
        data_of<T>(y)[p * plane + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
    }
    return {};
  });
}

// Every number is added where its tap meets the image, or behind its end when that is padding.
Result<std::vector<Value>> col2im_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type x = node.input(0).type(), y = node.output().type();
  std::optional<Ints> image = known_ints(node.input(1)), block = known_ints(node.input(2));
  if (!x.is_static() || !y.is_static() || x.rank() != 3 || !image || !block)
    return unsupported("Col2Im: composite where all sizes are known");
  TN_TRY(windows, Windows::of(node, x.dims, *image, *block));
  int64_t plane = element_count(*image), taps = windows.n_taps();
  Ints at;
  for (int64_t k = 0; k < taps * x.dims[2]; ++k) {
    Odometer tap(windows.block, k / x.dims[2]), window(windows.counts, k % x.dims[2]);
    int64_t to = windows.at(window, tap);
    at.push_back(to < 0 ? plane : to);
  }
  int64_t planes = y.dims[0] * y.dims[1];
  Value rows = b.transpose(b.reshape(node.input(0), {planes, taps * x.dims[2]}), {1, 0});
  Value zeros = b.op("Expand", {b.number(0, x.dtype), b.ints({plane + 1, planes})});
  Value sums =
      b.op("ScatterND", {zeros, b.reshape(b.ints(at), {-1, 1}), rows}, {{"reduction", "add"}});
  sums = b.op("Slice", {sums, b.ints({0}), b.ints({plane}), b.ints({0})});
  Value out = b.reshape(b.transpose(sums, {1, 0}), y.dims);
  TN_CHECK(b.status());
  return std::vector<Value>{out};
}

Result<Node> col2im_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  Ints image{random.integer(3, 5), random.integer(3, 5)}, block{2, random.integer(1, 3)};
  int64_t windows = (image[0] - 1) * (image[1] - block[1] + 1);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 2), 2 * block[0] * block[1], windows}));
  TN_TRY(sizes, edit.ints(image));
  TN_TRY(blocks, edit.ints(block));
  return edit.add({.type = "Col2Im", .inputs = {x, sizes, blocks}});
}

constexpr tn_op kCol2Im =
    op_row({.type = "Col2Im",
            .since = 18,
            .attributes = R"([{"name": "dilations", "type": "ints"},
                                {"name": "pads", "type": "ints"},
                                {"name": "strides", "type": "ints"}])",
            .shape = shape<col2im_shape, "x: number[n c l], image: int[r], block: int[r]">,
            .decompose = decompose<col2im_decompose>,
            .cost = cost<move_cost>,
            .ref = ref<col2im_ref>,
            .sample = sample<col2im_sample>});
}  // namespace

TENON_OPS(col2im, &kCol2Im)

}  // namespace tenon::ops
