// SPDX-License-Identifier: Apache-2.0
// "quantizer.dynamic": 8-bit weights, and activations that get their scale from their own numbers
// at run time: DynamicQuantizeLinear and MatMulInteger, ONNX's form of it. No calibration, and it
// fits models whose ranges change from sample to sample; convolutions stay in float, since few
// runtimes have fast kernels for their integer form.
#include <map>

#include "tenon/sdk/layer_form.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "report.hpp"
#include "storage.hpp"

namespace tenon::quantizer {
namespace {

// Why this layer cannot take the dynamic form, which is a product of matrices; empty when it can.
std::string refuse_form(Node node, const Role& role) {
  const Product& product = role.products[0];
  auto act = static_cast<uint64_t>(product.act), weight = static_cast<uint64_t>(product.weight);
  std::optional<LayerForm> form = layer_form(node, act, weight);
  if (role.is_fused || !form || !form->is_product())
    return cat("operator ", node.type(), " has no dynamic form");
  if (form->act_in + 1 != static_cast<int64_t>(product.act_of(node).type().rank()))
    return "its activation is transposed";
  if (node.attr_float("alpha", 1) != 1 || node.attr_float("beta", 1) != 1)
    return "it has alpha or beta";
  return "";
}

class Dynamic {
 public:
  static Result<Dynamic> create(tn_ctx* ctx, const Options& options) {
    Dynamic out;
    out.ctx_ = ctx;
    out.choices_ = {.selected = Selected::read(options), .weights_only = true};
    out.plan_.per_channel = options.flag("per_channel");
    out.plan_.largest = options.flag("reduce_range") ? 63 : 127;
    return out;
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    shared_.clear();
    stored_.clear();
    TN_CHECK(choices_.selected.check({raw}));
    TN_TRY(assignment, Assignment::make({raw}, choices_));
    const nlohmann::ordered_json bytes = weight_bytes(assignment);
    Storage storage({choices_.selected, plan_.per_channel});
    TN_TRY(edit, Edit::begin(raw));
    nlohmann::ordered_json done = nlohmann::ordered_json::array(), left = done;
    for (const Decision& one : assignment.nodes()) {
      TN_CHECK(cancel.check());
      nlohmann::ordered_json row{{"node", one.node.name()}, {"op", one.node.type()}};
      std::string why = one.taken ? refuse_form(one.node, one.role) : one.why;
      if (why.empty()) {
        double snr_db = 0;
        TN_CHECK(replace(edit, one, &snr_db).in(cat("node ", row["node"].get<std::string>())));
        row["weight_snr_db"] = snr_db;
        done.push_back(std::move(row));
        continue;
      }
      if (one.taken) TN_CHECK(storage.run_product(edit, one));
      if (one.is_float) {
        row["why"] = why;
        left.push_back(std::move(row));
      }
    }
    TN_CHECK(storage.run(edit, assignment));
    TN_CHECK(edit.commit());
    TN_CHECK(storage.run_in_bodies(raw));
    if (done.empty() && storage.notes().empty()) {
      TN_CHECK(check_something_taken(assignment));
      return {TN_FAILED_PRECONDITION,
              cat("nothing to quantize", first_reasons(left, " ("), left.empty() ? "" : ")")};
    }
    nlohmann::ordered_json report{{"counts", {{"quantized", done.size()}, {"float", left.size()}}},
                                  {"quantized", done},
                                  {"float", left},
                                  {"stored", storage.notes()},
                                  {"weight_bytes", bytes}};
    return sink.write(report.dump());
  }

