// SPDX-License-Identifier: Apache-2.0
#include "pointwise_group.hpp"

#include <algorithm>
#include <map>

#include "tenon/sdk/backend/epilogue.hpp"

#include "codegen/intrinsics.hpp"
#include "handlers/handlers.hpp"
#include "quantization.hpp"

namespace tenon::cuda {
namespace {

constexpr size_t kWords = 512;  // of arguments, as many as any device takes

bool is_cast(const NodeInfo& node) {
  return node.op == "Cast" || node.op == "CastLike";
}

Activation activation_of(const NodeInfo& node, bool is_product) {
  if (node.op == "Relu") return Activation::kRelu;
  bool is_tanh = node.op == "Gelu" && node.source.attr_text("approximate", "none") == "tanh";
  return is_tanh && is_product ? Activation::kGeluTanh : Activation::kIdentity;
}

bool has_own_bias(const NodeInfo& node) {
  return node.input(2) != kNone;
}

}  // namespace

bool is_pointwise(const Imported&, const NodeInfo& node) {
  return !node.expr.empty() || is_cast(node);
}

std::string refuse_pointwise(const Imported& graph, const NodeInfo& node) {
  if (node.outputs.size() > 1) return "more than one output";
  size_t n_inputs = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    ++n_inputs;
    const ValueInfo& info = graph.value(node.inputs[i]);
    if (*element_text(info.dtype) == 0) return cat("no kernels for ", dtype_name(info.dtype));
    if (!is_cast(node) &&
        !backend::broadcasts_to(graph.operand_dims(node, i), graph.value(node.outputs[0]).dims)) {
      return cat("input ", info.name, " is no broadcast of the output");
    }
  }
  size_t most = most_inputs(graph.value(node.outputs[0]).dims);
  if (n_inputs > most) return cat("more than ", most, " inputs");
  const ValueInfo& out = graph.value(node.outputs[0]);
  if (*element_text(out.dtype) == 0) return cat("no kernels for ", dtype_name(out.dtype));
  bool stays = is_cast(node) && is_float8(out.dtype) && node.source.attr_int("saturate", 1) == 0;
  if (stays) return "8-bit floats that do not saturate";
  if (is_cast(node)) return {};
  for (const tn_expr_node& part : node.expr) {
    if (part.op == TN_EXPR_CONST || part.op == TN_EXPR_INPUT) continue;
    const Intrinsic* row = find_intrinsic(part.op);
    bool is_floating = node.domain == TN_EXPR_DOMAIN_FLOAT;
    if (!row || !(is_floating ? row->floating : row->integer))
      return cat("scalar function ", part.op);
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
    if (!is_cast(node)) part.program = node.program();
    part.dtype = graph.value(node.outputs[0]).dtype;
    size_t n_operands = is_cast(node) ? 1 : node.inputs.size();
    for (size_t i = 0; i < n_operands; ++i) {
      int value = node.inputs[i];
      if (value == kNone) {
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
    part_of[node.outputs[0]] = static_cast<int>(group.parts.size());
    group.parts.push_back(std::move(part));
  }
  const ValueInfo& result =
      graph.value(graph.nodes[static_cast<size_t>(members.back())].outputs[0]);
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

// What of the chain behind a product or convolution it can take in.
class EpilogueFinder {
 public:
  EpilogueFinder(const Imported& graph, int index, bool takes_residuals)
      : graph_(graph),
        node_(graph.node(index)),
        index_(index),
        is_product_(node_.op != "Conv"),
        takes_residuals_(takes_residuals) {}

  bool find(Lowering::Epilogue* epilogue, std::vector<int>* absorbed) {
    const ValueInfo& out = graph_.value(node_.outputs[0]);
    if (out.dims.size() < 2 || float_suffix(out.dtype).empty()) return false;
    size_t channel_axis = is_product_ ? out.dims.size() - 1 : 1;
    backend::Epilogue found = backend::find_epilogue(
        graph_, index_, channel_axis, [&](const auto& op, const auto& so_far) {
          if (epilogue_.activation != Activation::kIdentity) return false;
          return graph_.node(op.node).op == "Add" ? take_sum(op, so_far.result)
                                                  : take_activation(graph_.node(op.node));
        });
    for (const backend::EpilogueOp& op : found.ops)
      absorbed->push_back(op.node);
    epilogue_.out = found.result;
    *epilogue = epilogue_;
    return !absorbed->empty();
  }

 private:
  using Kind = backend::EpilogueOp::Kind;

  bool take_sum(const backend::EpilogueOp& op, int so_far) {
    if (op.kind == Kind::kUnary) return false;
    const ValueInfo &other = graph_.value(op.other), &result = graph_.value(so_far);
    // It must be there before the product runs.
    if (other.dtype != result.dtype || other.producer >= index_) return false;
    bool has_bias = epilogue_.bias != kNone || has_own_bias(node_) || node_.inputs.size() > 2;
    if (op.kind == Kind::kBias && !has_bias) {
      epilogue_.bias = op.other;
      return true;
    }
    if (!has_place_for_residual() || other.dims != result.dims) return false;
    epilogue_.residual = op.other;
    return true;
  }

  bool has_place_for_residual() const {
    // A Gemm's own C may be a matrix; cuDNN adds a residual in front of a bias only.
    bool has_bias = epilogue_.bias != kNone || has_own_bias(node_);
    bool has_place = node_.op == "Gemm" ? !has_own_bias(node_) : is_product_ || has_bias;
    return takes_residuals_ && epilogue_.residual == kNone && has_place;
  }

  bool take_activation(const NodeInfo& last) {
    // cuDNN has ReLU behind a sum only.
    bool has_sum = is_product_ || epilogue_.bias != kNone || epilogue_.residual != kNone ||
                   has_own_bias(node_);
    if (has_sum) epilogue_.activation = activation_of(last, is_product_);
    return epilogue_.activation != Activation::kIdentity;
  }

  const Imported& graph_;
  const NodeInfo& node_;
  int index_;
  bool is_product_, takes_residuals_;
  Lowering::Epilogue epilogue_;
};

}  // namespace

bool find_epilogue(const Imported& graph,
                   int index,
                   bool takes_residuals,
                   Lowering::Epilogue* epilogue,
                   std::vector<int>* absorbed) {
  const std::string& op = graph.nodes[static_cast<size_t>(index)].op;
  if (op != "MatMul" && op != "Gemm" && op != "Conv") return false;
  return EpilogueFinder(graph, index, takes_residuals).find(epilogue, absorbed);
}

}  // namespace tenon::cuda
