// SPDX-License-Identifier: Apache-2.0
#include "conv_geometry.hpp"

#include <algorithm>

namespace tenon::onednn {

Window find_window(const Node& node, const Dims& in, const Dims& out, const Dims& kernel) {
  size_t n_spatial = kernel.size();
  Window window;
  window.kernel = kernel;
  window.strides = node.integers("strides", Dims(n_spatial, 1));
  Dims dilations = node.integers("dilations", Dims(n_spatial, 1));
  Dims pads = node.integers("pads", Dims(2 * n_spatial, 0));
  std::string auto_pad = node.text("auto_pad", "NOTSET");
  for (size_t i = 0; i < n_spatial; ++i) {
    window.dilates.push_back(dilations[i] - 1);
    int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    int64_t total = (out[i + 2] - 1) * window.strides[i] + reach - in[i + 2];
    int64_t begin = pads[i];
    if (auto_pad == "SAME_UPPER") begin = std::max<int64_t>(total, 0) / 2;
    if (auto_pad == "SAME_LOWER") begin = (std::max<int64_t>(total, 0) + 1) / 2;
    if (auto_pad == "VALID") begin = 0;
    window.pad_begin.push_back(begin);
    window.pad_end.push_back(total - begin);
  }
  return window;
}

}  // namespace tenon::onednn
