// SPDX-License-Identifier: Apache-2.0
#include "pointwise_group.hpp"

#include <algorithm>
#include <map>

#include "codegen/intrinsics.hpp"
#include "handlers/handlers.hpp"
#include "quantization.hpp"

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
int bias_of(
    const Imported& graph, const NodeInfo& add, int result, size_t channel_axis, int product) {
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
  return bias.producer < product ? other : kAbsent;
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
  for (size_t i = 0; i < node.in.size(); ++i) {
    if (node.in[i] == kAbsent) continue;
    ++n_inputs;
    const ValueInfo& info = graph.value(node.in[i]);
    if (*element_text(info.dtype) == 0) return cat("no kernels for ", dtype_name(info.dtype));
    if (!is_cast(node) && !broadcasts(graph.operand_dims(node, i), graph.value(node.out[0]).dims)) {
      return cat("input ", info.name, " is no broadcast of the output");
    }
  }
  size_t most = most_inputs(graph.value(node.out[0]).dims);
  if (n_inputs > most) return cat("more than ", most, " inputs");
  const ValueInfo& out = graph.value(node.out[0]);
  if (*element_text(out.dtype) == 0) return cat("no kernels for ", dtype_name(out.dtype));
  bool stays = is_cast(node) && is_float8(out.dtype) && node.source.attr_int("saturate", 1) == 0;
  if (stays) return "8-bit reals that do not saturate";
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
  std::map<int, int> part_of;                    // by value
  std::map<std::pair<int, Dims>, int> input_of;  // by value, and how it broadcasts
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
        const Dims& dims = graph.operand_dims(node, i);
        auto [at, is_new] =
            input_of.try_emplace({value, dims}, static_cast<int>(out.inputs.size()));
        if (is_new) {
          out.inputs.push_back(value);
          group.inputs.push_back({graph.value(value).dtype, dims});
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

namespace {

// Walks from a product or convolution through the nodes that it can take in.
class TailFinder {
 public:
  TailFinder(const Imported& graph, int index, bool takes_residuals)
      : graph_(graph),
        node_(graph.nodes[static_cast<size_t>(index)]),
        index_(index),
        is_product_(node_.op != "Conv"),
        takes_residuals_(takes_residuals),
        value_(node_.out[0]) {}

  bool find(Lowering::Tail* tail, std::vector<int>* absorbed) {
    const ValueInfo& out = graph_.value(value_);
    if (out.dims.size() < 2 || real_suffix(out.dtype).empty()) return false;
    while (take_sum()) {
    }
    take_activation();
    tail_.out = value_;
    *tail = tail_;
    *absorbed = absorbed_;
    return !absorbed_.empty();
  }

 private:
  const NodeInfo* next() const {
    int user = only_user(graph_, value_);
    return user == kAbsent ? nullptr : &graph_.nodes[static_cast<size_t>(user)];
  }
  void take(const NodeInfo& next) {
    absorbed_.push_back(static_cast<int>(&next - graph_.nodes.data()));
    value_ = next.out[0];
  }

  bool take_sum() {
    const NodeInfo* add = next();
    if (!add || add->op != "Add") return false;
    size_t channel_axis = is_product_ ? graph_.value(value_).dims.size() - 1 : 1;
    bool has_bias = tail_.bias != kAbsent || has_own_bias(node_) || node_.in.size() > 2;
    int bias = has_bias ? kAbsent : bias_of(graph_, *add, value_, channel_axis, index_);
    int residual = bias == kAbsent ? residual_of(*add) : kAbsent;
    if (bias == kAbsent && residual == kAbsent) return false;
    (bias != kAbsent ? tail_.bias : tail_.residual) = bias != kAbsent ? bias : residual;
    take(*add);
    return true;
  }

  // What an Add adds to the result, of the same shape and there before the product runs.
  int residual_of(const NodeInfo& add) const {
    // A Gemm's own C may be a matrix; cuDNN adds a residual in front of a bias only.
    bool has_bias = tail_.bias != kAbsent || has_own_bias(node_);
    bool has_place = node_.op == "Gemm" ? !has_own_bias(node_) : is_product_ || has_bias;
    if (!takes_residuals_ || tail_.residual != kAbsent || !has_place) return kAbsent;
    int other = add.in[0] == value_ ? add.in[1] : add.in[0];
    if (other == value_ || other == kAbsent) return kAbsent;
    const ValueInfo& residual = graph_.value(other);
    const ValueInfo& result = graph_.value(value_);
    bool is_alike = residual.dtype == result.dtype && residual.dims == result.dims &&
                    graph_.value(add.out[0]).dims == result.dims;
    return is_alike && residual.producer < index_ ? other : kAbsent;
  }

  void take_activation() {
    const NodeInfo* last = next();
    // cuDNN has ReLU behind a sum only.
    bool has_sum =
        is_product_ || tail_.bias != kAbsent || tail_.residual != kAbsent || has_own_bias(node_);
    if (!last || !has_sum) return;
    tail_.activation = activation_of(*last, is_product_);
    if (tail_.activation != Activation::kNone) take(*last);
  }

  const Imported& graph_;
  const NodeInfo& node_;
  int index_;
  bool is_product_, takes_residuals_;
  int value_;  // the result so far
  Lowering::Tail tail_;
  std::vector<int> absorbed_;
};

}  // namespace

bool find_tail(const Imported& graph,
               int index,
               bool takes_residuals,
               Lowering::Tail* tail,
               std::vector<int>* absorbed) {
  const std::string& op = graph.nodes[static_cast<size_t>(index)].op;
  if (op != "MatMul" && op != "Gemm" && op != "Conv") return false;
  return TailFinder(graph, index, takes_residuals).find(tail, absorbed);
}

}  // namespace tenon::cuda
