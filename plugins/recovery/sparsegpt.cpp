// SPDX-License-Identifier: Apache-2.0
// "recovery.sparsegpt": single weights become zero and those that are left make up for them, layer
// by layer in the order of data (Frantar and Alistarh, "SparseGPT", ICML 2023). No labels, no
// training; what a layer reads comes from the model as it is by then, so that a layer is chosen for
// the inputs that it will have.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tenon/sdk/evaluation.hpp"
#include "tenon/sdk/n_of_m.hpp"
#include "tenon/sdk/original.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "rows.hpp"
#include "surgeon.hpp"

namespace tenon::recovery {
namespace {

using nlohmann::ordered_json;

struct Taken {
  int64_t zeros = 0, elements = 0;
  double error = 0;  // what the outputs miss of their squares, on the rows that were looked at
};

class SparseGpt {
 public:
  static Result<SparseGpt> create(tn_ctx* ctx, const Options& options) {
    SparseGpt out;
    out.ctx_ = ctx;
    TN_TRY(data, FeedOptions::read(ctx, options));
    out.data_ = std::move(data);
    out.plan_.sparsity = options.number("sparsity");
    out.plan_.damping = options.number("damping");
    out.plan_.block = options.integer("block");
    TN_TRY(pattern, NofM::read(options.text("pattern")));
    out.pattern_ = pattern;
    out.plan_.keep = pattern.n;
    out.plan_.of = pattern.m;
    out.rows_ = options.integer("rows");
    out.mask_name_ = options.text("mask");
    out.selected_ = Selected::read(options);
    out.backends_ = options.texts("backend");
    return Result<SparseGpt>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    Graph model{raw};
    TN_CHECK(selected_.check(model));
    TN_TRY(feed, Feed::make(ctx_, data_.data, model, data_.plan("pruning")));
    feed_ = std::move(feed);
    TN_TRY(mask, PaddingMask::find(model, mask_name_));
    mask_ = mask;
    TN_TRY(kept, Edit::begin(raw));
    TN_CHECK(keep_original(kept, raw));
    TN_CHECK(kept.commit());
    Taken all;
    auto visit = [&](Node node, uint64_t number, ordered_json* row) -> Status {
      TN_TRY(taken, prune(raw, node, number, cancel));
      row->update({{"zeros", taken.zeros}, {"elements", taken.elements}, {"error", taken.error}});
      all.zeros += taken.zeros, all.elements += taken.elements;
      return {};
    };
    TN_TRY(rows, each_layer(ctx_, raw, "pruning", cancel, visit));
    if (rows.done.empty())
      return Status(TN_FAILED_PRECONDITION,
                    cat("no layer can be pruned: ",
                        rows.left.empty() ? "the model has no weights" : rows.left[0]["why"]));
    TN_CHECK(mask_.check_used());
    return sink.write(ordered_json{
        {"sparsity",
         static_cast<double>(all.zeros) / static_cast<double>(std::max<int64_t>(all.elements, 1))},
        {"samples", feed_.samples()},
        {"pruned", rows.done},
        {"left",
         rows.left}}.dump());
  }

 private:
  Result<std::vector<Moments>> inputs_of(tn_graph* raw,
                                         const Layer& layer,
                                         uint64_t number,
                                         const Cancel& cancel) {
    const std::vector<Value> taps{layer.read(), layer.node.output()};
    TN_TRY(made, Plan::on_first(ctx_, Graph{raw}, taps, backends_));
    Plan plan = std::move(made);
    std::vector<Moments> sums(static_cast<size_t>(layer.groups), Moments(layer.n_in, 0));
    const int64_t rows = rows_in_batch(layer, rows_, feed_.batches());
    auto add = [&](const Feed::Batch& batch) -> Status {
      TN_CHECK(mask_.read(batch.inputs));
      DLTensor read = plan.tap(0).dl(), out = plan.tap(1).dl();
      Positions positions =
          Positions::draw(layer, out, rows, number * feed_.batches() + batch.number, &mask_);
      for (int64_t g = 0; g < layer.groups; ++g) {
        Matrix x = inputs_at(layer, read, positions, g, out);
        sums[static_cast<size_t>(g)].add(x, Matrix(x.rows(), 0));
      }
      return {};
    };
    TN_CHECK(run_batches(plan, feed_, cancel, nullptr, add));
    return Result<std::vector<Moments>>(std::move(sums));
  }

  Result<Taken> prune(tn_graph* raw, Node node, uint64_t number, const Cancel& cancel) {
    std::string why = selected_.why_left(node);
    if (!why.empty()) return unsupported(why);
    TN_TRY(layer, read_layer(node));
    if (layer.read().dtype() != TN_F32)
      return unsupported(
          cat(layer.read().name(), " is ", dtype_name(layer.read().dtype()), ": expected float32"));
    why = pattern_.why_not(layer.n_in / layer.taps());
    if (!why.empty()) return unsupported(why);
    TN_TRY(sums, inputs_of(raw, layer, number, cancel));
    TN_TRY(fits, present_fits(layer));
    Taken out;
    double missed = 0, whole = 0;
    for (size_t g = 0; g < fits.size(); ++g) {
      const Matrix before = fits[g].weight, seconds = sums[g].seconds();
      if (!take_out(&fits[g].weight, seconds, plan_))
        return unsupported(
            "what it reads does not change, or is not finite: nothing says which "
            "weights it can miss");
      const Matrix off = fits[g].weight - before;
      missed += (off * seconds).cwiseProduct(off).sum();
      whole += (before * seconds).cwiseProduct(before).sum();
      out.zeros += (fits[g].weight.array() == 0).count();
      out.elements += before.size();
    }
    out.error = missed / std::max(whole, 1e-30);
    TN_TRY(edit, Edit::begin(raw));
    layer.node = edit.node(node.id);
    TN_CHECK(write_fits(edit, layer, fits));
    TN_CHECK(edit.commit());
    return out;
  }

  tn_ctx* ctx_ = nullptr;
  FeedOptions data_;
  SurgeonPlan plan_;
  NofM pattern_;
  int64_t rows_ = 0;
  std::string mask_name_;
  PaddingMask mask_;
  Selected selected_;
  std::vector<std::string> backends_;
  Feed feed_;
};

}  // namespace
}  // namespace tenon::recovery

TENON_PASS(sparsegpt,
           tenon::recovery::SparseGpt,
           "recovery.sparsegpt",
           "sets single weights to zero and lets the others make up for them, without labels",
           R"({"required": ["data"], "properties": {)" TENON_FEED_OPTIONS("inputs without labels",
                                                                          "256",
                                                                          "16") R"(,
    "sparsity": {"needs": {"pattern": "absent"}, "type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.5,
                 "description": "share of each layer's weights that are zero afterwards"},
    "pattern": {"type": "string", "description": "N:M keeps N of M neighbours along the input axis, of a convolution at each tap, such as 2:4; instead of sparsity"},
    "damping": {"type": "number", "minimum": 0, "default": 0.01,
                "description": "mean squares of an input that are added to each; ten times as much where there is no inverse"},
    "block": {"type": "integer", "minimum": 1, "default": 128, "description": "inputs whose weights are chosen at once"},
    "rows": {"type": "integer", "minimum": 0, "default": 0,
             "description": "rows that each layer is looked at; 0: 16 for each weight of an output, at least 4096"},
    )" TENON_MASK_OPTION R"(,
    )" TENON_SELECTED_OPTIONS("layers to prune") R"(,
    )" TENON_BACKEND_OPTION("runs the model") "}}")
