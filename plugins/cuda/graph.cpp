// SPDX-License-Identifier: Apache-2.0
#include "graph.hpp"

#include "tenon/sdk/number.hpp"

#include "quantization.hpp"

namespace tenon::cuda {
namespace {

class Importer {
 public:
  explicit Importer(const tn_graph* source) : source_{source} {}

  Imported run() {
    for (Value input : source_.inputs())
      made_.inputs.push_back(index_of(input));
    for (const Node& node : source_.nodes())
      add(node);
    for (Value output : source_.outputs()) {
      int index = index_of(output);
      made_.outputs.push_back(index);
      made_.values[static_cast<size_t>(index)].is_output = true;
    }
    std::vector<Value> before = source_.list(TN_LIST_STATES, 0);
    std::vector<Value> after = source_.list(TN_LIST_STATES, 1);
    for (size_t i = 0; i < before.size(); ++i) {
      made_.states.push_back(
          {std::string(before[i].name()), index_of(before[i]), index_of(after[i])});
    }
    made_.link();
    return std::move(made_);
  }

 private:
  int index_of(Value source) {
    if (!source) return kAbsent;
    auto [found, is_new] = index_.try_emplace(source.id, static_cast<int>(made_.values.size()));
    if (!is_new) return found->second;
    Type type = source.type();
    ValueInfo value;
    value.name = std::string(source.name());
    value.dtype = type.dtype;
    value.is_known = type.kind == TN_KIND_TENSOR && type.is_static() && type.dtype != TN_DTYPE_NONE;
    if (value.is_known) value.dims = type.dims;
    if (source.is_constant()) value.constant = source.constant();
    made_.values.push_back(std::move(value));
    return found->second;
  }

  void add(const Node& source) {
    NodeInfo node;
    node.source = source;
    std::string domain(source.domain());
    node.op = domain.empty() ? std::string(source.type()) : cat(domain, ".", source.type());
    node.name = std::string(source.name());
    for (Value input : source.inputs())
      node.in.push_back(index_of(input));
    for (Value output : source.outputs())
      node.out.push_back(index_of(output));
    const tn_op* row = source.row();
    if (row && row->expr.len > 0) {
      Status bound(services.op->expr(source.graph, source.id, &node.program));
      if (!bound.ok()) {
        node.program = nullptr;
        node.unbound = bound.message();
      }
    }
    bind_quantization(made_, &node);
    made_.nodes.push_back(std::move(node));
  }

  Graph source_;
  Imported made_;
  std::unordered_map<tn_value_id, int> index_;
};

}  // namespace

Dims Imported::integers(int index) const {
  if (index == kAbsent || !value(index).constant) return {};
  Result<Dims> numbers = numbers_as<int64_t>(value(index).constant.dl());
  return numbers.ok() ? *numbers : Dims();
}

void Imported::link() {
  for (ValueInfo& value : values) {
    value.producer = kAbsent;
    value.users.clear();
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (int value : nodes[i].in)
      if (value != kAbsent) values[static_cast<size_t>(value)].users.push_back(static_cast<int>(i));
    for (int value : nodes[i].out)
      if (value != kAbsent) values[static_cast<size_t>(value)].producer = static_cast<int>(i);
  }
}

Imported import_graph(const tn_graph* source) {
  return Importer(source).run();
}

Dims row_major(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * dims[i];
  return strides;
}

}  // namespace tenon::cuda
