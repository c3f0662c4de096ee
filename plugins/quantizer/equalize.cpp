// SPDX-License-Identifier: Apache-2.0
// "quantizer.equalize": the channels between two layers come to be of one size (Nagel et al., ICCV
// 2019, section 4.1). What one layer makes is divided, channel by channel, and what the next one
// reads multiplied by the same number: the float model computes what it did, as long as what lies
// between is positively homogeneous, and neither a scale for a whole tensor nor one for an output
// channel has to hold a large channel and a small one. Needs no data. Apply it before quantizing.
#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "gram.hpp"
#include "pointwise_values.hpp"

namespace tenon::quantizer {
namespace {

struct Layer {
  Node node;
  Product product;
  WeightForm form;
};

// Whether f(s x) = s f(x) for s > 0, channel by channel: asked of the node itself, on numbers of
// both signs, with the constants that it has.
Result<bool> is_homogeneous(tn_ctx* ctx, Node node, int64_t channels, bool slides) {
  Type type = node.input(0).type();
  if (!is_pointwise_of_one(node) || !type.ranked || type.rank() < 2) return false;
  constexpr float kFactor = 4;                              // exact
  const std::vector<float> points = points_of_all_sizes();  // a bend lies between one and the next
  std::vector<int64_t> shape(type.rank(), 1);
  shape[0] = 2 * std::ssize(points);
  shape[slides ? 1 : type.rank() - 1] = channels;
  std::vector<float> numbers;
  for (float factor : {1.0F, kFactor})
    for (float point : points)
      numbers.insert(numbers.end(), static_cast<size_t>(channels), factor * point);
  TN_TRY(made, values_at(ctx, {&node, 1}, numbers, shape));
  const auto count = static_cast<int64_t>(numbers.size());
  if (dtype_of(made.dl()) != TN_F32 || element_count(made.dl()) != count) return false;
  const float* y = made.data<float>();
  for (size_t i = 0, half = numbers.size() / 2; i < half; ++i)
    if (!(std::abs(y[half + i] - kFactor * y[i]) <= 1e-6F * std::abs(y[half + i]))) return false;
  return true;
}

class Numbers {  // constants that are being changed
 public:
  std::vector<float>& of(Value v) {
    std::vector<float>& all = by_value_[v.id];
    if (all.empty()) {
      DLTensor tensor = v.constant().dl();
      const float* data = data_of<const float>(tensor);
      all.assign(data, data + element_count(tensor));
    }
    return all;
  }
  // For the one node that reads each; an output of the graph stays what it is.
  Status store(EditView edit) const {
    for (const auto& [id, numbers] : by_value_) {
      Value old = edit.value(id);
      std::string name(old.name());
      TN_TRY(made, edit.constant<float>(TN_F32, old.type().dims, numbers, name + "_equalized"));
      uint64_t input = 0;
      Node reader = old.consumer(0, &input);
      TN_CHECK(edit.set_input(reader, input, made));
    }
    return {};
  }

 private:
  std::map<tn_value_id, std::vector<float>> by_value_;
};

bool is_own(Value v) {
  return v && v.is_constant() && v.dtype() == TN_F32 && v.consumer_count() == 1;
}

// A layer whose weight nothing else reads.
std::optional<Layer> layer_of(Node node, std::string* why) {
  Role role = role_of(node);
  if (role.kind != Kind::kCompute || role.is_fused || role.products.size() != 1) {
    *why = "no layer with one weight";
    return std::nullopt;
  }
  const Product& product = role.products[0];
  if (!is_own(product.weight_of(node))) {
    *why = "its weight is no constant of its own in float32";
    return std::nullopt;
  }
  if (node.attr_float("alpha", 1) != 1 || node.attr_float("beta", 1) != 1) {
    *why = "its product or bias has a factor";
    return std::nullopt;
  }
  std::optional<WeightForm> form = weight_form(node, product, why);
  if (!form) return std::nullopt;
  return Layer{node, product, *form};
}

struct Pair {
  Layer first, second;
  int64_t channels = 0;
};

int64_t inputs_of(const Layer& layer) {  // channels that it reads
  if (!layer.form.layer.slides) return layer.form.columns;
  return layer.form.groups * layer.product.weight_of(layer.node).type().dims[1];
}

// Calls visit(channel, place in the weight) for the numbers that make, or read, each channel.
template <class Visit>
void each_made(const Layer& layer, Visit&& visit) {
  const WeightForm& form = layer.form;
  for (int64_t g = 0; g < form.groups; ++g)
    for (int64_t r = 0; r < form.rows; ++r)
      for (int64_t c = 0; c < form.columns; ++c)
        visit(static_cast<size_t>(g * form.rows + r), static_cast<size_t>(form.at(g, r, c)));
}
template <class Visit>
void each_read(const Layer& layer, Visit&& visit) {
  const WeightForm& form = layer.form;
  int64_t here = inputs_of(layer) / form.groups, window = form.columns / here;
  for (int64_t g = 0; g < form.groups; ++g)
    for (int64_t r = 0; r < form.rows; ++r)
      for (int64_t c = 0; c < form.columns; ++c)
        visit(static_cast<size_t>(g * here + c / window), static_cast<size_t>(form.at(g, r, c)));
}

class Equalize {
 public:
  static Result<Equalize> create(tn_ctx* ctx, const Options& options) {
    Equalize out;
    out.ctx_ = ctx;
    out.rounds_ = options.integer("rounds");
    out.selected_ = Selected::read(options);
    return out;
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_CHECK(selected_.check({raw}));
    nlohmann::ordered_json left = nlohmann::ordered_json::array(), equalized = left;
    TN_TRY(pairs, find({raw}, &left));
    Numbers numbers;
    int64_t round = 0;
    std::vector<double> widest(pairs.size(), 0);
    for (double moved = 1; moved > 1e-3 && round < rounds_; ++round) {
      TN_CHECK(cancel.check());
      moved = 0;
      for (size_t i = 0; i < pairs.size(); ++i) {
        double one = balance(pairs[i], &numbers);
        widest[i] = std::max(widest[i], one);
        moved = std::max(moved, one - 1);
      }
    }
    TN_TRY(edit, Edit::begin(raw));
    TN_CHECK(numbers.store(edit));
    for (size_t i = 0; i < pairs.size(); ++i)
      equalized.push_back({{"from", pairs[i].first.node.name()},
                           {"to", pairs[i].second.node.name()},
                           {"channels", pairs[i].channels},
                           {"largest_factor", widest[i]}});
    TN_CHECK(edit.commit());
    return sink.write(
        nlohmann::ordered_json{{"equalized", equalized}, {"left", left}, {"rounds", round}}.dump());
  }

