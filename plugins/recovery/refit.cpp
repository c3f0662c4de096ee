// SPDX-License-Identifier: Apache-2.0
// "recovery.refit": the weights behind a pruned layer anew, without training and without labels.
// Layer by layer in the order of data, each is fitted by ridge regression so that from what the
// smaller model gives it, it makes what the original made there (He, Zhang and Sun, "Channel
// pruning for accelerating very deep neural networks", ICCV 2017, section 3.1). Inputs come from
// the smaller model as it is by then, so that a layer makes up for those before it; at the end of a
// residual block the target is the original's sum less what comes around the block here.
#include <algorithm>
#include <cmath>

#include "tenon/sdk/evaluation.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "rows.hpp"
#include "twin.hpp"

namespace tenon::recovery {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kCheckEvery = 4;    // of so many batches one judges the fit
constexpr double kSameResults = 1e-3;  // of the spread of a layer's outputs

struct Settings {
  FeedOptions data;
  double damping = 1e-3;
  bool keeps_zeros = true;
  std::string mask;  // the input of the model that is 0 at padding
  int64_t rows = 0;  // of each layer; 0: sixteen for each column, at least 4,096
  Selected selected;
  std::vector<std::string> backends;
};

// What one layer needs to be fitted: both models with a look inside.
struct Looks {
  Plan model, original;
  static constexpr size_t kRead = 0, kMade = 1, kAround = 2;  // taps of the model
};

Result<Looks> look(tn_ctx* ctx,
                   Graph model,
                   Graph original,
                   const Layer& layer,
                   Node twin,
                   const std::vector<std::string>& backends) {
  std::vector<Value> taps{layer.read(), layer.made()};
  if (layer.around) taps.push_back(layer.around);
  std::vector<Value> wanted{twin.output()};
  for (Value tap : taps)
    if (tap.dtype() != TN_F32)
      return unsupported(cat(tap.name(), " is ", dtype_name(tap.dtype()), ": expected float32"));
  Looks out;
  TN_TRY(ours, Plan::on_first(ctx, model, taps, backends));
  TN_TRY(theirs, Plan::on_first(ctx, original, wanted, {ours.backend()}));
  out.model = std::move(ours);
  out.original = std::move(theirs);
  return Result<Looks>(std::move(out));
}

struct Fitted {
  std::vector<Fit> fits;
  int64_t rows = 0;
  double before = 0, after = 0;  // of the spread, on batches that the fit has not seen
  bool is_better = false;
};

// Sums of one layer, of its groups one after the other.
struct Sums {
  std::vector<Moments> fit, check;
};

class Refit {
 public:
  static Result<Refit> create(tn_ctx* ctx, const Options& options) {
    Refit out;
    out.ctx_ = ctx;
    Settings& s = out.settings_;
    TN_TRY(data, FeedOptions::read(ctx, options));
    s.data = std::move(data);
    s.damping = options.number("damping");
    s.rows = options.integer("rows");
    s.mask = options.text("mask");
    s.keeps_zeros = options.text("zeros") == "keep";
    s.selected = Selected::read(options);
    s.backends = options.texts("backend");
    return Result<Refit>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    Graph model{raw};
    TN_CHECK(settings_.selected.check(model));
    TN_TRY(twins, Twins::of(model));
    TN_TRY(mask, PaddingMask::find(model, settings_.mask));
    mask_ = mask;
    TN_TRY(feed, Feed::make(ctx_, settings_.data.data, model, settings_.data.plan("refitting")));
    feed_ = std::move(feed);
    auto visit = [&](Node node, uint64_t number, ordered_json* row) -> Status {
      TN_TRY(fitted, refit(raw, node, twins, number, cancel));
      (*row)["rows"] = fitted.rows;
      (*row)["error"] = {{"before", fitted.before}, {"after", fitted.after}};
      return fitted.is_better ? Status()
                              : unsupported("no better on batches that the fit has not seen");
    };
    TN_TRY(rows, each_layer(ctx_, raw, "refitting", cancel, visit));
    TN_CHECK(mask_.check_used());
    log_line(ctx_, TN_LOG_INFO,
             cat("refitted: ", rows.done.size(), " layers; left: ", rows.left.size()));
    return sink.write(
        ordered_json{{"samples", feed_.samples()}, {"refitted", rows.done}, {"left", rows.left}}
            .dump());
  }

