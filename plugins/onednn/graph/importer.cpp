// SPDX-License-Identifier: Apache-2.0
#include "importer.hpp"

#include <algorithm>
#include <utility>

namespace tenon::onednn {
namespace {

struct TypeRow {
  uint32_t dtype;
  ElementType type;
};
constexpr TypeRow kTypes[] = {
    {TN_F32, ElementType::kF32}, {TN_BF16, ElementType::kBf16}, {TN_F16, ElementType::kF16},
    {TN_U8, ElementType::kU8},   {TN_I8, ElementType::kS8},     {TN_I32, ElementType::kI32},
    {TN_I64, ElementType::kI64}, {TN_BOOL, ElementType::kBool}, {TN_F64, ElementType::kF64},
    {TN_U16, ElementType::kU16}, {TN_I16, ElementType::kS16},   {TN_U32, ElementType::kU32},
    {TN_U64, ElementType::kU64}, {TN_U4, ElementType::kU4},     {TN_I4, ElementType::kS4},
};

class Importer {
 public:
  explicit Importer(const tn_graph* source) : source_{source} {}

  Result<Imported> run() {
    std::vector<tenon::Value> before = source_.list(TN_LIST_STATES, 0);
    std::vector<tenon::Value> after = source_.list(TN_LIST_STATES, 1);
    for (tenon::Value input : source_.inputs()) {
      int index = value_index(input);
      if (std::find(before.begin(), before.end(), input) == before.end())
        made_.graph.inputs.push_back(index);
    }
    std::vector<tenon::Node> nodes = source_.nodes();
    for (const tenon::Node& node : nodes)
      add_node(node);
    for (tenon::Value output : source_.outputs()) {
      if (std::find(after.begin(), after.end(), output) == after.end())
        made_.graph.add_output(value_index(output));
    }
    for (size_t i = 0; i < before.size(); ++i)
      made_.graph.states.emplace_back(value_index(before[i]), value_index(after[i]));
    made_.graph.finish();
    return std::move(made_);
  }

 private:
  int value_index(tenon::Value source) {
    if (!source) return kNone;
    auto [found, is_new] = index_.try_emplace(source.id, 0);
    if (!is_new) return found->second;
    Type type = source.type();
    Value value;
    value.name = std::string(source.name());
    value.type = element_of(type.dtype);
    bool is_known =
        value.type != ElementType::kCount && type.is_static() && type.kind == TN_KIND_TENSOR;
    if (is_known) value.dims = type.dims;
    if (tn_tensor* constant = services.graph->constant(source.graph, source.id)) {
      made_.constants.push_back(Tensor::share(constant));
      DLTensor view = made_.constants.back().dl();
      value.data = data_of<const void>(view);
    }
    found->second = made_.graph.add_value(std::move(value));
    made_.is_known.push_back(is_known);
    made_.dtypes.push_back(type.dtype);
    return found->second;
  }

  void add_node(const tenon::Node& source) {
    Node node;
    std::string domain(source.domain());
    bool is_onnx = domain.empty() || domain == "ai.onnx";
    node.op = is_onnx ? std::string(source.type()) : domain + "." + std::string(source.type());
    node.name = std::string(source.name());
    for (const tenon::Value& input : source.inputs())
      node.inputs.push_back(value_index(input));
    for (const tenon::Value& output : source.outputs())
      node.outputs.push_back(value_index(output));
    uint64_t n_attributes = services.graph->attr_count(source.graph, source.id);
    for (uint64_t i = 0; i < n_attributes; ++i) {
      std::string name(view(services.graph->attr_name(source.graph, source.id, i)));
      add_attribute(node, name, source.attr(name));
    }
    node.is_cheap = is_cheap(source.row());
    made_.unbound.push_back(add_expression(node, source));
    made_.node_ids.push_back(source.id);
    made_.graph.add_node(std::move(node));
  }

  static void add_attribute(Node& node, const std::string& name, const tn_any& any) {
    switch (any.tag) {
      case TN_ANY_I64:
      case TN_ANY_BOOL:
        node.attributes.push_back({name, any.v.i});
        break;
      case TN_ANY_F64:
        node.attributes.push_back({name, any.v.f});
        break;
      case TN_ANY_TEXT:
        node.attributes.push_back({name, std::string(text_of(any))});
        break;
      case TN_ANY_I64S:
        node.attributes.push_back({name, ints_of(any)});
        break;
      case TN_ANY_F64S:
        node.attributes.push_back({name, floats_of(any)});
        break;
      case TN_ANY_TEXTS:
        node.attributes.push_back({name, texts_of(any)});
        break;
      default:
        break;  // tensors, types and graphs: no handler reads them
    }
  }

  static bool is_cheap(const tn_op* row) {
    if (row == nullptr) return false;
    const tn_op_columns* columns = services.columns->columns(row);
    const bool is_view = (row->traits & TN_OP_VIEW) != 0;  // no kernel of its own to run again
    return columns && columns->recompute <= TN_RECOMPUTE_FUSIBLE && !is_view;
  }

  static std::string add_expression(Node& node, const tenon::Node& source) {
    const tn_op* row = source.row();
    if (row == nullptr || row->expr.len == 0) return {};
    const tn_expr_program* program = nullptr;
    Status bound(services.op->expr(source.graph, source.id, &program));
    if (!bound.ok()) return bound.message();
    node.expr.assign(program->nodes, program->nodes + program->count);
    node.domain = program->domain;
    node.bits = program->bits;
    return {};
  }

  tenon::Graph source_;
  Imported made_;
  std::unordered_map<tn_value_id, int> index_;
};

}  // namespace

ElementType element_of(uint32_t dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.type;
  }
  return ElementType::kCount;
}

Result<Imported> import_graph(const tn_graph* source) {
  return Importer(source).run();
}

}  // namespace tenon::onednn
