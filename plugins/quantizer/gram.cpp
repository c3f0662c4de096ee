// SPDX-License-Identifier: Apache-2.0
#include "gram.hpp"

#include <map>

#include "padded.hpp"
#include "repeated.hpp"

namespace tenon::quantizer {
namespace {

// What the window of a convolution sees at each place, as channels: the convolution itself, with a
// weight of zeros and ones.
Result<Value> windows(EditView edit, const GramLayer& layer) {
  Type weight = layer.product.weight_of(layer.node).type();
  const WeightForm& form = layer.form;
  std::vector<int64_t> shape = weight.dims;
  shape[0] = form.groups * form.columns;
  std::vector<float> ones(static_cast<size_t>(shape[0] * form.columns), 0);
  for (int64_t g = 0; g < form.groups; ++g)
    for (int64_t k = 0; k < form.columns; ++k)
      ones[static_cast<size_t>((g * form.columns + k) * form.columns + k)] = 1;
  TN_TRY(picks, edit.constant<float>(TN_F32, shape, ones));
  std::map<uint64_t, Value> inputs{{static_cast<uint64_t>(layer.product.weight), picks}};
  if (layer.product.bias >= 0 && static_cast<uint64_t>(layer.product.bias) < layer.node.n_inputs())
    inputs[static_cast<uint64_t>(layer.product.bias)] = {};
  TN_TRY(seen, repeated(edit, edit.node(layer.node.id), inputs, "_windows"));
  std::vector<int64_t> order = {0};
  for (int64_t axis = 2; axis < static_cast<int64_t>(weight.rank()); ++axis)
    order.push_back(axis);
  order.push_back(1);
  return edit.op("Transpose", {seen.output()}, {{"perm", order}});
}

// The state of every step as [.., directions, units]. The last step's is one too many, and the
// first one's, which is zero as a rule, is not there.
Result<Value> states(EditView edit, const GramLayer& layer) {
  Node node = edit.node(layer.node.id);
  Value all = node.output(0);
  if (!all) {  // nobody reads it
    TN_TRY(again, repeated(edit, node, {}, "_states"));
    all = again.output(0);
  }
  if (node.attr_int("layout") != 0) return all;
  std::vector<int64_t> directions_late{0, 2, 1, 3};
  return edit.op("Transpose", {all}, {{"perm", directions_late}});
}

struct Taps {
  Value gram, rows;  // [groups, columns, columns] or without groups, and [inputs, ...] as a shape
};

Result<Taps> add_gram(EditView edit, const GramLayer& layer, const Padded& padded) {
  const WeightForm& form = layer.form;
  const Value read = edit.value(layer.product.act_of(layer.node).id);
  TN_TRY(seen, padded.cleared(edit, read, read));
  if (form.layer.slides || layer.is_state) {
    TN_TRY(made, layer.is_state ? states(edit, layer) : windows(edit, layer));
    seen = made;
  }
  const bool parts = layer.has_parts();
  std::vector<int64_t> shape{-1, form.columns}, perm{1, 0};
  if (parts) shape = {-1, form.groups, form.columns};
  TN_TRY(dims, edit.ints(shape));
  TN_TRY(matrix, edit.op("Reshape", {seen, dims}));
  TN_TRY(rows, edit.op("Shape", {matrix}));
  Value right = matrix;
  if (parts) {
    std::vector<int64_t> columns_last{1, 0, 2};
    perm = {1, 2, 0};
    TN_TRY(made, edit.op("Transpose", {matrix}, {{"perm", columns_last}}));
    right = made;
  }
  TN_TRY(left, edit.op("Transpose", {matrix}, {{"perm", perm}}));
  TN_TRY(gram, edit.op("MatMul", {left, right}));
  return Taps{gram, rows};
}

}  // namespace

std::optional<WeightForm> weight_form(Node node, const Product& product, std::string* why) {
  auto refuse = [&](std::string_view text) -> std::optional<WeightForm> {
    *why = text;
    return std::nullopt;
  };
  auto found =
      layer_form(node, static_cast<uint64_t>(product.act), static_cast<uint64_t>(product.weight));
  Type weight = product.weight_of(node).type();
  if (!found || !weight.is_static()) return refuse("how its weight lies is not known");
  WeightForm form;
  form.layer = *found;
  if (found->is_product()) {
    Type act = product.act_of(node).type();
    if (weight.rank() != 2) return refuse("its weight has more than two axes");
    if (!act.ranked || found->act_in != static_cast<int64_t>(act.rank()) - 1)
      return refuse("it does not sum over the last axis of what it reads");
    form.columns = weight.dims[static_cast<size_t>(found->weight_in)];
    form.rows = weight.dims[static_cast<size_t>(found->weight_out)];
    form.is_transposed = found->weight_in == 0;
  } else {
    if (!found->slides || found->weight_out != 0 || found->weight_in != 1 || found->groups < 1)
      return refuse("neither a product nor a convolution");
    form.groups = found->groups;
    form.rows = weight.dims[0] / form.groups;
    form.columns = weight.dims[1];
    for (size_t d = 2; d < weight.rank(); ++d)
      form.columns *= weight.dims[d];
  }
  return form;
}

Result<std::vector<Gram>> grams_of(tn_ctx* ctx,
                                   Graph graph,
                                   const std::vector<GramLayer>& layers,
                                   const GramData& data,
                                   const Cancel& cancel) {
  Feed& feed = *data.feed;
  std::vector<Value> reads;
  for (const GramLayer& layer : layers)
    if (layer.form.layer.is_product() && !layer.is_state)
      reads.push_back(layer.product.act_of(layer.node));
  TN_TRY(padded, Padded::find(graph, data.mask, reads, &feed));
  TN_TRY(copy, OwnedGraph::copy_of(graph.raw));
  TN_TRY(edit, Edit::begin(copy.get()));
  std::vector<Value> values;
  std::vector<bool> is_padded;            // for each pair of `values`
  std::vector<size_t> place;              // of each layer in `values`
  std::map<tn_value_id, size_t> by_read;  // products that read the same share a matrix
  for (const GramLayer& layer : layers) {
    const Value read = layer.product.act_of(layer.node);
    auto known = by_read.find(read.id);
    const bool is_shared = !layer.form.layer.slides && !layer.is_state;
    if (is_shared && known != by_read.end()) {
      place.push_back(known->second);
      continue;
    }
    if (is_shared) by_read[read.id] = values.size();
    place.push_back(values.size());
    Result<Taps> taps = add_gram(edit, layer, padded);
    if (!taps.ok()) return std::move(taps).status().in(layer.node.name());
    values.insert(values.end(), {{copy.get(), taps->gram.id}, {copy.get(), taps->rows.id}});
    is_padded.push_back(padded.has(read));
  }
  TN_CHECK(edit.commit());
  std::vector<Gram> all(values.size() / 2);
  TN_TRY(plan, Plan::on_first(ctx, copy.view(), values, data.backends));
  Progress progress(ctx, "collecting inputs of layers", feed.samples());
  auto add = [&](const Feed::Batch& batch) -> Status {
    TN_CHECK(padded.read(batch.inputs));
    for (size_t i = 0; i < all.size(); ++i) {
      DLTensor gram = plan.tap(2 * i).dl();
      const int64_t rows = *plan.tap(2 * i + 1).data<int64_t>();
      all[i].inputs += static_cast<uint64_t>(is_padded[i] ? padded.counted(rows) : rows);
      all[i].sums.resize(static_cast<size_t>(element_count(gram)));
      const float* sums = data_of<const float>(gram);
      for (size_t k = 0; k < all[i].sums.size(); ++k)
        all[i].sums[k] += static_cast<double>(sums[k]);
    }
    return {};
  };
  TN_CHECK(run_batches(plan, feed, cancel, &progress, add));
  TN_CHECK(padded.check());
  std::vector<Gram> out;
  for (size_t at : place)
    out.push_back(all[at / 2]);
  return out;
}

}  // namespace tenon::quantizer
