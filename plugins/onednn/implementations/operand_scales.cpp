// SPDX-License-Identifier: Apache-2.0
#include "operand_scales.hpp"

namespace tenon::onednn {

std::vector<float> scales_of(const View& weights) {
  return weights.channels != nullptr ? weights.channels->scales
                                     : std::vector<float>{weights.quant.scale};
}

void describe_scales(const kernels::Quant& src,
                     const kernels::Quant& weights,
                     int weights_mask,
                     dnnl::primitive_attr* attr) {
  attr->set_scales_mask(DNNL_ARG_SRC, 0);
  attr->set_scales_mask(DNNL_ARG_WEIGHTS, weights_mask);
  if (src.zero_point != 0) attr->set_zero_points_mask(DNNL_ARG_SRC, 0);
  if (weights.zero_point != 0) attr->set_zero_points_mask(DNNL_ARG_WEIGHTS, 0);
}

void bind_scales(Lowering& lowering,
                 const kernels::Quant& src,
                 const kernels::Quant& weights,
                 const std::vector<float>& weights_scales,
                 std::vector<Argument>* arguments) {
  auto scale = [&](int id, const std::vector<float>& values) {
    arguments->push_back({DNNL_ARG_ATTR_SCALES | id, lowering.floats(values),
                          vector_descriptor(static_cast<int64_t>(values.size()))});
  };
  auto zero = [&](int id, int32_t point) {
    if (point == 0) return;
    arguments->push_back({DNNL_ARG_ATTR_ZERO_POINTS | id, lowering.integers({point}),
                          vector_descriptor(1, dnnl::memory::data_type::s32)});
  };
  scale(DNNL_ARG_SRC, {src.scale});
  scale(DNNL_ARG_WEIGHTS, weights_scales);
  zero(DNNL_ARG_SRC, src.zero_point);
  zero(DNNL_ARG_WEIGHTS, weights.zero_point);
}

}  // namespace tenon::onednn
