// SPDX-License-Identifier: Apache-2.0
#include "pointwise_group.hpp"

#include <algorithm>
#include <map>

#include "codegen/intrinsics.hpp"

namespace tenon::cuda {
namespace {

constexpr size_t kWords = 512;  // of arguments, as many as any device takes

bool is_cast(const NodeInfo& node) {
  return node.op == "Cast" || node.op == "CastLike";
}

// Broadcast by NumPy's rules is what the row's shape rule has checked already.
bool broadcasts(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t a = from[from.size() - 1 - i], b = to[to.size() - 1 - i];
    if (a != b && a != 1) return false;
  }
  return true;
}

// The only user of a value that is not an output of the graph.
int only_user(const Imported& graph, int value) {
  const ValueInfo& info = graph.value(value);
  return info.users.size() == 1 && !info.is_output ? info.users[0] : kAbsent;
}

// The bias of an Add behind a product or convolution; kAbsent: it is something else.
int bias_of(const Imported& graph, const NodeInfo& add, int result, size_t channel_axis) {
  if (add.op != "Add") return kAbsent;
  int other = add.in[0] == result ? add.in[1] : add.in[0];
  if (other == result || other == kAbsent) return kAbsent;
  const ValueInfo& bias = graph.value(other);
  const Dims& dims = graph.value(result).dims;
  if (bias.dtype != graph.value(result).dtype || graph.value(add.out[0]).dims != dims)
    return kAbsent;
  if (bias.dims.size() > dims.size() || bias.count() != dims[channel_axis]) return kAbsent;
  size_t shift = dims.size() - bias.dims.size();
  if (channel_axis < shift || bias.dims[channel_axis - shift] != dims[channel_axis]) return kAbsent;
  // It must be there before the product runs.
  if (bias.producer != kAbsent && bias.producer > graph.value(result).producer) return kAbsent;
  return other;
}

Activation activation_of(const NodeInfo& node, bool is_product) {
  if (node.op == "Relu") return Activation::kRelu;
  bool is_tanh = node.op == "Gelu" && node.source.attr_text("approximate", "none") == "tanh";
  return is_tanh && is_product ? Activation::kGeluTanh : Activation::kNone;
}

bool has_own_bias(const NodeInfo& node) {
  return node.input(2) != kAbsent;
}

}  // namespace

bool is_pointwise(const Imported&, const NodeInfo& node) {
  return node.program != nullptr || is_cast(node);
}

std::string refuse_pointwise(const Imported& graph, const NodeInfo& node) {
  if (node.out.size() > 1) return "more than one output";
  size_t n_inputs = 0;
  for (int value : node.in) {
    if (value == kAbsent) continue;
    ++n_inputs;
    const ValueInfo& info = graph.value(value);
    if (*element_text(info.dtype) == 0) return cat("no kernels for ", dtype_name(info.dtype));
    if (!is_cast(node) && !broadcasts(info.dims, graph.value(node.out[0]).dims)) {
      return cat("input ", info.name, " is no broadcast of the output");
    }
  }
  size_t most = most_inputs(graph.value(node.out[0]).dims);
  if (n_inputs > most) return cat("more than ", most, " inputs");
  const ValueInfo& out = graph.value(node.out[0]);
  if (*element_text(out.dtype) == 0) return cat("no kernels for ", dtype_name(out.dtype));
  if (is_cast(node)) return {};
  for (uint64_t i = 0; i < node.program->count; ++i) {
    const tn_expr_node& part = node.program->nodes[i];
    if (part.op == TN_EXPR_CONST || part.op == TN_EXPR_INPUT) continue;
    const Intrinsic* row = find_intrinsic(part.op);
    bool is_real = node.program->domain == TN_EXPR_DOMAIN_FLOAT;
    if (!row || !(is_real ? row->real : row->whole)) return cat("scalar function ", part.op);
  }
  return {};
}

size_t most_inputs(const Dims& dims) {
  size_t rank = std::max<size_t>(dims.size(), 1);
  return (kWords - 2 - rank) / (1 + rank);
}

GatheredGroup gather_group(const Imported& graph, const std::vector<int>& members) {
  GatheredGroup out;
  PointwiseGroup& group = out.group;
  std::map<int, int> part_of, input_of;  // by value
  for (int member : members) {
    const NodeInfo& node = graph.nodes[static_cast<size_t>(member)];
    PointwisePart part;
    part.program = is_cast(node) ? nullptr : node.program;
    part.dtype = graph.value(node.out[0]).dtype;
    size_t n_operands = is_cast(node) ? 1 : node.in.size();
    for (size_t i = 0; i < n_operands; ++i) {
      int value = node.in[i];
      if (value == kAbsent) {
        part.operands.push_back({});
      } else if (auto found = part_of.find(value); found != part_of.end()) {
        part.operands.push_back({false, found->second});
      } else {
        auto [at, is_new] = input_of.try_emplace(value, static_cast<int>(out.inputs.size()));
        if (is_new) {
          out.inputs.push_back(value);
          group.inputs.push_back({graph.value(value).dtype, graph.value(value).dims});
        }
        part.operands.push_back({true, at->second});
      }
    }
    part_of[node.out[0]] = static_cast<int>(group.parts.size());
    group.parts.push_back(std::move(part));
  }
  const ValueInfo& result = graph.value(graph.nodes[static_cast<size_t>(members.back())].out[0]);
  group.dims = result.dims;
  group.dtype = result.dtype;
  return out;
}

void put_channels_last(PointwiseGroup* group) {
  size_t rank = group->dims.size();
  auto move = [rank](Dims& dims) {
    dims.insert(dims.begin(), rank - dims.size(), 1);
    std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  };
  for (PointwiseGroup::Input& input : group->inputs)
    move(input.dims);
  move(group->dims);
}

bool find_tail(const Imported& graph, int index, Lowering::Tail* tail, std::vector<int>* absorbed) {
  const NodeInfo& node = graph.nodes[static_cast<size_t>(index)];
  bool is_product = node.op == "MatMul" || node.op == "Gemm";
  if (!is_product && node.op != "Conv") return false;
  int value = node.out[0];
  const Dims& dims = graph.value(value).dims;
  uint32_t dtype = graph.value(value).dtype;
  if (dims.size() < 2 || (dtype != TN_F32 && dtype != TN_F16 && dtype != TN_BF16)) return false;
  size_t channel_axis = is_product ? dims.size() - 1 : 1;
  int user = only_user(graph, value);
  if (user != kAbsent && !has_own_bias(node)) {
    const NodeInfo& add = graph.nodes[static_cast<size_t>(user)];
    // A bias per batch is not one vector: the product of vectors has no such axis either.
    int bias = node.in.size() < 3 ? bias_of(graph, add, value, channel_axis) : kAbsent;
    if (bias != kAbsent) {
      tail->bias = bias;
      absorbed->push_back(user);
      value = add.out[0];
      user = only_user(graph, value);
    }
  }
  if (user != kAbsent) {
    const NodeInfo& next = graph.nodes[static_cast<size_t>(user)];
    // cuDNN has ReLU behind a bias only.
    bool has_bias = is_product || tail->bias != kAbsent || has_own_bias(node);
    if (has_bias) tail->activation = activation_of(next, is_product);
    if (tail->activation != Activation::kNone) {
      absorbed->push_back(user);
      value = next.out[0];
    }
  }
  tail->out = value;
  return !absorbed->empty();
}

}  // namespace tenon::cuda
