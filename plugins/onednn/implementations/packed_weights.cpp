// SPDX-License-Identifier: Apache-2.0
#include "packed_weights.hpp"

#include <optional>

#include "kernels/pack.h"

namespace tenon::onednn {

namespace {

using Desc = dnnl::memory::desc;

// All spatial axes as one; nothing when they are not in this order without gaps.
std::optional<int64_t> spatial_stride(const Dims& dims, const Dims& strides) {
  int64_t inner = 1;
  std::optional<int64_t> stride;
  for (size_t axis = dims.size(); axis-- > 2;) {
    if (dims[axis] == 1) continue;
    if (!stride) stride = strides[axis];
    if (strides[axis] != *stride * inner) return {};
    inner *= dims[axis];
  }
  return stride.value_or(0);
}

// What our own kernel needs to know, where it knows the layout: whole blocks of one channel axis,
// in bf16 with pairs of the other; products count some rows of such a block as one, which changes
// nothing where these lie one behind the other.
std::optional<kernels::PackArgs> find_pack(const View& weights, const Desc& wanted) {
  Dims blocks = wanted.get_inner_blks();
  Dims axes = wanted.get_inner_idxs();
  const Dims& dims = weights.dims;
  const bool is_bf16 = wanted.get_data_type() == dnnl::memory::data_type::bf16;
  const int64_t pair = is_bf16 ? 2 : 1;
  int64_t rows = 1;
  if (blocks.size() == size_t(pair) + 1 && axes[0] != axes[1]) {
    rows = blocks[0];
    blocks.erase(blocks.begin());
    axes.erase(axes.begin());
  }
  bool is_known = weights.type == ElementType::kF32 && blocks.size() == size_t(pair) &&
                  (is_bf16 || wanted.get_data_type() == dnnl::memory::data_type::f32) &&
                  axes[0] < 2 && blocks[0] <= kernels::kMostPackBlock;
  if (!is_known) return {};
  const size_t out = static_cast<size_t>(axes[0]);
  const size_t in = 1 - out;
  const Dims strides = wanted.get_strides();
  const Dims padded = wanted.get_padded_dims();
  const std::optional<int64_t> from = spatial_stride(dims, weights.strides);
  const std::optional<int64_t> to = spatial_stride(dims, strides);
  const bool has_pairs = !is_bf16 || (blocks[1] == 2 && axes[1] == static_cast<int64_t>(in));
  const bool is_by_rows = weights.strides[out] == 1 || weights.strides[in] == 1;
  if (!has_pairs || !is_by_rows || !from || !to || strides[in] != rows * blocks[0] * pair)
    return {};
  kernels::PackArgs args;
  args.type = is_bf16 ? ElementType::kBf16 : ElementType::kF32;
  args.out = dims[out];
  args.block = blocks[0];
  args.in = dims[in];
  args.padded_in = padded[in];
  for (size_t axis = 2; axis < dims.size(); ++axis)
    args.spatial *= dims[axis];
  args.src_out = weights.strides[out];
  args.src_in = weights.strides[in];
  args.src_spatial = *from;
  args.dst_block = strides[out];
  args.dst_spatial = *to;
  return args;
}

void add_pack(Lowering& lowering,
              const std::string& name,
              const View& weights,
              const kernels::PackArgs& args,
              Place place) {
  Step step{.name = name, .kernel = "tenon:pack", .always_succeeds = true};
  step.bytes =
      static_cast<double>(weights.bytes() + weights.count() * kernels::element_bytes(args.type));
  step.places = {place_of(weights), place};
  step.kernel_function = [args](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    kernels::PackArgs call = args;
    call.src = static_cast<const float*>(pointers[0]);
    call.dst = pointers[1];
    kernels::pack(context, call);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

}  // namespace

View in_groups(View weights, int64_t groups) {
  if (groups == 1) return weights;
  weights.dims[0] /= groups;
  weights.dims.insert(weights.dims.begin(), groups);
  weights.strides.insert(weights.strides.begin(), weights.dims[1] * weights.strides[0]);
  return weights;
}

Place packed_weights(Lowering& lowering,
                     const std::string& name,
                     const View& weights,
                     const Desc& wanted,
                     int64_t groups) {
  const Desc from(weights.dims, dnnl_type(weights.type), weights.strides);
  if (lowering.is_constant_view(weights)) return lowering.packed(weights, from, wanted);
  if (wanted == from) return place_of(weights);
  Place place{lowering.scratch(static_cast<int64_t>(wanted.get_size())), 0};
  std::optional<kernels::PackArgs> args;
  if (groups == 1) args = find_pack(weights, wanted);
  if (args)
    add_pack(lowering, "pack " + name, weights, *args, place);
  else
    lowering.add_reorder("pack " + name, place_of(weights), from, place, wanted);
  ++lowering.plan().n_reorders;
  return place;
}

}  // namespace tenon::onednn
