// SPDX-License-Identifier: Apache-2.0
#include "assignment.hpp"

#include <algorithm>
#include <numeric>

#include "tenon/sdk/multiplied.hpp"
#include "tenon/sdk/pattern.hpp"

#include "scale.hpp"

namespace tenon::quantizer {
namespace {

// only: a is all that the node reads besides constants, so unknown sizes are the same ones.
bool same_shape(Value a, Value b, bool only) {
  Type x = a.type(), y = b.type();
  if (!x.ranked || !y.ranked || x.dims != y.dims) return false;
  if (only) return true;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (x.dims[i] >= 0) continue;
    if (i >= x.symbols.size() || i >= y.symbols.size()) return false;
    if (x.symbols[i].empty() || x.symbols[i] != y.symbols[i]) return false;
  }
  return true;
}

std::string advice(Value v) {
  bool is_half = v.dtype() == TN_F16 || v.dtype() == TN_BF16;
  if (is_half) return "; apply precision.widen first";
  return v.dtype() == TN_F64 ? "; export the model in float32" : "";
}

// A constant that becomes part of the result: data of its own (of the result's rank), or a filling
// that is not 0. Scales of a Resize and other parameters are no data.
bool is_data_constant(Value v, Value result) {
  if (!v.is_constant() || v.dtype() != TN_F32) return false;
  DLTensor tensor = v.constant().dl();
  if (tensor.ndim == 0) return *data_of<float>(tensor) != 0;
  Type type = result.type();
  return element_count(tensor) > 0 && type.ranked &&
         type.rank() == static_cast<size_t>(tensor.ndim) && tensor.ndim > 1;
}

// Weighs the entries of its one input against each other along an axis: Softmax and its like.
bool is_normalizer(Node node) {
  const tn_axes* axes = node.axes();
  if (!axes || axes->n_inputs != 1) return false;
  return std::any_of(axes->terms, axes->terms + axes->n_terms,
                     [](const tn_axes_term& term) { return term.flags & TN_AXES_TERM_REDUCED; });
}

// A weight with more axes than one product takes: its output channel is not where the role says.
bool is_stack(Node node, const Product& product, size_t rank) {
  const tn_axes* axes = node.axes();
  if (!axes || static_cast<uint64_t>(product.weight) >= axes->n_inputs) return false;
  const tn_axes_operand& operand = axes->operands[product.weight];
  uint32_t n_batches = 0;
  for (uint32_t t = 0; t < operand.n_terms; ++t)
    n_batches += (axes->terms[operand.first_term + t].flags & TN_AXES_TERM_BATCH) != 0;
  return n_batches > 0 && rank > operand.n_dims - n_batches;
}

bool takes_product(Node node, Products products) {
  return products == Products::kAll || (products == Products::kScores && is_scores(node));
}

}  // namespace

bool is_scores(Node product) {
  Node node = product;
  for (;;) {
    Value result = node.output();
    if (result.consumer_count() != 1) return false;
    node = result.consumer(0, nullptr);
    if (!node || is_normalizer(node)) return static_cast<bool>(node);
    const tn_op* row = node.row();
    if (!row || !(row->traits & TN_OP_POINTWISE)) return false;
  }
}

std::vector<uint64_t> data_inputs(Node node) {
  std::vector<uint64_t> out;
  for (uint64_t i = 0; i < node.n_inputs(); ++i) {
    Value v = node.input(i);
    if (v && !v.is_constant() && is_float(v.dtype())) out.push_back(i);
  }
  return out;
}

Choices Choices::from(const Options& options) {
  std::string products = options.text("products");
  return {.selected = Selected::read(options),
          .products = products == "all"      ? Products::kAll
                      : products == "scores" ? Products::kScores
                                             : Products::kNone};
}

Result<Assignment> Assignment::make(Graph graph, const Choices& choices) {
  Assignment out;
  TN_CHECK(out.decide(graph, choices));
  if (choices.weights_only) return out;
  while (out.drop_unjoined()) {
  }
  out.fuse();
  out.collect();
  out.share_scales();
  return out;
}

bool Assignment::is_taken(Node node) const {
  auto at = index_.find(node.id);
  return at != index_.end() && nodes_[at->second].taken;
}

bool Assignment::has_product_of_activations() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Decision& one) {
    return one.taken && std::any_of(one.role.products.begin(), one.role.products.end(),
                                    [&one](const Product& product) {
                                      return !product.weight_of(one.node).is_constant();
                                    });
  });
}

size_t Assignment::taken_count() const {
  size_t n = 0;
  for (const Decision& one : nodes_)
    n += one.taken;
  return n;
}

