// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of products with 4-bit weights, as level/ sees them too; contract in int4_product.h.

#include <cstdint>

#include "epilogue_args.h"

namespace tenon::onednn::kernels {

constexpr int64_t kInt4Panel = 16;      // columns that lie side by side
constexpr int64_t kInt4Step = 8;        // of k in 64 bytes: lane n holds k 0 to 3 low, 4 to 7 high
constexpr int64_t kInt4StepBytes = 64;  // of one panel
constexpr int64_t kInt4Rows = 8;        // rows of the left operand that are multiplied at once
constexpr int32_t kInt4Zero = 8;        // the zero point where there are none

// The right operand, from some panel on.
struct Int4Panels {
  const uint8_t* quantized =
      nullptr;                   // [panels][groups * group / 8][16][4], two quantized values a byte
  const void* scales = nullptr;  // [panels][groups][16] of scale_type
  const uint8_t* zeros = nullptr;  // [panels][groups][16]; nullptr: kInt4Zero everywhere
  ElementType scale_type = ElementType::kF32;  // or kF16, kBf16
  int64_t group = 0;
  int64_t n_groups = 0;

  int64_t padded_k() const { return group * n_groups; }
  int64_t panel_bytes() const { return padded_k() * kInt4StepBytes / kInt4Step; }
};

// One row of the left operand, to where the products read it: `rows` of them lie side by side.
struct Int4Left {
  Source src = {};   // kF32 or kBf16: [k]
  int64_t rows = 0;  // of the block
  int64_t row = 0;   // in it
  int64_t k = 0;
  int64_t group = 0;
  int64_t n_groups = 0;
  bool has_zeros = false;       // of the right operand
  int8_t* quantized = nullptr;  // [padded k / 4][rows][4]; nullptr: reals are wanted
  float* scales = nullptr;      // [groups][rows]
  int32_t* sums =
      nullptr;  // [groups][rows]: of the quantized values, times -kInt4Zero; with zeros times -1
  float* reals = nullptr;  // [padded k][rows]
};

// How a block is computed.
enum class Int4Form : uint8_t {
  kReal,   // f32 times the dequantized weights
  kBytes,  // 8-bit quantized values, pairs in 16 bits
  kVnni,   // 8-bit quantized values, fours in 32 bits
};

// At most kInt4Rows rows times one panel.
struct Int4Block {
  Int4Form form = Int4Form::kReal;
  int64_t n_rows = 0;
  const int8_t* quantized = nullptr;  // as in Int4Left
  const float* scales = nullptr;
  const int32_t* sums = nullptr;
  const float* reals = nullptr;
  Int4Panels right = {};
  Epilogue epilogue = {};
};

}  // namespace tenon::onednn::kernels
