// SPDX-License-Identifier: Apache-2.0
#include "conv_kernels.hpp"

#include <numeric>
#include <string_view>

namespace tenon::onednn {
namespace {

using Description = dnnl::convolution_forward::primitive_desc;

// oneDNN 3.2 in bf16 on AMX tiles: where the columns of window, stride and image have a common
// factor, it takes so many pixels of a line for one of more channels. Where only these are a
// multiple of a tile's 32, it reads the weights in another layout than it asked for (a sweep over
// 1 to 176 channels, windows of 2 to 12 columns and strides of 2 to 8 finds no other wrong ones).
bool misreads_weights(const Description& description) {
  constexpr dnnl::memory::dim kTile = 32;
  if (std::string_view(description.impl_info_str()) != "brgconv:avx512_core_amx") return false;
  const dnnl::memory::dims src = description.src_desc().get_dims();
  const dnnl::memory::dims weights = description.weights_desc().get_dims();
  if (weights.size() != src.size()) return false;  // with groups it folds nothing
  const auto shared = std::gcd(weights.back(), description.get_strides().back());
  const auto pixels = std::gcd(shared, src.back());
  return src[1] % kTile != 0 && pixels * src[1] > kTile && pixels * src[1] % kTile == 0;
}

}  // namespace

void skip_wrong_kernels(Description* description) {
  while (description->get(true) != nullptr && misreads_weights(*description))
    if (!description->next_impl()) *description = {};
}

}  // namespace tenon::onednn
