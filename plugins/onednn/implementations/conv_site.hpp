// SPDX-License-Identifier: Apache-2.0
#pragma once
// What all implementations of a convolution look at, and their offers, a file each. The lists are
// in conv.cpp and conv_transpose.cpp.

#include "choice.hpp"
#include "lowering/epilogue.hpp"

namespace tenon::onednn {

struct Int8 {
  bool runs = false;      // integer arithmetic gives what DequantizeLinear, Conv and scales say
  bool is_exact = false;  // oneDNN's too
};

// Of a Conv, or of a ConvTranspose; channel_axis is that of the weights' scales.
Int8 int8_of(const Lowering& lowering, const Node& node, int channel_axis);

struct ConvSite {
  Lowering& lowering;
  int index;
  Epilogue epilogue;  // all that may be taken along
  Epilogue alone;     // nothing
  Int8 int8 = {};

  const Node& node() const { return lowering.graph().nodes[index]; }
  const Dims& dims(int value) const { return lowering.graph().values[value].dims; }
  int bias(const Epilogue& taken) const {
    return node().input(2) != kNone ? node().input(2) : taken.bias;
  }
};

// Why a convolution is no single product of what its windows see on images of two axes at most.
std::string why_not_one_product(const ConvSite& site);
// Why a form whose channels are several results of each filter cannot take the bias and the
// epilogue: it repeats a known bias, and what follows may act on each number alone.
std::string refuse_repeated_channels(const ConvSite& site);
// Numbers by filter, as often as the form has results of each.
std::vector<float> repeated_channels(const float* numbers, int64_t n_filters, int64_t times);

// Signs by signs, by kernels/binary_product.h: whatever rewrites/join_signs has packed.
Offer offer_binary_conv(const ConvSite& site);
// A convolution of 3x3 with stride 1 by kernels/winograd.h, where that is measured to be faster
// than oneDNN's sum. With winograd=auto constant weights only in fp32, where a trained model's
// answer changes by little, and computed ones only in bf16.
Offer offer_winograd(const ConvSite& site);
// Windows of 1x1 whose weights are mostly zeros, by kernels/sparse_product.h.
Offer offer_sparse_conv(const ConvSite& site);
// Windows over each channel alone, in 8 bits, by kernels/depthwise.h.
Offer offer_depthwise(const ConvSite& site);
// The same in floating point, by kernels/float_depthwise.h.
Offer offer_float_depthwise(const ConvSite& site);
// One signal with long filters: what resampling, smoothing and spectra of audio are. With one
// channel in front a product has nothing to lie along.
Offer offer_filter(const ConvSite& site);
// Signals and one filter that is computed, by plain loops.
Offer offer_computed_filter(const ConvSite& site);
// On AMX tiles (kernels/tile_product.h), in int8 and, with precision=bf16, in bf16: over planes of
// few channels, over windows of many, and over rows that are one pixel each or gathered.
Offer offer_tile_planes(const ConvSite& site);
Offer offer_tile_taps(const ConvSite& site);
Offer offer_tile_conv(const ConvSite& site);
Offer offer_bf16x6_conv(const ConvSite& site);
// In 8 bits by kernels/int8_product.h, where oneDNN's sums would saturate.
Offer offer_int8_conv(const ConvSite& site);
// By oneDNN, in the first of its forms that it has a kernel for.
Offer offer_onednn_conv(const ConvSite& site);

// ConvTranspose: the same with its weights rotated by half a turn.
Offer offer_winograd_transpose(const ConvSite& site);
// ConvTranspose to few channels: one product, and windows that are added where they overlap.
Offer offer_fold_transpose(const ConvSite& site);
// ConvTranspose with windows side by side: a 1x1 convolution, and a copy.
Offer offer_patch_transpose(const ConvSite& site);

}  // namespace tenon::onednn
