// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

namespace tenon::layers {

Result<Component> initializer_option(tn_ctx* ctx, const Options& options, std::string_view key) {
  constexpr std::string_view kRole = "tenon.initializer/1";
  std::string text = options.text(key);
  if (text.empty() || text.find('.') != std::string::npos)
    return component_option(ctx, options, key, kRole);
  Result<Component> made = Component::create(ctx, kRole, cat("layers.", text));
  if (!made.ok()) return std::move(made).status().in(cat("option ", key));
  return made;
}

Result<Initializers> Initializers::from(tn_ctx* ctx, const Options& options, bool has_bias) {
  Initializers made;
  TN_TRY(weight, initializer_option(ctx, options, "init"));
  made.weight = std::move(weight);
  if (!has_bias) return Result<Initializers>(std::move(made));
  TN_TRY(bias, initializer_option(ctx, options, "bias_init"));
  made.bias = std::move(bias);
  return Result<Initializers>(std::move(made));
}

Status check_one_input(const LayerUse& use) {
  if (use.n_inputs() != 1) return invalid(cat("inputs: expected 1, got ", use.n_inputs()));
  return use.input(0) ? Status() : invalid("input 0: expected a value, it is left out");
}

Result<Type> one_input(const LayerUse& use, size_t least_rank, size_t most_rank) {
  TN_CHECK(check_one_input(use));
  Type type = use.input(0).type();
  if (is_float(type.dtype) && type.ranked && type.rank() >= least_rank && type.rank() <= most_rank)
    return type;
  std::string rank = least_rank == most_rank ? cat(least_rank) : cat("at least ", least_rank);
  return invalid(cat("input 0: expected floats of rank ", rank, ", got ", type_text(type)));
}

Result<int64_t> known_size(const Type& type, int64_t axis, std::string_view what) {
  int64_t size = type.dims[static_cast<size_t>(positive_axis(axis, type.rank()))];
  if (size > 0) return size;
  return invalid(cat("input 0: expected a known number of ", what, " on axis ", axis, ", got ",
                     type_text(type)));
}

Result<std::vector<int64_t>> per_axis(const std::vector<int64_t>& given,
                                      size_t n_axes,
                                      std::string_view option) {
  if (given.size() == n_axes) return given;
  if (given.size() == 1) return std::vector<int64_t>(n_axes, given[0]);
  return invalid(cat("option ", option, ": expected one number, or ", n_axes,
                     " for an input with as many axes behind batch and channels, got ",
                     given.size()));
}

std::vector<int64_t> before_and_after(const std::vector<int64_t>& padding) {
  std::vector<int64_t> both = padding;
  both.insert(both.end(), padding.begin(), padding.end());
  return both;
}

Value affine(LayerUse& use, Value rows, Value weight, Value bias) {
  if (rows.type().rank() == 2) {
    std::vector<Value> inputs{rows, weight};
    if (bias) inputs.push_back(bias);
    return use.op("Gemm", inputs, {{"transB", 1}});
  }
  Value product = use.op("MatMul", {rows, use.transpose(weight, {1, 0})});
  return bias ? use.op("Add", {product, bias}) : product;
}

}  // namespace tenon::layers
