// SPDX-License-Identifier: Apache-2.0
#include "storage.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/layer_form.hpp"
#include "tenon/sdk/pattern.hpp"

#include "columns.hpp"
#include "repeated.hpp"

namespace tenon::quantizer {
namespace {

// Below this a scale for each channel or row, and the nodes, eat up what is saved.
constexpr int64_t kLeastElements = 256;

// The axis of rows of a constant that stands where a product has its activation, as in a transform
// of a signal: no 8-bit product takes its weight there.
std::optional<int64_t> left_matrix(Node node, const Product& product) {
  Value left = product.act_of(node);
  if (!left || !left.is_constant()) return std::nullopt;
  auto act = static_cast<uint64_t>(product.act), weight = static_cast<uint64_t>(product.weight);
  if (std::optional<LayerForm> form = layer_form(node, act, weight)) {
    if (form->slides || form->act_rows < 0) return std::nullopt;
    return form->act_rows;
  }
  // A batch of right operands has no form as a weight: then the constant is the weight, and the
  // batch what it is multiplied with.
  std::optional<LayerForm> swapped = layer_form(node, weight, act);
  if (!swapped || swapped->slides) return std::nullopt;
  return swapped->weight_out;
}

// The axis of rows of a constant table out of which a node cuts some of them, as of positions.
std::optional<int64_t> cut_axis(Node node) {
  const tn_op_columns* columns = node.columns();
  if (!columns || columns->coupling != TN_COUPLING_SLICE || !node.input(0)) return std::nullopt;
  for (uint64_t i = 0; i < columns->n_coupling_keys; ++i) {
    const tn_coupling_key& key = columns->coupling_keys[i];
    if (view(key.key) != "axes" || key.attribute.len > 0 || key.input < 0) continue;
    const Value stated = node.input(static_cast<uint64_t>(key.input));
    const std::optional<std::vector<double>> axes = stated ? numbers_of(stated) : std::nullopt;
    if (!axes || axes->size() != 1) return std::nullopt;
    const size_t rank = node.input(0).type().rank();
    const int64_t axis = positive_axis(static_cast<int64_t>(axes->front()), rank);
    if (axis < 0 || axis + 1 >= static_cast<int64_t>(rank)) return std::nullopt;
    return axis;
  }
  return std::nullopt;
}

bool is_storable(Value value, int64_t axis) {
  if (!value || !value.is_constant() || value.dtype() != TN_F32) return false;
  DLTensor tensor = value.constant().dl();
  if (tensor.ndim < 2 || axis >= tensor.ndim || element_count(tensor) < kLeastElements)
    return false;
  return all_finite(tensor);
}

}  // namespace

nlohmann::ordered_json float_constants(Graph graph) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  std::set<tn_value_id> seen;
  for (Node node : graph.nodes())
    for (Value value : node.inputs()) {
      if (!value || !value.is_constant() || value.dtype() != TN_F32) continue;
      const Type type = value.type();
      if (type.rank() < 2 || type.elements() < kLeastElements) continue;
      if (type.elements() == *std::ranges::max_element(type.dims)) continue;  // scales, biases
      if (!seen.insert(value.id).second) continue;
      out.push_back({{"value", value.name()},
                     {"node", node.name()},
                     {"op", node.type()},
                     {"bytes", bytes_of(TN_F32, type.elements())}});
    }
  return out;
}

std::vector<StoredInput> storable_inputs(const Decision& one) {
  std::vector<StoredInput> out;
  auto add = [&](int64_t input, int64_t axis, StoredAs how) {
    if (is_storable(one.node.input(static_cast<uint64_t>(input)), axis))
      out.push_back({input, axis, how});
  };
  for (auto [input, axis] : one.role.stored)
    add(input, axis, StoredAs::kColumns);
  for (const Product& product : one.role.products)
    if (std::optional<int64_t> rows = left_matrix(one.node, product))
      add(product.act, *rows, StoredAs::kChannels);
  if (std::optional<int64_t> axis = cut_axis(one.node)) add(0, *axis, StoredAs::kTable);
  if (one.role.rows < 0) return out;
  const size_t rank = one.node.input(static_cast<uint64_t>(one.role.rows)).type().rank();
  if (rank == 2 && positive_axis(one.node.attr_int("axis", 0), rank) == 0)
    add(one.role.rows, 0, StoredAs::kTable);
  return out;
}

Status Storage::run(EditView edit, const Assignment& assignment) {
  for (const Decision& one : assignment.nodes()) {
    if (one.taken || !plan_.selected.takes(one.node)) continue;
    for (const StoredInput& stored : storable_inputs(one))
      TN_CHECK((stored.how == StoredAs::kTable ? store_table(edit, one.node, stored)
                                               : store_weight(edit, one.node, stored))
                   .in(one.node.name()));
  }
  return {};
}

RoundedInput rounded(const DLTensor& tensor, const StoredInput& stored, bool per_channel) {
  WeightPlan plan{.axis = stored.axis,
                  .per_channel = per_channel || stored.how == StoredAs::kTable};
  RoundedInput out;
  if (plan.per_channel && stored.how == StoredAs::kColumns)
    out.factors = column_factors(tensor, stored.axis);
  if (out.factors.empty()) {
    out.weight = quantize_weight(tensor, plan);
    return out;
  }
  const std::vector<float> even = without_factors(tensor, out.factors);
  out.weight = quantize_weight(*DenseView(TN_F32, shape_of(tensor), even.data()), plan);
  return out;
}

