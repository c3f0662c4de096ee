// SPDX-License-Identifier: Apache-2.0
// "decomposer.svd": a product, or a convolution with a window of 1, becomes two thin ones.
#include "tenon/sdk/role/pass.hpp"

#include "algorithms/low_rank.hpp"
#include "decompose.hpp"
#include "rank.hpp"

namespace tenon::decomposer {
namespace {

class SvdMethod : public Method {
 public:
  explicit SvdMethod(const RankRule& rule) : rule_(rule) {}

  Refusal refuse(const Layer& layer) const override {
    if (Refusal refusal = refuse_groups(layer)) return refusal;
    if (layer.weight.window != 1) return {"its window is larger than 1", "decomposer.tucker2"};
    int64_t most = std::min(layer.weight.n_out, layer.weight.n_in);
    return {refuse_rank("rank", rule_, most)};
  }

  Factors factor(const Layer& layer) const override {
    const Kernel& weight = layer.weight;
    MatrixView matrix = weight.by_out();
    Spectrum spectrum = short_side_spectrum(matrix);
    int64_t rank = choose_rank(rule_, spectrum.values, weight.n_out, weight.n_in, 1);
    LowRank thin = truncate(matrix, spectrum, rank);
    // The first product subsamples where the layer has strides, so that both are small.
    return {{{"rank", rank}},
            truncation_error(spectrum.values, rank),
            {step(layer, "in", thin.right, true), step(layer, "out", thin.left, false)}};
  }

  std::unique_ptr<Method> at_energy(double energy) const override {
    return std::make_unique<SvdMethod>(rule_.at_energy(energy));
  }

  double random_error(const Kernel& random, const Layer&, const Ranks& ranks) const override {
    return truncation_error(short_side_values(random.by_out()), ranks[0].second);
  }

 private:
  static Step step(const Layer& layer, std::string_view suffix, const Matrix& m, bool slides) {
    Step out{suffix, {m.rows(), m.cols()}, numbers_of(m), 1, {}};
    out.dims.resize(2 + layer.window.size(), 1);
    out.axes.assign(layer.window.size(), slides);
    return out;
  }
  RankRule rule_;
};

class Svd {
 public:
  static Result<Svd> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(rule, RankRule::read(options));
    TN_TRY(choice, Choice::read(ctx, options));
    return Svd{ctx, rule, std::move(choice)};
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& sink) {
    return decompose(ctx_, graph, SvdMethod(rule_), choice_, cancel, sink);
  }

  tn_ctx* ctx_;
  RankRule rule_;
  Choice choice_;
};

}  // namespace
}  // namespace tenon::decomposer

TENON_PASS(svd,
           tenon::decomposer::Svd,
           "decomposer.svd",
           "products and 1x1 convolutions as two thin ones",
           R"({"properties": {)" TENON_RANK_OPTION ",\n    " TENON_RANK_OPTIONS
           ",\n    " TENON_CHOICE_OPTIONS "}}")
