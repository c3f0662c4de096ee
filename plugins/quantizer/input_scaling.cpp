// SPDX-License-Identifier: Apache-2.0
#include "input_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tenon/sdk/multiplied.hpp"
#include "tenon/sdk/pattern.hpp"

#include "calibration.hpp"

namespace tenon::quantizer {
namespace {

constexpr int64_t kRows = 256;     // of inputs that exponents are tried on
constexpr int64_t kOutputs = 256;  // channels of weights, likewise

bool is_own_vector(Value v, int64_t n) {
  return v && v.is_constant() && v.dtype() == TN_F32 && v.consumer_count() == 1 &&
         v.type().dims == std::vector<int64_t>{n};
}

// A product of what the model computes with a known weight.
bool is_product(Node node, const Product& product) {
  const Value weight = product.weight_of(node), act = product.act_of(node);
  if (!weight || !weight.is_constant() || !act || act.is_constant()) return false;
  const auto form =
      layer_form(node, static_cast<uint64_t>(product.act), static_cast<uint64_t>(product.weight));
  return form && form->is_product();
}

// Why a product cannot be scaled; empty: it can, or it is none.
std::string refusal(Node node, const Role& role) {
  const Product& product = role.products[0];
  const Value weight = product.weight_of(node);
  std::string why;
  if (is_computed_of_constants(weight)) return kComputedWeight;
  if (!is_product(node, product)) return why;
  if (role.is_fused) return "it does more than a product and a bias";
  if (weight.dtype() != TN_F32 || product.act_of(node).dtype() != TN_F32)
    return "it does not compute in float32";
  if (weight.consumer_count() > 1) return "several nodes share its weight";
  weight_form(node, product, &why);
  return why;
}

}  // namespace

// Weights of all readers as rows [outputs, columns], evenly picked.
void InputScaling::collect_weights(Source* source) {
  ScaledLayer& layer = source->layer;
  layer.columns = source->readers[0].form.columns;
  layer.largest_weight.assign(static_cast<size_t>(layer.columns), 0);
  layer.largest_input = layer.mean_input = layer.largest_weight;
  int64_t all = 0;
  for (const Reader& reader : source->readers)
    all += reader.form.rows;
  int64_t step = std::max<int64_t>(1, all / kOutputs), at = 0;
  for (const Reader& reader : source->readers) {
    Tensor weight = reader.product.weight_of(reader.node).constant();
    for (int64_t r = 0; r < reader.form.rows; ++r, ++at) {
      const bool is_picked = at % step == 0;
      layer.outputs += is_picked;
      for (int64_t c = 0; c < layer.columns; ++c) {
        float w = weight.data<float>()[reader.form.at(0, r, c)];
        float& most = layer.largest_weight[static_cast<size_t>(c)];
        most = std::max(most, std::abs(w));
        if (is_picked) layer.weights.push_back(w);
      }
    }
  }
}

// Some of a batch's rows that count, and the largest numbers of all of these.
void InputScaling::collect_inputs(const DLTensor& tensor,
                                  const std::vector<int64_t>& rows,
                                  int64_t wanted,
                                  Source* source) {
  ScaledLayer& layer = source->layer;
  const float* data = data_of<const float>(tensor);
  const size_t step =
      std::max<size_t>(1, rows.size() / static_cast<size_t>(std::max<int64_t>(wanted, 1)));
  for (size_t r = 0; r < rows.size(); ++r) {
    const float* row = data + rows[r] * layer.columns;
    for (int64_t c = 0; c < layer.columns; ++c) {
      float &most = layer.largest_input[static_cast<size_t>(c)], size = std::abs(row[c]);
      float& mean = layer.mean_input[static_cast<size_t>(c)];
      most = std::max(most, size);
      mean += (size - mean) / static_cast<float>(source->seen + 1);
    }
    ++source->seen;
    if (r % step != 0 || layer.rows >= kRows) continue;
    layer.inputs.insert(layer.inputs.end(), row, row + layer.columns);
    ++layer.rows;
  }
}

Result<InputScaling> InputScaling::create(tn_ctx* ctx, const Options& options, Choose choose) {
  InputScaling out;
  out.ctx_ = ctx;
  out.choose_ = std::move(choose);
  TN_TRY(data, FeedOptions::read(ctx, options));
  out.data_ = std::move(data);
  out.backends_ = options.texts("backend");
  out.mask_ = options.text("mask");
  out.selected_ = Selected::read(options);
  out.gain_ = options.number("gain");
  out.inserts_ = options.flag("insert");
  return Result<InputScaling>(std::move(out));
}

Status InputScaling::run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
  Graph graph{raw};
  TN_CHECK(selected_.check(graph));
  std::vector<Source> sources = find(graph);
  nlohmann::ordered_json scaled = nlohmann::ordered_json::array();
  if (!sources.empty()) TN_CHECK(collect(graph, &sources, cancel));
  std::vector<InputFactors> found(sources.size());
  parallel_for(ctx_, sources.size(), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      found[i] = choose_(sources[i].layer);
  });
  TN_TRY(edit, Edit::begin(raw));
  for (size_t i = 0; i < sources.size(); ++i) {
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const Reader& reader : sources[i].readers)
      names.push_back(reader.node.name());
    std::string how = "left";
    if (found[i].exponent >= 0 && found[i].snr_db >= found[i].plain_snr_db + gain_) {
      TN_TRY(done, apply(edit, sources[i], found[i].factor));
      how = done;
    }
    scaled.push_back({{"value", sources[i].value.name()},
                      {"nodes", names},
                      {"how", how},
                      {"exponent", found[i].exponent},
                      {"snr_db", found[i].plain_snr_db},
                      {"scaled_snr_db", found[i].snr_db}});
  }
  TN_CHECK(edit.commit());
  nlohmann::ordered_json report{{"layers", scaled}};
  if (nlohmann::ordered_json left = others(graph); !left.empty()) report["left"] = left;
  return sink.write(report.dump());
}

