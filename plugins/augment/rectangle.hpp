// SPDX-License-Identifier: Apache-2.0
#pragma once
// A part of an image, and how one is drawn.

#include <array>

#include "tenon/sdk/any.hpp"

#include "draws.hpp"
#include "image.hpp"

namespace tenon::augment {

struct Rectangle {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

// Two numbers of an option, the first at most the second and both within the bounds.
Result<std::array<double, 2>> range_option(const Options& options,
                                           std::string_view key,
                                           std::array<double, 2> bounds);
// One or two numbers from 1 on: height and width. Those of the image where it is not given.
Result<std::array<int64_t, 2>> size_option(const Options& options, const Image& image);

// What share of an image, and of which shape (width over height), both drawn.
struct Shares {
  std::array<double, 2> scale, ratio;
  static Result<Shares> from(const Options& options);  // scale and ratio
};

// torchvision's RandomResizedCrop.get_params (0.29): ten tries, then the middle.
Rectangle drawn_crop(int64_t height, int64_t width, const Shares& shares, Draws& draws);
// Its RandomErasing.make_params, where the ratio is height over width: ten tries, then nothing.
Rectangle drawn_hole(int64_t height, int64_t width, const Shares& shares, Draws& draws);
// Its CutMix.make_params: a box around a point, cut off at the edges.
Rectangle drawn_box(int64_t height, int64_t width, double lambda, Draws& draws);

}  // namespace tenon::augment