bool Assignment::reads(Node node, uint64_t input) const {
  auto at = index_.find(node.id);
  if (at == index_.end() || !nodes_[at->second].taken) return false;
  const Role& role = nodes_[at->second].role;
  Value v = node.input(input);
  if (!v || v.is_constant() || inner_.contains(v.id) || v.dtype() != TN_F32) return false;
  if (role.kind != Kind::kCompute) return true;
  auto i = static_cast<int64_t>(input);
  return std::any_of(role.products.begin(), role.products.end(), [i](const Product& one) {
    return i == one.act || i == one.weight;  // a weight that is no constant: an activation
  });
}

const Decision* Assignment::maker(Value v) const {
  Node node = v.producer();
  if (!node) return nullptr;
  auto at = index_.find(node.id);
  return at != index_.end() && nodes_[at->second].taken ? &nodes_[at->second] : nullptr;
}

Status Assignment::decide(Graph graph, const Choices& choices) {
  for (Node node : graph.nodes()) {
    Decision one{node, role_of(node)};
    if (one.role.is_quantized() && !choices.among_quantized)
      return {TN_FAILED_PRECONDITION,
              cat("the model is already quantized (node ", node.name(), " is a ", node.type(),
                  "): start from the float model, or make it one by ",
                  "quantizer.dequantize (tenon optimize --requantize)")};
    for (Value v : node.outputs())
      one.is_float = one.is_float || (v && is_float(v.dtype()));
    one.why = choices.selected.why_left(node);
    if (!one.why.empty()) {
      // as the user says
    } else if (one.role.is_quantized()) {
      one.why = "in 8 bits already";
    } else if (!one.role.has_row) {
      one.why = cat("operator ", node.type(), " is not known");
    } else if (one.role.is_float()) {
      one.why = cat("operator ", node.type(), " stays in float");
    } else if (one.role.kind == Kind::kCompute) {
      one.why = refuse_compute(one, choices);
    } else {
      one.why = choices.weights_only ? "no weight" : refuse_joiner(one);
    }
    one.taken = one.why.empty();
    index_[node.id] = nodes_.size();
    nodes_.push_back(std::move(one));
  }
  return {};
}

// All of its products, or none: what some weights do in 8 bits has no form of its own.
std::string Assignment::refuse_compute(const Decision& one, const Choices& choices) const {
  std::string why;
  for (const Product& product : one.role.products)
    if (why.empty()) why = refuse_product(one.node, product, choices);
  return why;
}

std::string Assignment::refuse_product(Node node,
                                       const Product& product,
                                       const Choices& choices) const {
  Value act = product.act_of(node), weight = product.weight_of(node);
  if (!act || !weight) return "an input is missing";
  for (Value v : {act, weight, node.output()})
    if (v.dtype() != TN_F32) return cat("expected float32, got ", dtype_name(v.dtype()), advice(v));
  if (act.is_constant()) return "its activation is a constant";
  if (is_computed_of_constants(weight)) return kComputedWeight;
  if (!weight.is_constant())
    return takes_product(node, choices.products) ? ""
                                                 : "both inputs are activations (option products)";
  DLTensor tensor = weight.constant().dl();
  if (tensor.ndim < 2) return cat("weight of rank ", tensor.ndim, ", expected 2 or more");
  if (is_stack(node, product, static_cast<size_t>(tensor.ndim)) || product.axis >= tensor.ndim)
    return cat("weight of rank ", tensor.ndim);
  if (element_count(tensor) == 0) return "empty weight";
  return all_finite(tensor) ? "" : "its weight has numbers that are not finite";
}

std::string Assignment::refuse_joiner(const Decision& one) const {
  Value result = one.node.output();
  if (one.node.n_outputs() == 0 || !result || result.dtype() != TN_F32) return "not float32";
  if (data_inputs(one.node).empty()) return "nothing in 8 bits to read";
  for (Value v : one.node.inputs())
    if (one.role.kind == Kind::kSameScale && v && is_data_constant(v, result))
      return "a constant would need its scale";
  return "";
}

bool Assignment::feeds_compute(Value v) const {
  for (uint64_t i = 0; i < v.consumer_count(); ++i) {
    uint64_t input = 0;
    Node user = v.consumer(i, &input);
    auto at = index_.find(user.id);
    if (at == index_.end() || !nodes_[at->second].taken) continue;
    if (nodes_[at->second].role.kind == Kind::kCompute && reads(user, input)) return true;
  }
  return false;
}

