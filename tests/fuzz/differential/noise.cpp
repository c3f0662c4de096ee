// SPDX-License-Identifier: Apache-2.0
#include "noise.hpp"

#include "tenon/expr.h"
#include "tenon/role/op.h"

namespace tenon::fuzz {
namespace {

// Whether an expression rounds at most once, by IEEE 754's own operations, so that all backends
// give the same number for the same number.
bool is_rounded_once(const tn_expr_program& program) {
  size_t n_roundings = 0;
  for (uint64_t i = 0; i < program.count; ++i) {
    switch (program.nodes[i].op) {
      case TN_EXPR_CONST:
      case TN_EXPR_INPUT:
      case TN_EXPR_NEG:
      case TN_EXPR_ABS:
      case TN_EXPR_SIGN:
      case TN_EXPR_FLOOR:
      case TN_EXPR_CEIL:
      case TN_EXPR_ROUND:
      case TN_EXPR_TRUNC:
      case TN_EXPR_ISNAN:
      case TN_EXPR_ISINF:
      case TN_EXPR_MIN:
      case TN_EXPR_MAX:
      case TN_EXPR_SELECT:
        break;
      case TN_EXPR_ADD:
      case TN_EXPR_SUB:
      case TN_EXPR_MUL:
      case TN_EXPR_DIV:
      case TN_EXPR_SQRT:
        ++n_roundings;
        break;
      default:
        if (program.nodes[i].op != TN_EXPR_NOT && program.nodes[i].op < TN_EXPR_EQ) return false;
    }
  }
  return n_roundings <= 1;
}

// Whether the node's results follow from exact numbers without rounding that could differ.
bool is_exact(Node node) {
  const tn_op* row = node.row();
  if (!row) return false;
  if (row->traits & (TN_OP_VIEW | TN_OP_READS_SHAPE)) return true;
  if (view(row->quant).starts_with("same_scale")) return true;
  const tn_expr_program* program = nullptr;
  return Status(services.op->expr(node.graph, node.id, &program)).ok() && program &&
         is_rounded_once(*program);
}

bool can_be_moved(Value value) {
  return value && value.type().kind == TN_KIND_TENSOR && is_float(value.dtype()) &&
         TN_DTYPE_BITS(value.dtype()) >= 16;
}

class NoiseEditor {
 public:
  NoiseEditor(EditView edit, const Noise& noise, Random& random)
      : edit_(edit), noise_(noise), size_(noise.size), random_(random) {}

  // A node that gives value times 1 + noise.
  Result<Value> moved(Value value) {
    Type type = value.type();
    Type shape(TN_F64, type.is_static() ? type.dims : std::vector<int64_t>{});
    TN_TRY(factors, Tensor::zeros(edit_.ctx(), TN_F64, shape.dims));
    double loudness = std::max(size_, precision_of(type.dtype));
    for (int64_t i = 0; i < shape.elements(); ++i)
      factors.data<double>()[i] = random_.one_in(2) ? 1 + loudness : 1 - loudness;
    TN_TRY(wide, edit_.constant(factors));
    TN_TRY(factor, edit_.op("Cast", {wide}, {{"to", any_dtype(type.dtype)}}));
    TN_TRY(product, edit_.add({.type = "Mul", .inputs = {value, factor}}));
    return product.output();
  }

  // By so little, up or down, wherever value is 0: the imaginary part of a transform is 0 by exact
  // factors, and 1e-17 by rounded ones.
  Result<Value> lifted(Value value, double by) {
    TN_TRY(wide,
           edit_.constant<float>(TN_F32, {}, {static_cast<float>(random_.one_in(2) ? by : -by)}));
    TN_TRY(little, edit_.op("Cast", {wide}, {{"to", any_dtype(value.dtype())}}));
    TN_TRY(is_some, edit_.op("Cast", {value}, {{"to", any_dtype(TN_BOOL)}}));
    return edit_.op("Where", {is_some, value, little});
  }

  Result<Value> flushed(Node node, Value value) {
    double nothing = size_ * (1 + largest_input(node));
    return edit_.op("Shrink", {value}, {{"lambd", nothing}, {"bias", 0.0}});
  }

