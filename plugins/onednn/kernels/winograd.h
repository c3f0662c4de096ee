// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions of 3x3 with stride 1 by minimal filtering F(2x2, 3x3): 16 products for 4 results
// where the sum has 36, and the same for both gradients (Lavin and Gray, "Fast algorithms for
// convolutional neural networks", 2016). Images are channels-last, in f32 or bf16; channels are
// multiples of 16; padding is 0 to 2.
//
// Accuracy: sums are f32; in bf16 the transformed numbers are rounded too, so a result is off by
// about twice as much as that of the plain sum over bf16 numbers (winograd_test says how much).
// Denormal bf16 count as zero. An infinity or NaN spreads to the 2x2 results of its tiles.
//
//   Winograd conv(shape, ElementType::kBf16, workers);
//   conv.pack(context, weights, strides, false, packed);
//   conv.convolve(context, {.src = x, .packed = packed, .dst = y}, scratch);
//
// The gradient of the source is a convolution too: of the result's gradient, in and out swapped,
// with flipped weights, and 2 - pad as padding.

#include "context.h"
#include "winograd_args.h"

namespace tenon::onednn::kernels {

// Where the weight of an output channel, an input channel and one of the nine taps lies, in f32.
struct WinogradWeights {
  int64_t out = 0, in = 0, tap = 0;
};

class Winograd {
 public:
  Winograd(const WinogradShape& shape, ElementType type, int workers);

  // Whether this CPU at this level has the products, and no units that multiply whole matrices of
  // this type: those are faster than saving products.
  static bool is_fast(ElementType type, Level level);

  int64_t packed_bytes() const;
  int64_t convolve_bytes() const;  // of scratch memory
  int64_t gradient_bytes() const;

  // is_flipped: the taps in reverse, as the gradient of the source wants them.
  void pack(const Context& context,
            const float* weights,
            const WinogradWeights& strides,
            bool is_flipped,
            void* packed) const;

  struct Operands {
    const void* src = nullptr;
    const void* packed = nullptr;
    const float* bias = nullptr;  // [out]; null: none
    const void* add = nullptr;    // like dst; null: none
    bool relu = false;            // behind both
    void* dst = nullptr;          // may be `add`
  };
  void convolve(const Context& context, const Operands& operands, void* scratch) const;

  // The weights' gradient in f32, all of it. It does not depend on the number of workers.
  void weight_gradient(const Context& context,
                       const void* src,
                       const void* dst_gradient,
                       float* gradient,
                       const WinogradWeights& strides,
                       void* scratch) const;

 private:
  struct Chunks {
    int64_t tiles, count;
  };
  Chunks convolve_chunks() const;
  void convolve_chunk(const Context& context,
                      const Operands& operands,
                      const float* zeros,
                      float* planes,
                      int64_t chunk) const;
  struct Gradient;
  int64_t gradient_tiles() const;
  Gradient cut_gradient(const void* src, const void* dst_gradient, void* scratch) const;
  void add_products(const Context& context,
                    const Gradient& gradient,
                    int64_t tiles,
                    bool accumulates) const;
  int64_t packed_plane() const;
  int64_t words(int64_t elements) const { return elements / word_; }

  WinogradShape shape_;
  ElementType type_;
  int64_t word_;
  int64_t workers_;
};

}  // namespace tenon::onednn::kernels
