// SPDX-License-Identifier: Apache-2.0
// The 8-bit kernels against ONNX's formulas, bit for bit.

#include "kernels/quantize.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Quantize : public EachLevel {};

float saturate(float level, ElementType type) {
  return type == ElementType::kS8 ? std::clamp(level, -128.0F, 127.0F)
                                  : std::clamp(level, 0.0F, 255.0F);
}
int byte_at(const std::vector<uint8_t>& bytes, uint64_t i, ElementType type) {
  return type == ElementType::kS8 ? static_cast<int8_t>(bytes[i]) : bytes[i];
}

struct Form {
  int64_t outer, axis, inner, block;
};
// Where the scale of element i lies.
uint64_t scale_of(const Form& form, int64_t i) {
  const int64_t inner = i % form.inner;
  const int64_t axis = i / form.inner % form.axis;
  const int64_t outer = i / form.inner / form.axis;
  if (form.block == 0) return static_cast<uint64_t>(axis);
  const int64_t blocks = (form.axis + form.block - 1) / form.block;
  return static_cast<uint64_t>((outer * blocks + axis / form.block) * form.inner + inner);
}
constexpr Form kForms[] = {{1, 1, 5003, 0}, {7, 65, 1, 0},   {3, 20, 49, 0}, {5, 20, 7, 0},
                           {6, 100, 1, 32}, {2, 70, 33, 16}, {4, 64, 1, 64}};

// DynamicQuantizeLinear's formulas; 0 is among the numbers, NaN has no part in the range.
TEST_P(Quantize, FindsItsOwnScale) {
  for (int64_t n : {1, 7, 64, 1000}) {
    for (auto [from, to] : {std::pair(-1.5F, 4.0F), std::pair(2.0F, 3.0F), std::pair(-3.0F, -1.0F),
                            std::pair(0.0F, 0.0F)}) {
      std::vector<float> x = uniform(static_cast<uint64_t>(n), from, to);
      if (n > 7) x[5] = std::numeric_limits<float>::quiet_NaN();
      float low = 0, high = 0, scale = 0;
      for (float v : x) {
        if (v < low) low = v;
        if (v > high) high = v;
      }
      const float want_scale = high > low ? (high - low) / 255.0F : 1.0F;
      const float want_zero = std::nearbyint(saturate(-low / want_scale, ElementType::kU8));
      std::vector<uint8_t> y(x.size() + 1, 7);
      uint8_t zero = 0;
      dynamic_quantize(context_, x.data(), n, y.data(), &scale, &zero);

      EXPECT_EQ(scale, want_scale);
      EXPECT_EQ(zero, want_zero);
      for (uint64_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i])) continue;
        const float level = std::nearbyint(x[i] / want_scale) + want_zero;
        ASSERT_EQ(y[i], saturate(level, ElementType::kU8)) << i;
      }
      EXPECT_EQ(y.back(), 7);
    }
  }
}

TEST_P(Quantize, FollowsOnnxForEachForm) {
  for (const Form& form : kForms) {
    const uint64_t n = static_cast<uint64_t>(form.outer * form.axis * form.inner);
    std::vector<float> x = uniform(n, -4, 4);
    for (uint64_t i = 0; i < n; i += 3)
      x[i] = std::round(x[i] * 8) / 8;  // many halves
    const std::vector<float> scales = uniform(n, 0.02F, 0.06F, 2);
    for (ElementType type : {ElementType::kU8, ElementType::kS8}) {
      std::vector<uint8_t> zeros(n);
      for (uint64_t i = 0; i < n; ++i)
        zeros[i] = static_cast<uint8_t>(i * 5);
      std::vector<uint8_t> q(n + 1, 99);
      std::vector<float> back(n);
      QuantizeArgs args{{x.data()}, {q.data(), type, {}}, form.outer,    form.axis,
                        form.inner, form.block,           scales.data(), zeros.data()};
      quantize(context_, args);
      args.src = {q.data(), type, {}};
      args.dst = {back.data()};
      dequantize(context_, args);

      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t k = scale_of(form, static_cast<int64_t>(i));
        const int zero = byte_at(zeros, k, type);
        const float level = std::nearbyint(x[i] / scales[k]) + static_cast<float>(zero);
        const int want = static_cast<int>(saturate(level, type));
        ASSERT_EQ(byte_at(q, i, type), want) << i;
        ASSERT_EQ(back[i], static_cast<float>(want - zero) * scales[k]) << i;
      }
      EXPECT_EQ(q.back(), 99);
    }
  }
}

