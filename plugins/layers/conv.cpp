// SPDX-License-Identifier: Apache-2.0
// "layers.conv": convolution over the axes behind batch and channels, one, two or three of them;
// weight [out, in / groups, kernel...], bias [out]. With transposed: its transpose, weight
// [in, out / groups, kernel...].
#include <algorithm>

#include "layer.hpp"

namespace tenon::layers {
namespace {

class Conv {
 public:
  static Result<Conv> create(tn_ctx* ctx, const Options& options) {
    Conv made;
    made.out_ = options.integer("out");
    made.groups_ = options.integer("groups");
    made.has_bias_ = options.flag("bias");
    made.transposed_ = options.flag("transposed");
    for (const char* key : {"kernel", "stride", "dilation", "output_padding"})
      made.sizes_.push_back(ints_of(options.get(key)));
    made.padding_ = ints_of(options.get("padding"));
    std::string padding = options.text("padding");
    made.same_ = padding == "same";
    if (!padding.empty() && (!made.same_ || made.transposed_))
      return invalid(cat("option padding: expected numbers", made.transposed_ ? "" : " or same",
                         ", got '", padding, "'"));
    if (!made.transposed_ && std::ranges::any_of(made.sizes_[3], [](int64_t n) { return n > 0; }))
      return invalid("option output_padding: expected it with transposed, got none");
    TN_TRY(init, Initializers::from(ctx, options));
    made.init_ = std::move(init);
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(type, one_input(use, 3, 5));
    TN_TRY(in, known_size(type, 1, "channels"));
    if (in % groups_ || out_ % groups_)
      return invalid(cat("option groups: expected a divisor of the ", in, " channels in and the ",
                         out_, " out, got ", groups_));
    size_t n_axes = type.rank() - 2;
    TN_TRY(kernel, per_axis(sizes_[0], n_axes, "kernel"));
    int64_t taps = element_count(kernel);
    std::vector<int64_t> shape{transposed_ ? in : out_, (transposed_ ? out_ : in) / groups_};
    // As PyTorch counts them: by the weight's own axes, of groups and of a transpose too.
    int64_t fan_in = shape[1] * taps, fan_out = shape[0] * taps;
    shape.insert(shape.end(), kernel.begin(), kernel.end());
    std::vector<Value> inputs{use.input(0),
                              use.parameter({"weight", shape, &init_.weight, fan_in, fan_out})};
    if (has_bias_) inputs.push_back(use.parameter({"bias", {out_}, &init_.bias, fan_in, fan_out}));
    TN_TRY(stride, per_axis(sizes_[1], n_axes, "stride"));
    TN_TRY(dilation, per_axis(sizes_[2], n_axes, "dilation"));
    std::vector<Attr> attrs{
        {"kernel_shape", kernel}, {"strides", stride}, {"dilations", dilation}, {"group", groups_}};
    std::vector<int64_t> pads;
    if (same_) {
      attrs.emplace_back("auto_pad", "SAME_UPPER");
    } else {
      TN_TRY(padding, per_axis(padding_, n_axes, "padding"));
      pads = before_and_after(padding);
      attrs.emplace_back("pads", pads);
    }
    TN_TRY(more, per_axis(sizes_[3], n_axes, "output_padding"));
    if (transposed_) attrs.emplace_back("output_padding", more);
    return use.outputs({use.op(transposed_ ? "ConvTranspose" : "Conv", inputs, attrs)});
  }

 private:
  int64_t out_ = 0, groups_ = 1;
  bool has_bias_ = true, transposed_ = false, same_ = false;
  std::vector<std::vector<int64_t>> sizes_;  // kernel, stride, dilation, output_padding
  std::vector<int64_t> padding_;
  Initializers init_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(conv,
            tenon::layers::Conv,
            "layers.conv",
            "a convolution over one, two or three axes, or its transpose",
            R"({"required": ["out", "kernel"],
  "properties": {
    "out": {"type": "integer", "minimum": 1, "description": "output channels"},
    "kernel": {)" TENON_SIZES("1") R"(, "description": "kernel size: a number, or one for each axis"},
    "stride": {)" TENON_SIZES("1") R"(, "default": 1, "description": "step between windows"},
    "padding": {"type": ["integer", "array", "string"], "minimum": 0, "items": {"type": "integer", "minimum": 0}, "default": 0, "description": "zeros before and after each axis; same: output size equals input size at stride 1"},
    "dilation": {)" TENON_SIZES("1") R"(, "default": 1, "description": "dilation of the kernel"},
    "groups": {"type": "integer", "minimum": 1, "default": 1, "description": "number of channel groups"},
    "bias": {"type": "boolean", "default": true, "description": "adds a bias"},
    "transposed": {"type": "boolean", "default": false, "description": "transposed convolution, which enlarges by the stride"},
    "output_padding": {)" TENON_SIZES("0") R"(, "default": 0, "description": "output padding of the transposed convolution, at the end of each axis"},)" TENON_INITS(
                "layers.fan_uniform", "layers.fan_uniform") "}}")
