// SPDX-License-Identifier: Apache-2.0
// "layers.max_pool": the largest number of each window; windows lie over the axes behind batch and
// channels.
#include "pool.hpp"

namespace tenon::layers {
namespace {

class MaxPool {
 public:
  static Result<MaxPool> create(tn_ctx*, const Options& options) {
    return MaxPool{PoolWindows::from(options)};
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(windows, windows_.over(use));
    return use.outputs({use.op(
        "MaxPool", {use.input(0)},
        {{"kernel_shape", windows.window}, {"strides", windows.stride}, {"pads", windows.pads}})});
  }

  PoolWindows windows_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(max_pool,
            tenon::layers::MaxPool,
            "layers.max_pool",
            "the largest number of each window",
            TENON_POOL_OPTIONS)
