// SPDX-License-Identifier: Apache-2.0
#include "attention_parts.hpp"

#include "lowering/matrix_descriptor.hpp"
#include "operand_scales.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kScoresInCache = 512 * 1024;  // bytes for each thread: half of a usual L2

}  // namespace

Cut choose_cut(const View& scores, int threads, int n_tensors) {
  Cut cut;
  while (cut.axis + 3 < scores.dims.size() && scores.dims[cut.axis] == 1)
    ++cut.axis;
  const int64_t extent = scores.dims[cut.axis];
  const int64_t fits = threads * kScoresInCache / (n_tensors * scores.bytes() / extent);
  cut.width = std::clamp<int64_t>(fits, 1, extent);
  while (extent % cut.width != 0)
    --cut.width;
  cut.n_parts = extent / cut.width;
  return cut;
}

View part_of(View view, const Cut& cut, size_t rank, int64_t part) {
  const size_t missing = rank - view.dims.size();
  if (cut.axis < missing || view.dims[cut.axis - missing] == 1) return view;
  view.offset += part * cut.width * view.strides[cut.axis - missing];
  view.dims[cut.axis - missing] = cut.width;
  return view;
}

View scratch_part(Lowering& lowering, ElementType type, const Dims& dims, const Cut& cut) {
  View made{.type = type, .dims = dims};
  made.dims[cut.axis] = cut.width;
  made.strides = row_major_strides(made.dims);
  made.buffer = lowering.scratch(made.bytes());
  return made;
}

void multiply_part(
    Lowering& lowering, const std::string& name, const View& a, const View& b, const View& c) {
  dnnl::primitive_attr attr = new_attr();
  std::vector<Argument> arguments;
  if (a.is_quantized()) {
    describe_scales(a.quant, b.quant, mask_of_scales(b, c.dims.size()), &attr);
    bind_scales(lowering, a.quant, b.quant, scales_of(b), &arguments);
  }
  dnnl::matmul::primitive_desc pd(lowering.engine(), matrix_descriptor(a), matrix_descriptor(b),
                                  matrix_descriptor(c), attr);
  const std::string kernel = std::string(pd.impl_info_str()) + " (in parts)";
  const double flops = 2.0 * static_cast<double>(c.count() * a.dims.back());
  arguments.push_back({DNNL_ARG_SRC, place_of(a), pd.src_desc()});
  arguments.push_back({DNNL_ARG_WEIGHTS, place_of(b), pd.weights_desc()});
  arguments.push_back({DNNL_ARG_DST, place_of(c), pd.dst_desc()});
  lowering.add_primitive<dnnl::matmul>(name, pd, std::move(arguments), flops, kernel);
}

}  // namespace tenon::onednn