 private:
  Result<std::vector<Pair>> find(Graph graph, nlohmann::ordered_json* left) const {
    std::vector<Pair> out;
    for (Node node : graph.nodes()) {
      std::string why;
      if (role_of(node).kind != Kind::kCompute || !selected_.takes(node)) continue;
      TN_TRY(pair, pair_from(node, &why));
      if (pair) {
        out.push_back(*pair);
      } else {
        left->push_back({{"node", node.name()}, {"why", why}});
      }
    }
    return out;
  }

  Result<std::optional<Pair>> pair_from(Node node, std::string* why) const {
    std::optional<Layer> first = layer_of(node, why);
    if (!first) return std::optional<Pair>();
    Value bias = first->product.bias_of(node);
    const int64_t channels = first->form.groups * first->form.rows;
    if (bias && (!is_own(bias) || bias.type().dims != std::vector<int64_t>{channels})) {
      *why = "its bias is no constant of its own, one number for each channel";
      return std::optional<Pair>();
    }
    Value result = node.output();
    for (;;) {
      if (result.is_output() || result.consumer_count() != 1) {
        *why = "its result is read by several nodes, or is an output";
        return std::optional<Pair>();
      }
      uint64_t input = 0;
      Node next = result.consumer(0, &input);
      TN_TRY(passes, input == 0 ? is_homogeneous(ctx_, next, channels, first->form.layer.slides)
                                : Result<bool>(false));
      if (passes) {
        result = next.output();
        continue;
      }
      std::string other;
      std::optional<Layer> second = layer_of(next, &other);
      bool fits = second && static_cast<int64_t>(input) == second->product.act &&
                  second->form.layer.slides == first->form.layer.slides &&
                  inputs_of(*second) == channels && selected_.takes(next);
      if (fits) return std::optional<Pair>(Pair{*first, *second, channels});
      *why = second ? cat("node ", next.name(), " does not read its channels one by one")
                    : cat("node ", next.name(), " (", next.type(), ") comes after it");
      return std::optional<Pair>();
    }
  }

  // One step for one pair; the largest factor either way.
  static double balance(const Pair& pair, Numbers* numbers) {
    const auto n = static_cast<size_t>(pair.channels);
    std::vector<double> made(n, 0), read(n, 0), factor(n, 1);
    std::vector<float>& first = numbers->of(pair.first.product.weight_of(pair.first.node));
    std::vector<float>& second = numbers->of(pair.second.product.weight_of(pair.second.node));
    auto most = [](std::vector<double>& all, const std::vector<float>& from) {
      return [&](size_t channel, size_t at) {
        all[channel] = std::max(all[channel], std::abs(static_cast<double>(from[at])));
      };
    };
    each_made(pair.first, most(made, first));
    each_read(pair.second, most(read, second));
    double widest = 1;
    for (size_t c = 0; c < n; ++c) {
      double one = std::sqrt(made[c] / read[c]);
      // A channel of zeros, or of what is no number, stays as it is.
      if (!(one > 0) || !std::isfinite(one)) continue;
      factor[c] = std::clamp(one, 1e-4, 1e4);
      widest = std::max({widest, factor[c], 1 / factor[c]});
    }
    each_made(pair.first, [&](size_t c, size_t at) {
      first[at] = static_cast<float>(static_cast<double>(first[at]) / factor[c]);
    });
    if (Value bias = pair.first.product.bias_of(pair.first.node)) {
      std::vector<float>& all = numbers->of(bias);
      for (size_t c = 0; c < n; ++c)
        all[c] = static_cast<float>(static_cast<double>(all[c]) / factor[c]);
    }
    each_read(pair.second, [&](size_t c, size_t at) {
      second[at] = static_cast<float>(static_cast<double>(second[at]) * factor[c]);
    });
    return widest;
  }

  tn_ctx* ctx_ = nullptr;
  int64_t rounds_ = 20;
  Selected selected_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(equalize,
           tenon::quantizer::Equalize,
           "quantizer.equalize",
           "channels between two layers come to be of one size; the float model stays the same",
           R"({
  "properties": {
    "rounds": {"type": "integer", "minimum": 1, "default": 20, "description": "over all pairs of layers, at most"},
    )" TENON_SELECTED_OPTIONS("layers to equalize") "}}")