 private:
  Result<Fitted> refit(
      tn_graph* raw, Node node, const Twins& twins, uint64_t number, const Cancel& cancel) {
    std::string why = settings_.selected.why_left(node);
    if (!why.empty()) return unsupported(why);
    TN_TRY(layer, read_layer(node));
    TN_TRY(twin, twins.of(layer));
    TN_TRY(looks, look(ctx_, {raw}, twins.original(), layer, twin.last, settings_.backends));
    TN_TRY(present, present_fits(layer));
    Sums sums;
    for (int64_t g = 0; g < layer.groups; ++g) {
      sums.fit.emplace_back(layer.n_in, layer.n_out / layer.groups);
      sums.check.emplace_back(layer.n_in, layer.n_out / layer.groups);
    }
    auto add = [&](const Feed::Batch& batch) -> Status {
      TN_CHECK(mask_.read(batch.inputs));
      TN_CHECK(looks.original.run(batch.inputs, cancel.raw()));
      return add_rows(layer, twin, looks, present, number * feed_.batches() + batch.number,
                      batch.number, &sums);
    };
    TN_CHECK(run_batches(looks.model, feed_, cancel, nullptr, add));
    TN_TRY(fitted, solve(layer, sums, std::move(present)));
    if (!fitted.is_better) return fitted;
    TN_TRY(edit, Edit::begin(raw));
    layer.node = edit.node(node.id);
    TN_CHECK(write_fits(edit, layer, fitted.fits));
    TN_CHECK(edit.commit());
    return fitted;
  }

  Status add_rows(const Layer& layer,
                  const Twins::Twin& twin,
                  const Looks& looks,
                  const std::vector<Fit>& present,
                  uint64_t stream,
                  uint64_t batch,
                  Sums* sums) {
    DLTensor read = looks.model.tap(Looks::kRead).dl(), made = looks.model.tap(Looks::kMade).dl();
    DLTensor wanted = looks.original.tap(0).dl();
    const int64_t rows = rows_in_batch(layer, settings_.rows, feed_.batches());
    Positions positions = Positions::draw(layer, made, rows, stream, &mask_);
    int64_t of_group = layer.n_out / layer.groups;
    for (int64_t g = 0; g < layer.groups; ++g) {
      std::vector<int64_t> ours, theirs;
      for (int64_t o = g * of_group; o < (g + 1) * of_group; ++o) {
        ours.push_back(o);
        theirs.push_back(twin.channels[static_cast<size_t>(o)]);
      }
      Matrix x = inputs_at(layer, read, positions, g, made),
             y = outputs_at(wanted, positions, theirs);
      Matrix now = outputs_at(made, positions, ours);
      if (layer.around) {
        Matrix around = outputs_at(looks.model.tap(Looks::kAround).dl(), positions, ours);
        y -= around;
        now -= around;
      }
      const Fit& fit = present[static_cast<size_t>(g)];
      Matrix fitted_results = x * fit.weight.transpose();
      fitted_results.rowwise() += fit.bias.transpose();
      if (!((fitted_results - now).norm() <= kSameResults * std::max(now.norm(), 1e-6)))
        return unsupported("it makes something else than its row says");
      bool checks = feed_.batches() > 1 && batch % kCheckEvery == kCheckEvery - 1;
      (checks ? sums->check : sums->fit)[static_cast<size_t>(g)].add(x, y);
    }
    return {};
  }

  Result<Fitted> solve(const Layer& layer, const Sums& sums, std::vector<Fit> present) const {
    Fitted out;
    double before = 0, after = 0, spread = 0;
    for (size_t g = 0; g < present.size(); ++g) {
      Fit fit =
          sums.fit[g].ridge(present[g], settings_.damping, bool(layer.bias), settings_.keeps_zeros);
      const Moments& judge = sums.check[g].rows() ? sums.check[g] : sums.fit[g];
      before += judge.error(present[g]);
      after += judge.error(fit);
      spread += judge.spread();
      out.rows += sums.fit[g].rows();
      out.fits.push_back(std::move(fit));
    }
    out.before = before / std::max(spread, 1e-30);
    out.after = after / std::max(spread, 1e-30);
    out.is_better = out.after < out.before && std::isfinite(out.after);
    return out;
  }

  tn_ctx* ctx_ = nullptr;
  Settings settings_;
  PaddingMask mask_;
  Feed feed_;
};

}  // namespace
}  // namespace tenon::recovery

TENON_PASS(refit,
           tenon::recovery::Refit,
           "recovery.refit",
           "fits the weights of a smaller model to what its original made, without labels",
           R"({"required": ["data"], "properties": {)" TENON_FEED_OPTIONS("inputs without labels",
                                                                          "256",
                                                                          "16") R"(,
    "damping": {"type": "number", "minimum": 0, "default": 0.001,
                "description": "how much a change of weights costs, in mean squares of an input"},
    "zeros": {"type": "string", "enum": ["keep", "fill"], "default": "keep",
              "description": "keep: weights that are zero, as pruner.unstructured leaves them, stay so; fill: all weights are fitted"},
    "rows": {"type": "integer", "minimum": 0, "default": 0,
             "description": "rows that each layer is fitted on; 0: 16 for each weight of an output, at least 4096"},
    )" TENON_MASK_OPTION R"(,
    )" TENON_SELECTED_OPTIONS("layers to refit") R"(,
    )" TENON_BACKEND_OPTION("runs both models") "}}")
