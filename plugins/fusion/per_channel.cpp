// SPDX-License-Identifier: Apache-2.0
// conv(x, w)*s + t = conv(x, w*s) + t, as convolution is linear in each output channel's weights;
// with a bias b: (conv(x, w) + b)*s + t = conv(x, w*s) + (b*s + t). Gemm: alpha scales with w, and
// beta*c*s + t becomes the new c with beta 1. Computed in double, rounded once.
#include "per_channel.hpp"

#include <algorithm>

namespace tenon::fusion {
namespace {

bool is_gemm(Node node) {
  return node.is("Gemm");
}

// Which output channel an element of the weights belongs to: its dimension `axis`, and for a
// grouped ConvTranspose ([n_in, n_out/group, ...]) the group that its row lies in.
struct WeightLayout {
  size_t axis;
  int64_t n_groups = 1;  // of dimension 0, when axis is 1
  std::vector<int64_t> dims;

  int64_t channels() const { return dims[axis] * n_groups; }
  // Elements that lie together and belong to one channel.
  int64_t run() const {
    int64_t inner = 1;
    for (size_t i = axis + 1; i < dims.size(); ++i)
      inner *= dims[i];
    return inner;
  }
  int64_t channel_of_run(int64_t index) const {
    int64_t own = index % dims[axis];
    if (n_groups == 1) return own;
    int64_t row = index / dims[axis];
    return row / (dims[0] / n_groups) * dims[axis] + own;
  }
};

WeightLayout layout_of(Node node) {
  WeightLayout out{0, 1, node.input(1).type().dims};
  if (is_gemm(node)) out.axis = node.attr_int("transB") != 0 ? 0 : 1;
  if (node.is("ConvTranspose")) {
    out.axis = 1;
    out.n_groups = std::max<int64_t>(node.attr_int("group", 1), 1);
  }
  return out;
}

// The bias as one number per channel: absent is 0; Gemm's may broadcast. Nothing where it differs
// by row.
std::optional<std::vector<double>> channel_bias(Node node, int64_t n) {
  Value bias = node.input(2);
  auto size = static_cast<size_t>(n);
  if (!bias) return std::vector<double>(size);
  std::optional<std::vector<double>> given = numbers_of(bias);
  Type type = bias.type();
  if (!given || (type.rank() > 1 && type.dims[0] != 1) || type.rank() > 2) return std::nullopt;
  if (given->size() == 1) return std::vector<double>(size, given->front());
  if (given->size() != size) return std::nullopt;
  return given;
}

// Dense numbers on the CPU, of a type that is scaled.
bool is_plain(Value value) {
  Tensor tensor = value.constant();
  DLTensor t = tensor.dl();
  if (t.device.device_type != kDLCPU) return false;
  for (int64_t i = t.ndim - 1, stride = 1; t.strides && i >= 0; stride *= t.shape[i--]) {
    if (t.shape[i] > 1 && t.strides[i] != stride) return false;
  }
  return dtype_of(t) == TN_F32 || dtype_of(t) == TN_F64;
}

// Serial: bound by memory, and done in the time that waking threads takes for most layers.
template <class T>
void scale_runs(const T* from,
                T* to,
                const WeightLayout& layout,
                const std::vector<double>& scale) {
  int64_t run = layout.run();
  int64_t n_runs = run > 0 ? element_count(layout.dims) / run : 0;
  for (int64_t r = 0; r < n_runs; ++r) {
    double factor = scale[static_cast<size_t>(layout.channel_of_run(r))];
    for (int64_t i = r * run; i < (r + 1) * run; ++i)
      to[i] = static_cast<T>(static_cast<double>(from[i]) * factor);
  }
}

Result<Tensor> scaled_weight(tn_ctx* ctx,
                             Value weight,
                             const WeightLayout& layout,
                             const std::vector<double>& scale) {
  Tensor old = weight.constant();
  TN_TRY(made, Tensor::zeros(ctx, weight.dtype(), layout.dims));
  if (weight.dtype() == TN_F32) {
    scale_runs(old.data<const float>(), made.data<float>(), layout, scale);
  } else {
    scale_runs(old.data<const double>(), made.data<double>(), layout, scale);
  }
  return std::move(made);
}

std::vector<Attr> attributes_of(Node node, bool is_bias_folded) {
  std::vector<Attr> out;
  for (uint64_t i = 0, n = services.graph->attr_count(node.graph, node.id); i < n; ++i) {
    std::string_view name = view(services.graph->attr_name(node.graph, node.id, i));
    if (!is_bias_folded || name != "beta") out.emplace_back(name, node.attr(name));
  }
  return out;
}

}  // namespace

int64_t scalable_channels(Node producer) {
  if (!producer || !(producer.is("Conv") || producer.is("ConvTranspose") || is_gemm(producer)))
    return -1;
  Value weight = producer.input(1), bias = producer.input(2);
  if (!weight || !weight.is_constant() || !is_private(producer.output())) return -1;
  if (weight.dtype() != TN_F32 && weight.dtype() != TN_F64) return -1;
  if (bias && !bias.is_constant()) return -1;
  WeightLayout layout = layout_of(producer);
  if (layout.dims.size() < 2 || layout.dims[0] % layout.n_groups != 0) return -1;
  int64_t n = layout.channels();
  return is_plain(weight) && channel_bias(producer, n) ? n : -1;
}

Result<bool> scale_channels(Rewriter& rewriter, Node root, Node producer, const Affine& affine) {
  int64_t n = scalable_channels(producer);
  if (n < 0 || affine.scale.size() != static_cast<size_t>(n)) return false;
  Value old_weight = producer.input(1), old_bias = producer.input(2);
  WeightLayout layout = layout_of(producer);
  std::vector<double> bias = *channel_bias(producer, n);
  double beta = is_gemm(producer) ? producer.attr_float("beta", 1) : 1;
  for (size_t i = 0; i < bias.size(); ++i)
    bias[i] = bias[i] * beta * affine.scale[i] + affine.shift[i];
  auto is_finite = [](double x) { return std::isfinite(x); };
  if (!std::all_of(affine.scale.begin(), affine.scale.end(), is_finite) ||
      !std::all_of(bias.begin(), bias.end(), is_finite))
    return false;

  std::string name = cat(producer.name());
  uint32_t dtype = old_weight.dtype();
  TN_TRY(scaled, scaled_weight(rewriter.edit().ctx(), old_weight, layout, affine.scale));
  TN_TRY(new_weight, rewriter.edit().constant(scaled, old_weight.name()));
  std::string bias_name = old_bias ? std::string(old_bias.name()) : cat(name, "_bias");
  TN_TRY(new_bias, rewriter.numbers(dtype, {n}, bias, bias_name));
  TN_TRY(made, rewriter.op(producer.type(), {producer.input(0), new_weight, new_bias},
                           attributes_of(producer, true)));
  return rewriter.replace_as(root, made, name);
}

}  // namespace tenon::fusion
