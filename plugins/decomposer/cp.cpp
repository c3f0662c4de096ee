// SPDX-License-Identifier: Apache-2.0
// "decomposer.cp": a convolution in two dimensions becomes 1x1 (n_in to rank), a column and a row
// of the window for each channel by itself, and 1x1 (rank to n_out).
#include "algorithms/cp.hpp"

#include <limits>

#include "tenon/sdk/role/pass.hpp"

#include "algorithms/tucker2.hpp"
#include "decompose.hpp"
#include "rank.hpp"

namespace tenon::decomposer {
namespace {

// More of the components' norm than this cancels: small changes of a factor would be large ones of
// the layer.
constexpr double kMostCancellation = 100;

class CpMethod : public Method {
 public:
  CpMethod(const RankRule& rule, const AlsLimits& limits, uint64_t seed)
      : rule_(rule), limits_(limits), seed_(seed) {}

  Refusal refuse(const Layer& layer) const override {
    if (!layer.is_conv) return {"a product", "decomposer.svd"};
    // Its windows along one axis are ONNX's: what another operator's attributes mean is not stated.
    if (!layer.node.is("Conv")) return {"not ONNX's Conv", "decomposer.tucker2"};
    if (Refusal refusal = refuse_groups(layer)) return refusal;
    if (layer.weight.window == 1) return {"its window is 1", "decomposer.svd"};
    if (layer.window.size() != 2)
      return {cat("its window has ", layer.window.size(), " dimensions: expected 2")};
    int64_t most = std::min(layer.weight.n_out, layer.weight.n_in) * layer.weight.window;
    return {refuse_rank("rank", rule_, most)};
  }

  Factors factor(const Layer& layer) const override {
    const Kernel& w = layer.weight;
    Modes modes = modes_of(w);
    // A sum of R outer products has unfoldings of rank R at most.
    const int64_t least =
        std::max(choose_rank(rule_, modes.out.values, w.n_out, w.n_in * w.window, 1),
                 choose_rank(rule_, modes.in.values, w.n_in, w.n_out * w.window, 1));
    Cp parts = within_error(layer, modes, cp(w, start(layer, modes, least), limits_));
    const int64_t rank = parts.in.cols();
    Factors out{{{"rank", rank}}, parts.error, {}, ""};
    if (!(parts.cancellation <= kMostCancellation))
      out.why = "its components grow and cancel each other: use a lower rank or decomposer.tucker2";
    else if (parts.error > most_error())
      out.why = cat("no rank that saves weights has an error of ", most_error(),
                    " at most: use decomposer.tucker2");
    int64_t height = layer.window[0], width = layer.window[1];
    Matrix in = parts.in.transpose(), rows = parts.rows.transpose(),
           columns = parts.columns.transpose();
    out.steps = {{"in", {rank, w.n_in, 1, 1}, numbers_of(in), 1, {false, false}},
                 {"rows", {rank, 1, height, 1}, numbers_of(rows), rank, {true, false}},
                 {"columns", {rank, 1, 1, width}, numbers_of(columns), rank, {false, true}},
                 {"out", {w.n_out, rank, 1, 1}, numbers_of(parts.out), 1, {false, false}}};
    return out;
  }

  std::unique_ptr<Method> at_energy(double energy) const override {
    return std::make_unique<CpMethod>(rule_.at_energy(energy), limits_, seed_);
  }

  double random_error(const Kernel& random, const Layer& layer, const Ranks& ranks) const override {
    return cp(random, start(layer, modes_of(random), ranks[0].second), limits_).error;
  }

 private:
  double most_error() const {
    return rule_.kind == RankKind::kError ? std::max(rule_.error, rule_.min_error)
                                          : std::numeric_limits<double>::infinity();
  }
  // More components by an eighth at a time until the error is what was asked for: the unfoldings
  // say how many there are at least. It ends where the parts have as many numbers as the weight.
  Cp within_error(const Layer& layer, const Modes& modes, Cp parts) const {
    const Kernel& w = layer.weight;
    const int64_t each = w.n_in + layer.window[0] + layer.window[1] + w.n_out;
    const int64_t most = static_cast<int64_t>(w.numbers.size()) / each;
    for (int64_t rank = parts.in.cols(); parts.error > most_error() && rank < most;) {
      rank += std::max<int64_t>(rank / 8, 1);
      rank = std::min((rank + rule_.multiple - 1) / rule_.multiple * rule_.multiple, most);
      parts = cp(w, start(layer, modes, rank), limits_);
    }
    return parts;
  }
  // Leading singular vectors where there are enough, and random numbers.
  Cp start(const Layer& layer, const Modes& modes, int64_t rank) const {
    Cp out;
    out.in = random(layer.weight.n_in, rank, 1);
    int64_t known = std::min(rank, layer.weight.n_in);
    out.in.leftCols(known) = modes.in.vectors.leftCols(known);
    out.rows = random(layer.window[0], rank, 2);
    out.columns = random(layer.window[1], rank, 3);
    return out;
  }
  Matrix random(int64_t rows, int64_t cols, uint64_t stream) const {
    Matrix out(rows, cols);
    services.random->normal(seed_, stream, 0, out.data(), static_cast<uint64_t>(out.size()));
    return out;
  }
  RankRule rule_;
  AlsLimits limits_;
  uint64_t seed_;
};

class CpPass {
 public:
  static Result<CpPass> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(rule, RankRule::read(options));
    AlsLimits limits;
    limits.iterations = options.integer("iterations");
    TN_TRY(choice, Choice::read(ctx, options));
    return CpPass{ctx, rule, limits, std::move(choice)};
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& sink) {
    return decompose(ctx_, graph, CpMethod(rule_, limits_, choice_.seed), choice_, cancel, sink);
  }

  tn_ctx* ctx_;
  RankRule rule_;
  AlsLimits limits_;
  Choice choice_;
};

}  // namespace
}  // namespace tenon::decomposer

TENON_PASS(cp,
           tenon::decomposer::CpPass,
           "decomposer.cp",
           "convolutions as 1x1, a column, a row, and 1x1",
           R"({"properties": {)" TENON_RANK_OPTION R"(,
    "iterations": {"type": "integer", "minimum": 0, "default": 50,
             "description": "steps of alternating least squares at most"},
    )" TENON_RANK_OPTIONS ",\n    " TENON_CHOICE_OPTIONS "}}")