// One step towards the largest set in which every joiner reads and is read by 8-bit nodes.
bool Assignment::drop_unjoined() {
  bool changed = false;
  for (Decision& one : nodes_) {
    if (!one.taken || one.role.kind == Kind::kCompute) continue;
    for (uint64_t i : data_inputs(one.node)) {
      Value v = one.node.input(i);
      if (!maker(v) && !feeds_compute(v)) one.why = cat("reads ", v.name(), ", which is float");
    }
    bool is_read = false;
    for (Value v : one.node.outputs())
      for (uint64_t i = 0; v && i < v.consumer_count(); ++i)
        is_read = is_read || is_taken(v.consumer(i));
    if (one.why.empty() && !is_read) one.why = "its result is needed in float only";
    one.taken = one.why.empty();
    changed = changed || !one.taken;
  }
  return changed;
}

// Results that go straight into a pointwise node: at most one into each, the one made last.
void Assignment::fuse() {
  for (const Decision& one : nodes_) {
    bool absorbs = one.role.kind == Kind::kTable || one.role.kind == Kind::kRequant;
    if (!one.taken || !absorbs || !one.role.pointwise) continue;
    size_t best = 0;
    tn_value_id chosen = 0;
    std::vector<uint64_t> inputs = data_inputs(one.node);
    for (uint64_t i : inputs) {
      Value v = one.node.input(i);
      const Decision* from = maker(v);
      if (!from || v.consumer_count() != 1 || v.is_output()) continue;
      bool gives = from->role.kind == Kind::kCompute ||
                   (from->role.is_elementwise && from->role.kind != Kind::kSameScale);
      size_t at = index_.at(from->node.id);
      if (!gives || (chosen && at < best)) continue;
      if (!same_shape(v, one.node.output(), inputs.size() == 1)) continue;
      best = at;
      chosen = v.id;
    }
    if (chosen) inner_.insert(chosen);
  }
}

void Assignment::collect() {
  std::unordered_set<tn_value_id> known;
  for (const Decision& one : nodes_) {
    if (!one.taken) continue;
    for (uint64_t i = 0; i < one.node.n_inputs(); ++i) {
      Value v = one.node.input(i);
      if (reads(one.node, i) && known.insert(v.id).second) values_.push_back(v);
    }
  }
}

// Whether only this node, which lays its inputs side by side, reads what another computed: rounding
// that to a scale of its own first would be one rounding more, and another pass over it.
bool Assignment::is_made_for(const Decision& one, Value source) const {
  if (!one.role.lays_side_by_side || source.consumer_count() != 1 || source.is_output())
    return false;
  const Decision* from = maker(source);
  return from && from->role.kind != Kind::kSameScale;
}

void Assignment::share_scales() {
  std::unordered_map<tn_value_id, size_t> place;
  for (size_t i = 0; i < values_.size(); ++i)
    place[values_[i].id] = i;
  std::vector<size_t> root(values_.size());
  std::iota(root.begin(), root.end(), size_t{0});
  auto find = [&](size_t i) {
    while (root[i] != i)
      i = root[i];
    return i;
  };
  auto share = [&](Value result, Value source) {
    auto one = place.find(result.id), other = place.find(source.id);
    if (one == place.end() || other == place.end()) return false;
    size_t a = find(one->second), b = find(other->second);
    root[std::max(a, b)] = std::min(a, b);
    return true;
  };
  std::unordered_set<tn_value_id> derived;
  for (const Decision& one : nodes_) {
    if (!one.taken) continue;
    for (Value out : one.node.outputs()) {
      const bool moves = one.role.kind == Kind::kSameScale;
      if (moves && place.contains(out.id)) derived.insert(out.id);
      for (uint64_t i : data_inputs(one.node)) {
        Value source = one.node.input(i);
        if (moves)
          share(out, source);
        else if (is_made_for(one, source) && share(out, source))
          derived.insert(source.id);
      }
    }
  }
  std::unordered_map<size_t, size_t> number;
  for (size_t i = 0; i < values_.size(); ++i) {
    groups_[values_[i].id] = number.emplace(find(i), number.size()).first->second;
    if (!derived.contains(values_[i].id)) observed_.push_back(values_[i]);
  }
  group_count_ = number.size();
}

Result<std::vector<Value>> observed_under_any_products(Graph graph, Choices choices) {
  std::vector<Value> all;
  std::unordered_set<tn_value_id> known;
  for (const Products products : {Products::kNone, Products::kScores, Products::kAll}) {
    choices.products = products;
    TN_TRY(assignment, Assignment::make(graph, choices));
    for (Value v : assignment.observed())
      if (known.insert(v.id).second) all.push_back(v);
  }
  return all;
}

}  // namespace tenon::quantizer
