// SPDX-License-Identifier: Apache-2.0
// "layers.avg_pool": the mean of each window; zeros around it do not count; windows lie over the
// axes behind batch and channels.
#include "layer.hpp"

namespace tenon::layers {
namespace {

class AvgPool {
 public:
  static Result<AvgPool> create(tn_ctx*, const Options& options) {
    AvgPool made;
    made.window_ = ints_of(options.get("window"));
    made.stride_ = options.has("stride") ? ints_of(options.get("stride")) : made.window_;
    made.padding_ = ints_of(options.get("padding"));
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(type, one_input(use, 3, 5));
    size_t n_axes = type.rank() - 2;
    TN_TRY(window, per_axis(window_, n_axes, "window"));
    TN_TRY(stride, per_axis(stride_, n_axes, "stride"));
    TN_TRY(padding, per_axis(padding_, n_axes, "padding"));
    std::vector<int64_t> pads = before_and_after(padding);
    return use.outputs({use.op("AveragePool", {use.input(0)},
                               {{"kernel_shape", window},
                                {"strides", stride},
                                {"pads", pads},
                                {"count_include_pad", 0}})});
  }

 private:
  std::vector<int64_t> window_, stride_, padding_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(avg_pool,
            tenon::layers::AvgPool,
            "layers.avg_pool",
            "the mean of each window; zeros around it do not count",
            R"({"required": ["window"],
  "properties": {
    "window": {)" TENON_SIZES("1") R"(, "description": "its size: a number, or one for each axis"},
    "stride": {)" TENON_SIZES(
                "1") R"(, "description": "distance of windows; without it: their size"},
    "padding": {)" TENON_SIZES("0") R"(, "default": 0, "description": "places around the input"}}})")