// Products with a weight that cannot be scaled, and why.
nlohmann::ordered_json InputScaling::others(Graph graph) const {
  auto left = nlohmann::ordered_json::array();
  size_t n_computed = 0;
  for (Node node : graph.nodes()) {
    Role role = role_of(node);
    if (role.kind != Kind::kCompute || role.products.size() != 1 || !selected_.takes(node))
      continue;
    const std::string why = refusal(node, role);
    if (!why.empty()) left.push_back({{"node", node.name()}, {"why", why}});
    n_computed += why == kComputedWeight;
  }
  if (n_computed > 0)
    log_line(ctx_, TN_LOG_WARNING,
             cat(n_computed,
                 " layers are left as they are, since their weights are computed from "
                 "constants: apply fusion.default first"));
  return left;
}

std::vector<InputScaling::Source> InputScaling::find(Graph graph) const {
  std::vector<Source> out;
  std::map<tn_value_id, size_t> place;
  for (Node node : graph.nodes()) {
    Role role = role_of(node);
    if (role.kind != Kind::kCompute || role.is_fused || role.products.size() != 1) continue;
    if (!selected_.takes(node)) continue;
    const Product& product = role.products[0];
    if (!is_product(node, product) || !refusal(node, role).empty()) continue;
    const Value act = product.act_of(node);
    std::string why;
    std::optional<WeightForm> form = weight_form(node, product, &why);
    if (!form) continue;
    auto [at, fresh] = place.emplace(act.id, out.size());
    if (fresh) out.push_back({act, {}, {}});
    if (!fresh && out[at->second].readers[0].form.columns != form->columns) continue;
    out[at->second].readers.push_back({node, product, *form});
  }
  return out;
}

