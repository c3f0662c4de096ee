// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the layers of this plugin share: initializers by option, checks of inputs, sizes per axis.

#include <string>
#include <vector>

#include "tenon/sdk/role/layer.hpp"

namespace tenon::layers {

// An option that names an initializer: a component, an id, or the last word of an id of this
// plugin.
Result<Component> initializer_option(tn_ctx* ctx, const Options& options, std::string_view key);

// The options `init` and, where the layer has a bias, `bias_init`.
struct Initializers {
  Component weight, bias;
  static Result<Initializers> from(tn_ctx* ctx, const Options& options, bool has_bias = true);
};

// Exactly one input.
Status check_one_input(const LayerUse& use);
// The same, of float type and of a rank in this range.
Result<Type> one_input(const LayerUse& use, size_t least_rank, size_t most_rank = 8);

// The size of an axis (negative: from the end), which must be known.
Result<int64_t> known_size(const Type& type, int64_t axis, std::string_view what);

// An option that is one number for all axes, or a list with one for each.
Result<std::vector<int64_t>> per_axis(const std::vector<int64_t>& given,
                                      size_t n_axes,
                                      std::string_view option);

// Twice the same list, as ONNX has the zeros before and after each axis.
std::vector<int64_t> before_and_after(const std::vector<int64_t>& padding);

// Rows [..., n] times weight [m, n] transposed, and bias [m] where there is one: [..., m].
Value affine(LayerUse& use, Value rows, Value weight, Value bias);

}  // namespace tenon::layers

// clang-format off
// Options of schemas: initializers with their defaults, and sizes for each axis.
#define TENON_INITIALIZER_OPTION(name, id) \
  R"(")" name R"(": {"type": "component", "role": "tenon.initializer/1", "default": ")" id \
  R"(", "description": "an initializer, or its name"})"
#define TENON_WEIGHT_INIT(weight) TENON_INITIALIZER_OPTION("init", weight)
#define TENON_INITS(weight, bias) TENON_WEIGHT_INIT(weight) ", " TENON_INITIALIZER_OPTION("bias_init", bias)
#define TENON_SIZES(least) \
  R"("type": ["integer", "array"], "minimum": )" least R"(, "items": {"type": "integer", "minimum": )" least "}"
// clang-format on