  // Every result of the node, where it is nothing, becomes 0.
  Status flush(Node node) {
    for (Value value : node.outputs()) {
      if (!can_be_moved(value)) continue;
      TN_TRY(after, flushed(node, value));
      TN_CHECK(edit_.replace(value, after));
      TN_CHECK(edit_.set_input(after.producer(), 0, value));
    }
    return {};
  }

  Status results(Node node) {
    bool is_summed = noise_.is_deep && !is_exact(node);
    // Between the steps of a row no sizes are known, and 1e-8 may be all that there is.
    is_summed = is_summed && !(noise_.is_open && largest_input(node) == 0);
    bool is_flushed = is_summed && random_.one_in(2);
    for (Value value : node.outputs()) {
      if (!can_be_moved(value)) continue;
      TN_TRY(after, moved(value));
      Node first = after.producer();
      if (is_flushed) {
        TN_TRY(kept, flushed(node, after));
        after = kept;
      } else if (is_summed) {
        TN_TRY(some, lifted(after, 1e-3 * size_ * (1 + largest_input(node))));
        after = some;
      }
      TN_CHECK(edit_.replace(value, after));
      TN_CHECK(edit_.set_input(first, 0, value));
    }
    return {};
  }

  // What enters the graph as it is, where this node reads it. Constants stay constants.
  Status entering(Node node) {
    for (uint64_t i = 0; i < node.n_inputs(); ++i) {
      Value value = node.input(i);
      if (!can_be_moved(value) || value.producer()) continue;
      if (!value.is_constant()) {
        TN_TRY(after, moved(value));
        TN_CHECK(edit_.set_input(node, i, after));
        continue;
      }
      if (value.dtype() != TN_F32) continue;
      TN_TRY(tensor, Tensor::copy_of(edit_.ctx(), value.constant().dl()));
      for (int64_t k = 0; k < value.type().elements(); ++k)
        tensor.data<float>()[k] *= static_cast<float>(random_.one_in(2) ? 1 + size_ : 1 - size_);
      TN_TRY(constant, edit_.constant(tensor));
      TN_CHECK(edit_.set_input(node, i, constant));
    }
    return {};
  }

 private:
  double largest_input(Node node) const {
    double out = 0;
    for (Value value : node.inputs())
      if (auto at = noise_.largest.find(value ? std::string(value.name()) : "");
          at != noise_.largest.end())
        out = std::max(out, at->second);
    return out;
  }

  EditView edit_;
  const Noise& noise_;
  double size_;
  Random& random_;
};

// Takes rows apart that can be, those that give integers or all of them: what is real within them
// comes to light.
Status open_rows(tn_graph* graph, bool all) {
  for (Node node : Graph{graph}.nodes()) {
    const tn_op* row = node.row();
    std::vector<Value> outputs = node.outputs();
    bool is_whole = !outputs.empty() && outputs[0] && !is_float(outputs[0].dtype());
    if (!row || !row->decompose || !(is_whole || all) || (row->traits & TN_OP_POINTWISE)) continue;
    TN_TRY(edit, Edit::begin(graph));
    if (!Status(services.op->decompose(edit.raw, node.id)).ok()) continue;
    TN_CHECK(edit.commit());
  }
  return {};
}

}  // namespace

double precision_of(uint32_t dtype) {
  return dtype == TN_BF16 ? 0x1p-7 : dtype == TN_F16 ? 0x1p-9 : 0;
}

Result<OwnedGraph> noisy(const tn_graph* graph, const Noise& noise, Random random) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->clone(graph, &raw));
  OwnedGraph out = OwnedGraph::take(raw);
  if (noise.is_deep && !noise.only_flushes) TN_CHECK(open_rows(raw, noise.is_open));
  TN_TRY(edit, Edit::begin(raw));
  NoiseEditor editor(edit, noise, random);
  for (Node node : edit.graph().nodes()) {
    if (noise.only_flushes) {
      if (!is_exact(node)) TN_CHECK(editor.flush(node));
      continue;
    }
    if (noise.is_deep && !is_exact(node)) TN_CHECK(editor.entering(node));
    TN_CHECK(editor.results(node));
  }
  TN_CHECK(edit.commit());
  return Result<OwnedGraph>(std::move(out));
}

}  // namespace tenon::fuzz