TEST_P(Quantize, ReadsAndWritesBf16) {
  const std::vector<float> values = uniform(1500, -2, 2);
  std::vector<uint16_t> x(1500);
  std::vector<float> rounded(1500);
  context_.table->store_f32(values.data(), 1500, {x.data(), ElementType::kBf16, {}}, 0, false);
  context_.table->load_f32({x.data(), ElementType::kBf16, {}}, 0, 1500, rounded.data());
  std::vector<uint8_t> q(1500);
  const float scale = 0.03125F;
  QuantizeArgs args{.src = {x.data(), ElementType::kBf16, {}},
                    .dst = {q.data(), ElementType::kS8, {}},
                    .inner = 1500,
                    .scales = &scale};
  quantize(context_, args);
  std::vector<uint16_t> back(1500);
  args.src = {q.data(), ElementType::kS8, {}};
  args.dst = {back.data(), ElementType::kBf16, {}};
  dequantize(context_, args);
  std::vector<float> wide(1500);
  context_.table->load_f32({back.data(), ElementType::kBf16, {}}, 0, 1500, wide.data());

  for (uint64_t i = 0; i < 1500; ++i) {
    const float level = std::nearbyint(rounded[i] / scale);
    ASSERT_EQ(static_cast<int8_t>(q[i]), level);
    ASSERT_EQ(wide[i], level * scale);
  }
}

TEST_P(Quantize, DequantizesAccumulators) {
  const std::vector<int32_t> x = {0, 1, -5, 1 << 24, INT32_MAX, INT32_MIN, 7};
  const std::vector<float> scales = {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F};
  std::vector<float> y(7);
  dequantize(context_, {{x.data(), ElementType::kI32, {}}, {y.data()}, 1, 7, 1, 0, scales.data()});

  for (uint64_t i = 0; i < 7; ++i)
    EXPECT_EQ(y[i], static_cast<float>(x[i]) * scales[i]);
}

TEST_P(Quantize, RequantizesAccumulators) {
  constexpr uint64_t kRows = 5;
  constexpr uint64_t kN = 67;
  std::vector<int32_t> acc(kRows * kN);
  std::vector<int32_t> bias(kN);
  for (uint64_t i = 0; i < acc.size(); ++i)
    acc[i] = static_cast<int32_t>(i * 7919 % 40001) - 20000;
  for (uint64_t i = 0; i < kN; ++i)
    bias[i] = static_cast<int32_t>(i * 31) - 500;
  const std::vector<float> scales = uniform(kN, 0.002F, 0.02F);
  for (ElementType type : {ElementType::kU8, ElementType::kS8}) {
    for (bool per_column : {false, true}) {
      std::vector<uint8_t> y(acc.size());
      requantize(context_, {acc.data(),
                            {y.data(), type, {0, 3}},
                            kRows,
                            kN,
                            scales.data(),
                            per_column,
                            bias.data()});

      for (uint64_t i = 0; i < acc.size(); ++i) {
        const float scale = scales[per_column ? i % kN : 0];
        const float level = std::nearbyint(static_cast<float>(acc[i] + bias[i % kN]) * scale) + 3;
        ASSERT_EQ(byte_at(y, i, type), saturate(level, type)) << i;
      }
    }
  }
}

