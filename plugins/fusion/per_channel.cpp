// SPDX-License-Identifier: Apache-2.0
// conv(x, w)*s + t = conv(x, w*s) + t, as convolution is linear in each output channel's weights;
// with a bias b: (conv(x, w) + b)*s + t = conv(x, w*s) + (b*s + t). Gemm: alpha scales with w, and
// beta*c*s + t becomes the new c with beta 1. BatchNormalization's own scale and bias take them as
// they are, and so does each branch of a Concat. Computed in double, rounded once.
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
  if (t.device.device_type != kDLCPU || !is_dense(t)) return false;
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
  services.tensor->unneeded(old.get());
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

bool are_finite(const std::vector<double>& all) {
  return std::all_of(all.begin(), all.end(), [](double x) { return std::isfinite(x); });
}

// Channels of a BatchNormalization for inference whose scale and bias are constants; else -1.
int64_t norm_channels(Node norm) {
  if (!norm || !norm.is("BatchNormalization") || norm.attr_int("training_mode") != 0) return -1;
  for (uint64_t i = 1; i < norm.n_outputs(); ++i)
    if (norm.output(i).is_used()) return -1;
  if (!is_private(norm.output())) return -1;
  size_t n = 0;
  for (uint64_t i : {1, 2}) {
    Value value = norm.input(i);
    if (!value || !value.is_constant() || !is_plain(value)) return -1;
    const size_t size = numbers_of(value)->size();
    if (i == 2 && size != n) return -1;
    n = size;
  }
  return static_cast<int64_t>(n);
}

Result<Value> scaled_norm(Rewriter& rewriter, Node norm, const Affine& affine) {
  std::vector<double> scale = *numbers_of(norm.input(1));
  std::vector<double> bias = *numbers_of(norm.input(2));
  for (size_t i = 0; i < scale.size(); ++i) {
    scale[i] *= affine.scale[i];
    bias[i] = bias[i] * affine.scale[i] + affine.shift[i];
  }
  if (!are_finite(scale) || !are_finite(bias)) return Value{};
  const auto n = static_cast<int64_t>(scale.size());
  TN_TRY(new_scale, rewriter.numbers(norm.input(1).dtype(), {n}, scale, cat(norm.input(1).name())));
  TN_TRY(new_bias, rewriter.numbers(norm.input(2).dtype(), {n}, bias, cat(norm.input(2).name())));
  return rewriter.op(norm.type(),
                     {norm.input(0), new_scale, new_bias, norm.input(3), norm.input(4)},
                     attributes_of(norm, false), cat(norm.name()));
}

// Channels of a Concat of such nodes along them; else -1.
int64_t concat_channels(Node concat) {
  Type type = concat.output().type();
  if (!is_private(concat.output()) || !type.ranked || type.rank() < 2) return -1;
  if (positive_axis(concat.attr_int("axis"), type.rank()) != 1) return -1;
  int64_t all = 0;
  for (Value branch : concat.inputs()) {
    uint64_t output = 0;
    const int64_t n = scalable_channels(branch.producer(&output));
    if (n < 0 || output != 0) return -1;
    all += n;
  }
  return all;
}

Result<Value> scaled_node(Rewriter& rewriter, Node producer, const Affine& affine);

// Each branch takes the part of its channels.
Result<Value> scaled_concat(Rewriter& rewriter, Node concat, const Affine& affine) {
  std::vector<Value> branches;
  auto scale = affine.scale.begin(), shift = affine.shift.begin();
  for (Value branch : concat.inputs()) {
    const int64_t n = scalable_channels(branch.producer());
    TN_TRY(made, scaled_node(rewriter, branch.producer(),
                             {std::vector(scale, scale + n), std::vector(shift, shift + n)}));
    if (!made) return Value{};
    branches.push_back(made);
    scale += n, shift += n;
  }
  return rewriter.op("Concat", branches, {{"axis", 1}}, cat(concat.name()));
}

// A convolution or Gemm.
Result<Value> scaled_product(Rewriter& rewriter, Node producer, const Affine& affine) {
  const auto n = static_cast<int64_t>(affine.scale.size());
  Value old_weight = producer.input(1), old_bias = producer.input(2);
  WeightLayout layout = layout_of(producer);
  std::vector<double> bias = *channel_bias(producer, n);
  double beta = is_gemm(producer) ? producer.attr_float("beta", 1) : 1;
  for (size_t i = 0; i < bias.size(); ++i)
    bias[i] = bias[i] * beta * affine.scale[i] + affine.shift[i];
  if (!are_finite(affine.scale) || !are_finite(bias)) return Value{};

  std::string name = cat(producer.name());
  uint32_t dtype = old_weight.dtype();
  TN_TRY(scaled, scaled_weight(rewriter.edit().ctx(), old_weight, layout, affine.scale));
  TN_TRY(new_weight, rewriter.made_of(old_weight, scaled, old_weight.name()));
  std::string bias_name = old_bias ? std::string(old_bias.name()) : cat(name, "_bias");
  TN_TRY(new_bias, rewriter.numbers(dtype, {n}, bias, bias_name));
  return rewriter.op(producer.type(), {producer.input(0), new_weight, new_bias},
                     attributes_of(producer, true), name);
}

// The node with affine behind it, as one node or one for each branch; none where numbers would be
// infinite.
Result<Value> scaled_node(Rewriter& rewriter, Node producer, const Affine& affine) {
  if (producer.is("BatchNormalization")) return scaled_norm(rewriter, producer, affine);
  if (producer.is("Concat")) return scaled_concat(rewriter, producer, affine);
  return scaled_product(rewriter, producer, affine);
}

// The nodes that a Concat puts together, and those that a Concat among them does.
void add_branches(Node node, std::vector<Node>* out) {
  for (Value branch : node.is("Concat") ? node.inputs() : std::vector<Value>{}) {
    out->push_back(branch.producer());
    add_branches(branch.producer(), out);
  }
}

}  // namespace

int64_t scalable_channels(Node producer) {
  if (const int64_t n = norm_channels(producer); n >= 0) return n;
  if (producer && producer.is("Concat")) return concat_channels(producer);
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
  const int64_t n = scalable_channels(producer);
  if (n < 0 || affine.scale.size() != static_cast<size_t>(n)) return false;
  const std::string name = cat(producer.name());
  std::vector<Node> branches;
  add_branches(producer, &branches);
  std::vector<std::string> names;
  for (Node branch : branches)
    names.push_back(cat(branch.name()));
  TN_TRY(made, scaled_node(rewriter, producer, affine));
  if (!made) return rewriter.give_up();
  TN_TRY(is_replaced, rewriter.replace_as(root, made, name));
  if (!is_replaced || branches.empty()) return is_replaced;
  branches.clear();
  add_branches(made.producer(), &branches);
  for (size_t i = 0; i < branches.size(); ++i)
    TN_CHECK(services.edit->set_node_name(rewriter.edit().raw, branches[i].id, str(names[i])));
  return true;
}

}  // namespace tenon::fusion