Status InputScaling::collect(Graph graph, std::vector<Source>* sources, const Cancel& cancel) {
  std::vector<Value> values;
  for (Source& source : *sources) {
    collect_weights(&source);
    values.push_back(source.value);
  }
  TN_TRY(feed, Feed::make(ctx_, data_.data, graph, calibration_feed(data_)));
  TN_TRY(mask, PaddingMask::find(graph, mask_));
  TN_TRY(plan, Plan::on_first(ctx_, graph, values, backends_));
  const auto batches = static_cast<int64_t>(feed.batches());
  Progress progress(ctx_, "collecting inputs of products", feed.samples());
  auto add = [&](const Feed::Batch& batch) -> Status {
    TN_CHECK(mask.read(batch.inputs));
    for (size_t i = 0; i < sources->size(); ++i) {
      const DLTensor read = plan.tap(i).dl();
      Source& source = (*sources)[i];
      const int64_t rows = element_count(read) / std::max<int64_t>(source.layer.columns, 1);
      collect_inputs(read, mask.among(read, rows), (kRows + batches - 1) / batches, &source);
    }
    return {};
  };
  TN_CHECK(run_batches(plan, feed, cancel, &progress, add));
  return mask.check_used();
}

// "folded", "inserted" or, where neither may be, "left".
Result<std::string> InputScaling::apply(EditView edit,
                                        const Source& source,
                                        const std::vector<float>& factor) {
  TN_TRY(is_folded, fold(edit, source, factor));
  if (!is_folded && !inserts_) return std::string("left");
  if (!is_folded) TN_CHECK(insert(edit, source, factor));
  for (const Reader& reader : source.readers)
    TN_CHECK(scale_weight(edit, reader, factor));
  return std::string(is_folded ? "folded" : "inserted");
}

Status InputScaling::insert(EditView edit, const Source& source, const std::vector<float>& factor) {
  std::vector<float> inverse;
  for (float one : factor)
    inverse.push_back(1 / one);
  std::string name = cat(source.value.name(), "_scaled");
  std::vector<int64_t> shape{source.layer.columns};
  TN_TRY(factors, edit.constant<float>(TN_F32, shape, inverse, name + "_factor"));
  TN_TRY(mul, edit.add({.type = "Mul",
                        .inputs = {edit.value(source.value.id), factors},
                        .name = name,
                        .output_names = {name}}));
  for (const Reader& reader : source.readers)
    TN_CHECK(edit.set_input(edit.node(reader.node.id), static_cast<uint64_t>(reader.product.act),
                            mul.output()));
  return {};
}

// Into the scale and shift of a LayerNormalization whose result nothing else reads.
Result<bool> InputScaling::fold(EditView edit,
                                const Source& source,
                                const std::vector<float>& factor) {
  Node norm = source.value.producer();
  if (!norm || !norm.is("LayerNormalization") || source.value.is_output()) return false;
  if (source.value.consumer_count() != source.readers.size()) return false;
  if (!is_own_vector(norm.input(1), source.layer.columns)) return false;
  if (norm.input(2) && !is_own_vector(norm.input(2), source.layer.columns)) return false;
  for (uint64_t i = 1; i <= 2; ++i) {
    if (!norm.input(i)) continue;
    const float* old = norm.input(i).constant().data<float>();
    std::vector<float> all;
    for (size_t c = 0; c < factor.size(); ++c)
      all.push_back(old[c] / factor[c]);
    std::vector<int64_t> shape{source.layer.columns};
    TN_TRY(made, edit.constant<float>(TN_F32, shape, all, cat(norm.input(i).name(), "_scaled")));
    TN_CHECK(edit.set_input(edit.node(norm.id), i, made));
  }
  return true;
}

Status InputScaling::scale_weight(EditView edit,
                                  const Reader& reader,
                                  const std::vector<float>& factor) {
  Value old = reader.product.weight_of(reader.node);
  Tensor tensor = old.constant();
  std::vector<float> all(static_cast<size_t>(element_count(tensor.dl())));
  for (int64_t r = 0; r < reader.form.rows; ++r)
    for (int64_t c = 0; c < reader.form.columns; ++c) {
      int64_t at = reader.form.at(0, r, c);
      all[static_cast<size_t>(at)] = tensor.data<float>()[at] * factor[static_cast<size_t>(c)];
    }
  TN_TRY(made, edit.constant<float>(TN_F32, old.type().dims, all, cat(old.name(), "_scaled")));
  return edit.set_input(edit.node(reader.node.id), static_cast<uint64_t>(reader.product.weight),
                        made);
}

}  // namespace tenon::quantizer
