// SPDX-License-Identifier: Apache-2.0
#pragma once
// A part of an image, bilinear with antialiasing, as PyTorch's interpolate(antialias=True): a
// triangle as wide as the step between two pixels of the result, or of the source where that is
// more.

#include "image.hpp"
#include "rectangle.hpp"

namespace tenon::augment {

void resized(const Image& in, const Rectangle& part, Image& out);

}  // namespace tenon::augment