std::vector<float> RoundedInput::numbers() const {
  std::vector<float> out = dequantized(weight);
  for (size_t k = 0; k < out.size() && !factors.empty(); ++k)
    out[k] *= factors[k % factors.size()];
  return out;
}

Status Storage::run_product(EditView edit, const Decision& one) {
  for (const Product& product : one.role.products)
    if (is_storable(product.weight_of(one.node), product.axis))
      TN_CHECK(store_weight(edit, one.node, {product.weight, product.axis}).in(one.node.name()));
  return {};
}

// Where there are factors, W  becomes  DequantizeLinear(W / c) * c. Nobody multiplies at run time:
// all of it is constant.
Status Storage::store_weight(EditView edit, Node node, const StoredInput& stored) {
  const auto input = static_cast<uint64_t>(stored.input);
  Value value = node.input(input);
  const RoundedInput made = rounded(value.constant().dl(), stored, plan_.per_channel);
  std::string name(value.name());
  TN_TRY(weight, add_weight(edit, name, made.weight, plan_.per_channel));
  note(node, made.weight.snr_db);
  if (made.factors.empty()) return edit.set_input(node, input, weight);
  notes_.back()["columns"] = true;
  std::vector<int64_t> columns{static_cast<int64_t>(made.factors.size())};
  TN_TRY(factors, edit.constant<float>(TN_F32, columns, made.factors, name + "_columns"));
  TN_TRY(whole, edit.add({.type = "Mul",
                          .inputs = {weight, factors},
                          .name = name + "_scaled",
                          .output_names = {name + "_scaled"}}));
  return edit.set_input(node, input, whole.output());
}

// y = Gather(T, i)  becomes  Cast(Gather(T as int8, i)) * Gather(scales of the rows, i), and so
// does a Slice.
Status Storage::store_table(EditView edit, Node node, const StoredInput& stored) {
  const auto input = static_cast<uint64_t>(stored.input);
  Value value = node.input(input);
  const Weight table = rounded(value.constant().dl(), stored, plan_.per_channel).weight;
  std::string name(value.name());
  TN_TRY(numbers, edit.constant<int8_t>(TN_I8, table.shape, table.numbers, name + "_quantized"));
  std::vector<int64_t> column(table.shape.size(), 1);
  column[static_cast<size_t>(stored.axis)] = table.shape[static_cast<size_t>(stored.axis)];
  TN_TRY(scale, edit.constant<float>(TN_F32, column, table.scale, name + "_scale"));
  TN_TRY(rows, repeated(edit, node, {{input, numbers}}, "_quantized"));
  TN_TRY(scales, repeated(edit, node, {{input, scale}}, "_scale"));
  std::string real_name = cat(node.name(), "_float"), scaled_name = cat(node.name(), "_scaled");
  TN_TRY(real, edit.add({.type = "Cast",
                         .inputs = {rows.output()},
                         .attrs = {{"to", any_dtype(TN_F32)}},
                         .name = real_name,
                         .scope = node.scope()}));
  TN_TRY(y, edit.add({.type = "Mul",
                      .inputs = {real.output(), scales.output()},
                      .name = scaled_name,
                      .scope = node.scope()}));
  note(node, table.snr_db);
  TN_CHECK(edit.replace(node.output(), y.output()));
  return edit.erase(node);
}

void Storage::note(Node node, double snr_db) {
  notes_.push_back({{"node", node.name()}, {"op", node.type()}, {"weight_snr_db", snr_db}});
}

namespace {

// Copies: an edit of the graph takes the names away.
std::vector<std::string> names_of_bodies(Node node) {
  std::vector<std::string> out;
  for (const Attr& attr : attributes_of(node))
    if (attr.value.tag == TN_ANY_GRAPH) out.emplace_back(attr.name);
  return out;
}

}  // namespace

Status Storage::run_in_bodies(tn_graph* graph) {
  for (Node node : Graph{graph}.nodes())
    for (const std::string& name : names_of_bodies(node))
      TN_CHECK(run_in_body(graph, node, name));
  return {};
}

Status Storage::run_in_body(tn_graph* graph, Node node, const std::string& name) {
  TN_TRY(body, OwnedGraph::copy_of(static_cast<const tn_graph*>(node.attr(name).v.p)));
  size_t before = notes_.size();
  TN_CHECK(run_in_bodies(body.get()));
  TN_TRY(assignment,
         Assignment::make({body.get()}, {.selected = plan_.selected, .weights_only = true}));
  TN_TRY(inner, Edit::begin(body.get()));
  for (const Decision& one : assignment.nodes())
    if (one.taken) TN_CHECK(run_product(inner, one));
  TN_CHECK(run(inner, assignment));
  TN_CHECK(inner.commit());
  if (notes_.size() == before) return {};
  TN_TRY(edit, Edit::begin(graph));
  TN_CHECK(edit.set_attr(edit.node(node.id), {name, any_graph(body.get())}));
  return edit.commit();
}

}  // namespace tenon::quantizer
