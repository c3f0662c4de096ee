// SPDX-License-Identifier: Apache-2.0
// "decomposer.spatial": a convolution in two dimensions becomes a column of its window (n_in to
// rank) and a row (rank to n_out) (Jaderberg, Vedaldi and Zisserman 2014, scheme 2): the truncated
// SVD of the weight unfolded to [n_in * height, n_out * width].
#include "tenon/sdk/role/pass.hpp"

#include "algorithms/low_rank.hpp"
#include "decompose.hpp"
#include "rank.hpp"

namespace tenon::decomposer {
namespace {

class SpatialMethod : public Method {
 public:
  explicit SpatialMethod(const RankRule& rule) : rule_(rule) {}

  Refusal refuse(const Layer& layer) const override {
    if (!layer.is_conv) return {"a product", "decomposer.svd"};
    // Its windows along one axis are ONNX's: what another operator's attributes mean is not stated.
    if (!layer.node.is("Conv")) return {"not ONNX's Conv", "decomposer.tucker2"};
    if (Refusal refusal = refuse_groups(layer)) return refusal;
    if (layer.window.size() != 2)
      return {cat("its window has ", layer.window.size(), " dimensions: expected 2")};
    if (layer.window[0] == 1 || layer.window[1] == 1)
      return {cat("its window is ", layer.window[0], "x", layer.window[1]),
              layer.weight.window == 1 ? "decomposer.svd" : "decomposer.tucker2"};
    int64_t most =
        std::min(layer.weight.n_in * layer.window[0], layer.weight.n_out * layer.window[1]);
    return {refuse_rank("rank", rule_, most)};
  }

  Factors factor(const Layer& layer) const override {
    const Kernel& w = layer.weight;
    const int64_t height = layer.window[0], width = layer.window[1];
    Matrix unfolded = unfold(w, height, width);
    MatrixView matrix(unfolded.data(), unfolded.rows(), unfolded.cols());
    Spectrum spectrum = short_side_spectrum(matrix);
    int64_t rank = choose_rank(rule_, spectrum.values, matrix.rows(), matrix.cols(), 1);
    LowRank thin = truncate(matrix, spectrum, rank);
    Matrix columns = thin.left.transpose();  // [rank, n_in * height]
    std::vector<double> rows(static_cast<size_t>(w.n_out * rank * width));
    for (int64_t o = 0; o < w.n_out; ++o)
      for (int64_t r = 0; r < rank; ++r)
        for (int64_t x = 0; x < width; ++x)
          rows[static_cast<size_t>((o * rank + r) * width + x)] = thin.right(r, o * width + x);
    return {{{"rank", rank}},
            truncation_error(spectrum.values, rank),
            {{"columns", {rank, w.n_in, height, 1}, numbers_of(columns), 1, {true, false}},
             {"rows", {w.n_out, rank, 1, width}, std::move(rows), 1, {false, true}}}};
  }

  std::unique_ptr<Method> at_energy(double energy) const override {
    return std::make_unique<SpatialMethod>(rule_.at_energy(energy));
  }

  double random_error(const Kernel& random, const Layer& layer, const Ranks& ranks) const override {
    Matrix unfolded = unfold(random, layer.window[0], layer.window[1]);
    MatrixView matrix(unfolded.data(), unfolded.rows(), unfolded.cols());
    return truncation_error(short_side_values(matrix), ranks[0].second);
  }

 private:
  // [n_in * height, n_out * width]
  static Matrix unfold(const Kernel& w, int64_t height, int64_t width) {
    Matrix out(w.n_in * height, w.n_out * width);
    const double* number = w.numbers.data();
    for (int64_t o = 0; o < w.n_out; ++o)
      for (int64_t row = 0; row < w.n_in * height; ++row, number += width)
        for (int64_t x = 0; x < width; ++x)
          out(row, o * width + x) = number[x];
    return out;
  }
  RankRule rule_;
};

class SpatialPass {
 public:
  static Result<SpatialPass> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(rule, RankRule::read(options));
    TN_TRY(choice, Choice::read(ctx, options));
    return SpatialPass{ctx, rule, std::move(choice)};
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& sink) {
    return decompose(ctx_, graph, SpatialMethod(rule_), choice_, cancel, sink);
  }

  tn_ctx* ctx_;
  RankRule rule_;
  Choice choice_;
};

}  // namespace
}  // namespace tenon::decomposer

TENON_PASS(spatial,
           tenon::decomposer::SpatialPass,
           "decomposer.spatial",
           "convolutions as a column and a row of their window",
           R"({"properties": {)" TENON_RANK_OPTION ",\n    " TENON_RANK_OPTIONS
           ",\n    " TENON_CHOICE_OPTIONS "}}")
