// SPDX-License-Identifier: Apache-2.0
#include "sizes/alike.hpp"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <string>
#include <unordered_map>

#include "values/tensor.hpp"

namespace tenon::host {
namespace {

constexpr uint64_t kMostBytes = 4096;  // of constants that are compared by their elements
// Of notes that keep what a file says of a node for people and for its writer.
constexpr std::string_view kOfFiles = "onnx.";

bool is_same(const tn_tensor* a, const tn_tensor* b) {
  if (a == b) return true;
  return a && b && a->dtype() == b->dtype() && std::ranges::equal(a->shape(), b->shape()) &&
         a->dense && b->dense && a->bytes <= kMostBytes && a->data() && b->data() &&
         std::memcmp(a->data(), b->data(), a->bytes) == 0;
}

bool have_same(const NamedAnys& a, const NamedAnys& b) {
  auto counts = [](const NamedAny& note) { return !note.name.starts_with(kOfFiles); };
  return std::ranges::equal(a | std::views::filter(counts), b | std::views::filter(counts));
}

bool is_same(const Function& a, const Function& b) {
  return a.domain == b.domain && a.type == b.type && a.body == b.body && a.vjp == b.vjp;
}

// One graph's values and symbols beside the other's, in step.
class Comparison {
 public:
  Comparison(const Tables& a, const Tables& b) : a_(a), b_(b) {}

  bool holds() {
    auto are_functions = [](const Function& f, const Function& g) { return is_same(f, g); };
    auto are_inputs = [this](tn_value_id x, tn_value_id y) { return have_inputs(x, y); };
    auto are_nodes = [this](tn_node_id x, tn_node_id y) { return have_nodes(x, y); };
    auto are_outputs = [this](const Output& x, const Output& y) {
      return are_paired(x.value, y.value);
    };
    return a_.states.empty() && b_.states.empty() && have_same(a_.notes, b_.notes) &&
           std::ranges::equal(a_.functions, b_.functions, are_functions) &&
           std::ranges::equal(a_.inputs, b_.inputs, are_inputs) &&
           std::ranges::equal(a_.order, b_.order, are_nodes) &&
           std::ranges::equal(a_.outputs, b_.outputs, are_outputs);
  }

 private:
  bool have_inputs(tn_value_id x, tn_value_id y) {
    const Value& ours = *a_.values.find(x);
    const Value& theirs = *b_.values.find(y);
    values_[x] = y;
    return have_types(*ours.type, *theirs.type) && have_same(ours.notes, theirs.notes);
  }

  // A symbol stands for the same symbol of the other graph everywhere.
  bool have_types(const Type& x, const Type& y) {
    if (x.kind != y.kind || x.dtype != y.dtype || x.rank != y.rank || x.dims != y.dims)
      return false;
    for (size_t i = 0; i < x.dims.size(); ++i) {
      auto pair = [&](auto& symbols, std::string_view from, std::string_view to) {
        return symbols.emplace(from, to).first->second == to;
      };
      if (!pair(theirs_, x.symbol(i), y.symbol(i)) || !pair(ours_, y.symbol(i), x.symbol(i)))
        return false;
    }
    return true;
  }

  bool are_paired(tn_value_id x, tn_value_id y) {
    if (!x || !y) return x == y;
    if (auto found = values_.find(x); found != values_.end()) return found->second == y;
    const Value& ours = *a_.values.find(x);
    const Value& theirs = *b_.values.find(y);
    return ours.constant && is_same(ours.constant.get(), theirs.constant.get()) &&
           have_same(ours.notes, theirs.notes);
  }

  bool have_nodes(tn_node_id x, tn_node_id y) {
    const Node& ours = *a_.nodes.find(x);
    const Node& theirs = *b_.nodes.find(y);
    bool same =
        ours.domain == theirs.domain && ours.type == theirs.type && ours.attrs == theirs.attrs &&
        have_same(ours.notes, theirs.notes) && ours.outputs.size() == theirs.outputs.size() &&
        std::ranges::equal(ours.inputs, theirs.inputs,
                           [this](uint64_t one, uint64_t other) { return are_paired(one, other); });
    for (size_t i = 0; same && i < ours.outputs.size(); ++i)
      values_[ours.outputs[i]] = theirs.outputs[i];
    return same;
  }

  const Tables& a_;
  const Tables& b_;
  std::unordered_map<tn_value_id, tn_value_id> values_;
  std::unordered_map<std::string, std::string> theirs_, ours_;  // symbols
};

}  // namespace

bool are_alike(const tn_graph& a, const tn_graph& b) {
  return Comparison(*a.tables, *b.tables).holds();
}

}  // namespace tenon::host
