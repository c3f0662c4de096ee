// SPDX-License-Identifier: Apache-2.0
// "recovery.statistics": mean and variance of batch normalization anew, from inputs without labels.
// Pruning, decomposing and quantizing move the values that normalization reads; its statistics are
// of the model as it was trained. The model is run with the statistics of each batch, as in
// training, so that every layer reads what corrected ones before it make, and those of all batches
// are averaged.
#include <algorithm>
#include <cmath>

#include "tenon/sdk/evaluation.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

namespace tenon::recovery {
namespace {

using nlohmann::ordered_json;

struct Norm {  // one BatchNormalization
  tn_node_id node = 0;
  std::string name;
  std::vector<double> mean, variance;  // sums over batches
};

class Statistics {
 public:
  static Result<Statistics> create(tn_ctx* ctx, const Options& options) {
    Statistics out;
    out.ctx_ = ctx;
    TN_TRY(data, FeedOptions::read(ctx, options));
    out.data_ = std::move(data);
    out.selected_ = Selected::read(options);
    out.backends_ = options.texts("backend");
    return Result<Statistics>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_CHECK(selected_.check(Graph{raw}));
    std::vector<Norm> norms;
    for (Node node : Graph{raw}.nodes())
      if (is_wanted(node)) norms.push_back({node.id, std::string(node.name()), {}, {}});
    if (norms.empty())
      return {TN_FAILED_PRECONDITION,
              "no BatchNormalization with statistics of its own is left: estimate them before "
              "they are folded into weights"};
    TN_CHECK(collect(raw, &norms, cancel));
    for (const Norm& norm : norms)
      TN_CHECK(check_finite(norm));
    TN_TRY(edit, Edit::begin(raw));
    ordered_json rows = ordered_json::array();
    for (const Norm& norm : norms) {
      Node node = edit.node(norm.node);
      TN_TRY(moved, put(edit, node.input(3), norm.mean));
      TN_CHECK(put(edit, node.input(4), norm.variance).status());
      rows.push_back({{"node", norm.name}, {"largest_change_of_mean", moved}});
    }
    TN_CHECK(edit.commit());
    return sink.write(ordered_json{{"samples", n_samples_}, {"estimated", rows}}.dump());
  }

 private:
  bool is_wanted(Node node) const {
    if (!node.is("BatchNormalization") || node.attr_int("training_mode") != 0) return false;
    if (!selected_.takes(node)) return false;
    return std::ranges::all_of(std::vector<uint64_t>{3, 4}, [&](uint64_t i) {
      Value value = node.input(i);
      return value && value.is_constant() && value.dtype() == TN_F32 && value.consumer_count() == 1;
    });
  }

  // Taps of a copy in which these nodes normalize by the statistics of the batch.
  static Result<std::vector<Value>> to_batches(tn_graph* raw, const std::vector<Norm>& norms) {
    std::vector<Value> taps;
    TN_TRY(edit, Edit::begin(raw));
    for (const Norm& norm : norms) {
      Node node = edit.node(norm.node);
      std::vector<Value> inputs = node.inputs();
      TN_TRY(made, edit.add({.type = "BatchNormalization",
                             .inputs = inputs,
                             .attrs = {{"training_mode", 1},
                                       {"epsilon", node.attr_float("epsilon", 1e-5)},
                                       {"momentum", 0.0}},
                             .n_outputs = 3,
                             .name = cat(norm.name, "/batch"),
                             .scope = node.scope()}));
      TN_CHECK(edit.replace(node.output(), made.output()));
      TN_CHECK(edit.erase(node));
      taps.push_back(made.output(1));
      taps.push_back(made.output(2));
    }
    TN_CHECK(edit.commit());
    return taps;
  }

  Status collect(const tn_graph* graph, std::vector<Norm>* norms, const Cancel& cancel) {
    TN_TRY(copy, OwnedGraph::copy_of(graph));
    TN_TRY(taps, to_batches(copy.get(), *norms));
    TN_TRY(feed, Feed::make(ctx_, data_.data, Graph{graph}, data_.plan("statistics")));
    TN_TRY(plan, Plan::on_first(ctx_, copy.view(), taps, backends_));
    n_samples_ = feed.samples();
    uint64_t whole = feed.samples() / feed.batch();  // a short batch would count as much
    if (whole == 0) whole = 1;
    auto add = [&](const Tensor& given, std::vector<double>* sum) {
      DLTensor t = given.dl();
      sum->resize(static_cast<size_t>(element_count(t)));
      for (size_t c = 0; c < sum->size(); ++c)
        (*sum)[c] += double{given.data<float>()[c]} / static_cast<double>(whole);
    };
    return run_batches(plan, feed, cancel, nullptr, [&](const Feed::Batch& batch) -> Status {
      for (size_t i = 0; batch.number < whole && i < norms->size(); ++i) {
        add(plan.tap(2 * i), &(*norms)[i].mean);
        add(plan.tap(2 * i + 1), &(*norms)[i].variance);
      }
      return {};
    });
  }

  static Status check_finite(const Norm& norm) {
    for (const std::vector<double>& numbers : {norm.mean, norm.variance})
      for (double one : numbers)
        if (!std::isfinite(one))
          return invalid(cat("option data: node ", norm.name,
                             " reads numbers that are not finite, which have no mean"));
    return {};
  }

  // Puts the numbers in the constant's position; by how much the furthest moved.
  Result<double> put(EditView edit, Value constant, const std::vector<double>& numbers) const {
    std::vector<float> rounded(numbers.begin(), numbers.end());
    Tensor old = constant.constant();
    double moved = 0;
    for (size_t c = 0; c < rounded.size(); ++c)
      moved = std::max(moved, std::abs(double{rounded[c]} - double{old.data<float>()[c]}));
    std::string name(constant.name());
    std::vector<int64_t> dims = constant.type().dims;
    TN_CHECK(
        Status(services.edit->set_value_name(edit.raw, constant.id, str(cat(name, "_before")))));
    TN_TRY(made, edit.constant<float>(TN_F32, dims, rounded, name));
    TN_CHECK(edit.replace(constant, made));
    return moved;
  }

  tn_ctx* ctx_ = nullptr;
  FeedOptions data_;
  uint64_t n_samples_ = 0;
  Selected selected_;
  std::vector<std::string> backends_;
};

}  // namespace
}  // namespace tenon::recovery

TENON_PASS(statistics,
           tenon::recovery::Statistics,
           "recovery.statistics",
           "estimates the statistics of batch normalization again, without labels",
           R"({"required": ["data"], "properties": {
    "data": {"type": "component", "role": "tenon.dataset/1",
             "description": "inputs of the model: a data set, an id or a file; labels are not read"},
    "samples": {"type": "integer", "minimum": 1, "default": 1024, "description": "samples, at most"},
    "batch": {"type": "integer", "minimum": 1, "default": 64, "description": "batch size: samples that are normalized together"},
    )" TENON_SELECTED_OPTIONS("nodes to estimate") R"(,
    )" TENON_BACKEND_OPTION("runs the model") "}}")
