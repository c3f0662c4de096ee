// SPDX-License-Identifier: Apache-2.0
// "decomposer.tucker2": a convolution becomes 1x1 (n_in to rank_in), the window over few channels
// (rank_in to rank_out), and 1x1 (rank_out to n_out).
#include "algorithms/tucker2.hpp"

#include "tenon/sdk/role/pass.hpp"

#include "decompose.hpp"
#include "rank.hpp"

namespace tenon::decomposer {
namespace {

struct Tucker2Options {
  RankRule in, out;
  HooiLimits limits;
};

class Tucker2Method : public Method {
 public:
  explicit Tucker2Method(const Tucker2Options& options) : options_(options) {}

  Refusal refuse(const Layer& layer) const override {
    if (!layer.is_conv) return {"a product", "decomposer.svd"};
    if (Refusal refusal = refuse_groups(layer)) return refusal;
    if (layer.weight.window == 1) return {"its window is 1", "decomposer.svd"};
    const int64_t n_in = layer.weight.n_in, n_out = layer.weight.n_out;
    std::string why = refuse_rank("rank_in", options_.in, n_in);
    if (why.empty()) why = refuse_rank("rank_out", options_.out, n_out);
    bool is_swapped = options_.in.kind == RankKind::kFixed &&
                      options_.out.kind == RankKind::kFixed && options_.in.fixed <= n_out &&
                      options_.out.fixed <= n_in;
    if (!why.empty() && is_swapped) why += " (are rank_in and rank_out swapped?)";
    return {why};
  }

  Factors factor(const Layer& layer) const override {
    const Kernel& w = layer.weight;
    Modes modes = modes_of(w);
    int64_t out = choose_rank(options_.out, modes.out.values, w.n_out, w.n_in * w.window, 2);
    int64_t in = choose_rank(options_.in, modes.in.values, w.n_in, w.n_out * w.window, 2);
    Tucker2 parts = tucker2(w, modes, out, in, options_.limits);
    size_t n_axes = layer.window.size();
    std::vector<int64_t> point(n_axes, 1);
    Matrix narrow = parts.in.transpose();
    return {
        {{"rank_in", in}, {"rank_out", out}},
        parts.error,
        {{"in", dims(in, w.n_in, point), numbers_of(narrow), 1, std::vector<bool>(n_axes, false)},
         {"core", dims(out, in, layer.window), std::move(parts.core.numbers), 1,
          std::vector<bool>(n_axes, true)},
         {"out", dims(w.n_out, out, point), numbers_of(parts.out), 1,
          std::vector<bool>(n_axes, false)}}};
  }

  std::unique_ptr<Method> at_energy(double energy) const override {
    Tucker2Options options = options_;
    for (RankRule* rule : {&options.in, &options.out})
      *rule = rule->at_energy(energy);
    return std::make_unique<Tucker2Method>(options);
  }

  double random_error(const Kernel& random, const Layer&, const Ranks& ranks) const override {
    Modes modes = modes_of(random);
    return tucker2(random, modes, ranks[1].second, ranks[0].second, options_.limits).error;
  }

 private:
  static std::vector<int64_t> dims(int64_t out, int64_t in, const std::vector<int64_t>& window) {
    std::vector<int64_t> all{out, in};
    all.insert(all.end(), window.begin(), window.end());
    return all;
  }
  Tucker2Options options_;
};

class Tucker2Pass {
 public:
  static Result<Tucker2Pass> create(tn_ctx* ctx, const Options& options) {
    Tucker2Options own;
    TN_TRY(rule, RankRule::read(options));
    own.in = own.out = rule;
    for (auto [key, to] : {std::pair{"rank_in", &own.in}, {"rank_out", &own.out}}) {
      if (!options.has(key)) continue;
      to->kind = RankKind::kFixed;
      to->fixed = options.integer(key);
    }
    const bool by_rule = own.in.kind != RankKind::kFixed || own.out.kind != RankKind::kFixed;
    if (!by_rule && (own.in.min_error > 0 || own.in.multiple > 1))
      return invalid(
          "options min_error and multiple: expected ranks that a rule gives beside them, as they "
          "have no effect otherwise, got rank_in and rank_out");
    own.limits.iterations = options.integer("iterations");
    TN_TRY(choice, Choice::read(ctx, options));
    return Tucker2Pass{ctx, own, std::move(choice)};
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& sink) {
    return decompose(ctx_, graph, Tucker2Method(own_), choice_, cancel, sink);
  }

  tn_ctx* ctx_;
  Tucker2Options own_;
  Choice choice_;
};

}  // namespace
}  // namespace tenon::decomposer

TENON_PASS(tucker2,
           tenon::decomposer::Tucker2Pass,
           "decomposer.tucker2",
           "convolutions as 1x1, a window over few channels, and 1x1",
           R"({
  "properties": {
    "rank": {"type": "string", "enum": ["evbmf", "energy", "error"], "default": "evbmf",
             "needs": [{"rank_in": "absent", "budget": "absent", "time": "absent"}, {"rank_out": "absent", "budget": "absent", "time": "absent"}],
             "description": "how to find the ranks that are not given"},
    "rank_in": {"type": "integer", "minimum": 1, "description": "input channels of the window"},
    "rank_out": {"type": "integer", "minimum": 1, "description": "output channels of the window"},
    "iterations": {"type": "integer", "minimum": 0, "default": 10,
             "description": "HOOI steps at most; 0: HOSVD alone"},
    )" TENON_RANK_OPTIONS ",\n    " TENON_CHOICE_OPTIONS "}}")