 private:
  // y = Cast(MatMulInteger(q(x), q(w))) * (scale of x * scales of w) + bias
  Status replace(EditView edit, const Decision& one, double* snr_db) {
    Node node = edit.node(one.node.id);  // as it is by now: what it reads may have been replaced
    const Product& product = one.role.products[0];
    std::string name(node.name()), scope(node.scope());
    auto add = [&](std::string_view type, std::vector<Value> inputs, const char* what,
                   std::vector<Attr> attrs = {}) {
      return edit.add({.type = type,
                       .inputs = std::move(inputs),
                       .attrs = std::move(attrs),
                       .name = name + what,
                       .scope = scope});
    };
    Value x = product.act_of(node);
    if (!shared_.contains(x.id)) {  // products of one value share its rounding
      TN_TRY(made, edit.add({.type = "DynamicQuantizeLinear",
                             .inputs = {x},
                             .n_outputs = 3,
                             .name = cat(x.name(), "_quantize")}));
      shared_.emplace(x.id, made);
    }
    Node quantized = shared_.at(x.id);
    bool transposed = product.axis == 0;  // its weight is [n, k]
    TN_TRY(weight, store(edit, one, transposed, snr_db));
    TN_TRY(sum, add("MatMulInteger", {quantized.output(0), weight.numbers, quantized.output(2)},
                    "_integer"));
    TN_TRY(cast, add("Cast", {sum.output()}, "_float", {{"to", any_dtype(TN_F32)}}));
    TN_TRY(scale, add("Mul", {quantized.output(1), weight.scale}, "_scale"));
    TN_TRY(result, add("Mul", {cast.output(), scale.output()}, "_scaled"));
    Value out = result.output();
    Value bias = product.bias_of(node);
    if (bias) {
      TN_TRY(with_bias, add("Add", {out, bias}, "_biased"));
      out = with_bias.output();
    }
    TN_CHECK(edit.replace(node.output(), out));
    return edit.erase(node);
  }

  struct Stored {
    Value numbers, scale;
    double snr_db = 0;
  };
  // The weight as [k, n], which MatMulInteger wants, and its scales. Products that share a weight
  // share what becomes of it.
  Result<Stored> store(EditView edit, const Decision& one, bool transposed, double* snr_db) {
    const Product& product = one.role.products[0];
    Value value = product.weight_of(one.node);
    auto key = std::make_pair(value.id, transposed);
    if (auto found = stored_.find(key); found != stored_.end()) {
      *snr_db = found->second.snr_db;
      return found->second;
    }
    Weight weight = quantize_weight(
        value.constant().dl(),
        {.axis = product.axis, .per_channel = plan_.per_channel, .largest = plan_.largest});
    *snr_db = weight.snr_db;
    if (transposed) {
      size_t n = static_cast<size_t>(weight.shape[0]), k = static_cast<size_t>(weight.shape[1]);
      std::vector<int8_t> columns(weight.numbers.size());
      for (size_t i = 0; i < columns.size(); ++i)
        columns[i] = weight.numbers[i % n * k + i / n];
      weight.numbers = std::move(columns);
      std::swap(weight.shape[0], weight.shape[1]);
    }
    std::vector<int64_t> channels;
    if (plan_.per_channel) channels.push_back(static_cast<int64_t>(weight.scale.size()));
    std::string name(value.name());
    TN_TRY(numbers,
           edit.constant<int8_t>(TN_I8, weight.shape, weight.numbers, name + "_quantized"));
    TN_TRY(scale, edit.constant<float>(TN_F32, channels, weight.scale, name + "_scale"));
    return stored_[key] = {numbers, scale, *snr_db};
  }

  tn_ctx* ctx_ = nullptr;
  Choices choices_;
  InsertionPlan plan_;
  std::map<tn_value_id, Node> shared_;
  std::map<std::pair<tn_value_id, bool>, Stored> stored_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(dynamic,
           tenon::quantizer::Dynamic,
           "quantizer.dynamic",
           "8-bit products, activations scaled at run time",
           R"({
  "properties": {
    "per_channel": {"type": "boolean", "default": true, "description": "a scale for each output channel"},
    "reduce_range": {"type": "boolean", "default": false,
                     "description": "weights in 7 bits, for CPUs without VNNI"},
    )" TENON_SELECTED_OPTIONS("products to quantize") "}}")
