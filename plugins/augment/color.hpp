// SPDX-License-Identifier: Apache-2.0
#pragma once
// torchvision's adjust_* (0.29, transforms/v2/functional/_color.py) in place. Images of one channel
// have neither saturation nor hue.

#include "image.hpp"

namespace tenon::augment {

void adjust_brightness(Image& image, float factor);
void adjust_contrast(Image& image, float factor);
void adjust_saturation(Image& image, float factor);
void adjust_hue(Image& image, float turn);  // -0.5 to 0.5 of a whole turn

}  // namespace tenon::augment