// All 65536 pairs of values.
TEST_P(Quantize, AddsAllPairs) {
  std::vector<uint8_t> a(65536);
  std::vector<uint8_t> b(65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    a[i] = static_cast<uint8_t>(i);
    b[i] = static_cast<uint8_t>(i >> 8);
  }
  for (int form = 0; form < 8; ++form) {
    const ElementType types[] = {form & 1 ? ElementType::kS8 : ElementType::kU8,
                                 form & 2 ? ElementType::kS8 : ElementType::kU8,
                                 form & 4 ? ElementType::kS8 : ElementType::kU8};
    std::vector<uint8_t> y(65536);
    quantized_add(context_, {{a.data(), types[0], {0.021F, 7}},
                             {b.data(), types[1], {0.017F, -3}},
                             {y.data(), types[2], {0.035F, 11}},
                             65536,
                             form == 3});

    for (uint64_t i = 0; i < 65536; ++i) {
      const float left = static_cast<float>(byte_at(a, i, types[0]) - 7) * 0.021F;
      const float right = static_cast<float>(byte_at(b, i, types[1]) + 3) * 0.017F;
      const float sum = form == 3 ? std::max(left + right, 0.0F) : left + right;
      const float level = std::nearbyint(sum / 0.035F) + 11;
      ASSERT_EQ(byte_at(y, i, types[2]), saturate(level, types[2])) << form << " at " << i;
    }
  }
}

// GELU of s8 as a table, at every length around a register.
TEST_P(Quantize, MapsBytesThroughATable) {
  const std::vector<tn_expr_node> gelu = {
      {TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_CONST, 0, 0, 0, std::sqrt(0.5)},
      {TN_EXPR_MUL, 0, 1, 0, 0},   {TN_EXPR_ERF, 2, 0, 0, 0},
      {TN_EXPR_CONST, 0, 0, 0, 1}, {TN_EXPR_ADD, 3, 4, 0, 0},
      {TN_EXPR_MUL, 0, 5, 0, 0},   {TN_EXPR_CONST, 0, 0, 0, 0.5},
      {TN_EXPR_MUL, 6, 7, 0, 0}};
  uint8_t table[256];
  ASSERT_EQ(make_table(gelu, 8, {nullptr, ElementType::kS8, {0.05F, 4}},
                       {nullptr, ElementType::kU8, {0.03F, 6}}, table),
            "");
  for (int i = -128; i < 128; ++i) {
    const double x = (i - 4) * 0.05F;
    const double level = 0.5 * x * (1 + std::erf(x * std::sqrt(0.5))) / 0.03F + 6;
    EXPECT_NEAR(table[static_cast<uint8_t>(i)], std::clamp(level, 0.0, 255.0), 0.5001) << i;
  }
  for (uint64_t n = 0; n < 200; ++n) {
    std::vector<uint8_t> x(n);
    for (uint64_t i = 0; i < n; ++i)
      x[i] = static_cast<uint8_t>(i * 37 + n);
    std::vector<uint8_t> y(n + 1, 99);
    map_bytes(context_, table, x.data(), static_cast<int64_t>(n), y.data());
    for (uint64_t i = 0; i < n; ++i)
      ASSERT_EQ(y[i], table[x[i]]);
    EXPECT_EQ(y[n], 99);
  }
}

// What lies between the rows of the result stays.
TEST_P(Quantize, TablesMapRows) {
  uint8_t table[256];
  for (int i = 0; i < 256; ++i)
    table[i] = static_cast<uint8_t>(i * 29 + 3);
  constexpr int64_t kRows = 5;
  for (int64_t n : {1, 31, 32, 63, 64, 65, 130}) {
    const int64_t from = n + 3, to = n + 7;
    std::vector<uint8_t> x(static_cast<size_t>(kRows * from)),
        y(static_cast<size_t>(kRows * to), 99);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<uint8_t>(i * 37);
    context_.table->map_bytes(table, {.src = x.data(),
                                      .dst = y.data(),
                                      .n = n,
                                      .rows = kRows,
                                      .src_stride = from,
                                      .dst_stride = to});
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t i = 0; i < to; ++i)
        ASSERT_EQ(y[r * to + i], i < n ? table[x[r * from + i]] : 99) << n << " " << r << " " << i;
  }
}

TENON_EACH_LEVEL(Quantize);

}  // namespace
}  // namespace tenon::onednn::kernels
