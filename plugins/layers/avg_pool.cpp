// SPDX-License-Identifier: Apache-2.0
// "layers.avg_pool": the mean of each window; zeros around it do not count; windows lie over the
// axes behind batch and channels.
#include "pool.hpp"

namespace tenon::layers {
namespace {

class AvgPool {
 public:
  static Result<AvgPool> create(tn_ctx*, const Options& options) {
    return AvgPool{PoolWindows::from(options)};
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(windows, windows_.over(use));
    return use.outputs({use.op("AveragePool", {use.input(0)},
                               {{"kernel_shape", windows.window},
                                {"strides", windows.stride},
                                {"pads", windows.pads},
                                {"count_include_pad", 0}})});
  }

  PoolWindows windows_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(avg_pool,
            tenon::layers::AvgPool,
            "layers.avg_pool",
            "the mean of each window; zeros around it do not count",
            TENON_POOL_OPTIONS)
