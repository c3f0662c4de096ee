// SPDX-License-Identifier: Apache-2.0
// "quantizer.binarize": a model to be trained with weights and activations of one bit (XNOR-Net++,
// Bulat and Tzimiropoulos, BMVC 2019): y = (sign(x) * sign(W)) gamma with a learned gamma,
// gradients straight through where |x| <= 1. The sign of an activation is taken from (x - t) / s
// with a learned threshold t for each channel (ReActNet, Liu et al., ECCV 2020, equation 4), which
// begins as the channel's mean, and its deviation s: behind a Relu every x is positive. Two stages
// (Bulat, Tzimiropoulos, Martinez and Pantic, "Improved training of binary networks for human pose
// estimation and image recognition", 2019): activations are trained first, before float weights,
// and the weights from there. Shortcuts of floats around each layer: Bi-Real Net (Liu et al., ECCV
// 2018).
// quantizer.convert makes the constants of it.
#include <map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "tenon/sdk/feed.hpp"
#include "tenon/sdk/layer_form.hpp"
#include "tenon/sdk/original.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "assignment.hpp"
#include "calibration.hpp"
#include "channel_spread.hpp"
#include "graph_outputs.hpp"
#include "report.hpp"
#include "selection_note.hpp"
#include "signs.hpp"
#include "stages.hpp"
#include "trained_weight.hpp"

namespace tenon::quantizer {
namespace {

struct Layer {
  Node node;
  Product product;
  int64_t act_axis = 1;  // that is summed over
};

// Whether the values that the node reads, or those that read it, come from another layer.
class Order {
 public:
  Order(Graph graph, const Assignment& assignment) {
    std::unordered_set<tn_node_id> layers;
    for (const Decision& one : assignment.nodes())
      if (one.taken) layers.insert(one.node.id);
    std::vector<Node> nodes = graph.nodes();
    for (Node node : nodes)
      for (Value v : node.inputs()) {
        if (!v || !v.producer()) continue;
        tn_node_id maker = v.producer().id;
        if (layers.contains(maker) || behind_.contains(maker)) behind_.insert(node.id);
      }
    for (size_t i = nodes.size(); i-- > 0;)
      for (Value v : nodes[i].outputs())
        for (uint64_t k = 0; v && k < v.consumer_count(); ++k) {
          tn_node_id user = v.consumer(k).id;
          if (layers.contains(user) || before_.contains(user)) before_.insert(nodes[i].id);
        }
  }
  bool is_first(Node node) const { return !behind_.contains(node.id); }
  bool is_last(Node node) const { return !before_.contains(node.id); }

 private:
  std::unordered_set<tn_node_id> behind_, before_;
};

// Who reads a value before something is put behind it.
class Users {
 public:
  explicit Users(Value value) {
    for (uint64_t i = 0; i < value.consumer_count(); ++i) {
      uint64_t input = 0;
      Node node = value.consumer(i, &input);
      users_.emplace_back(node, input);
    }
  }
  // They, and the outputs of the graph, read `to` from now on.
  void move(Builder& b, Value from, Value to) const {
    for (const auto& [node, input] : users_)
      b.fail(b.edit().set_input(node, input, to));
    b.fail(give_out(b.edit(), from, to));
  }

 private:
  std::vector<std::pair<Node, uint64_t>> users_;
};

class Binarize {
 public:
  static Result<Binarize> create(tn_ctx* ctx, const Options& options) {
    Binarize out;
    out.ctx_ = ctx;
    TN_TRY(data, FeedOptions::read(ctx, options));
    out.data_ = std::move(data);
    out.selected_ = Selected::read(options);
    out.backends_ = options.texts("backend");
    out.takes_ends_ = options.text("ends") == "binary";
    out.has_places_ = options.text("scales") == "places";
    out.keeps_weights_ = options.text("weights") == "float";
    out.has_shortcuts_ = options.flag("shortcuts");
    return Result<Binarize>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    Graph graph{raw};
    TN_CHECK(selected_.check(graph));
    TN_TRY(layers, find_layers(graph));
    TN_TRY(feed, Feed::make(ctx_, data_.data, graph, calibration_feed(data_)));
    TN_TRY(spreads, spreads_of(graph, layers, &feed, cancel));
    TN_TRY(edit, Edit::begin(raw));
    TN_CHECK(keep_original(edit, raw));
    TN_CHECK(keep_selected(edit, {.skip = {"*"}}));  // what is not of one bit stays in float
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const Layer& layer : layers) {
      Builder b(edit);
      names.push_back(layer.node.name());
      auto spread = spreads.find({layer.product.act_of(layer.node).id, layer.act_axis});
      write(b, layer, spread == spreads.end() ? nullptr : &spread->second);
      TN_CHECK(b.status().in(layer.node.name()));
    }
    TN_CHECK(edit.commit());
    return sink.write(nlohmann::ordered_json{
        {"binary", names}, {"float", left_}, {"samples", feed.samples()}, {"shortcuts", around_}}
                          .dump());
  }

 private:
  using Read = std::pair<tn_value_id, int64_t>;  // a value, and the axis that is summed over

  Result<std::vector<Layer>> find_layers(Graph graph) {
    TN_TRY(assignment, Assignment::make(graph, {.weights_only = true}));
    const Order order(graph, assignment);
    std::vector<Layer> layers;
    for (const Decision& one : assignment.nodes()) {
      if (one.role.kind != Kind::kCompute) continue;
      Layer layer{one.node, {}, 1};
      std::string why = one.taken ? why_left(one, order, &layer) : one.why;
      if (why.empty())
        layers.push_back(layer);
      else
        left_.push_back({{"node", one.node.name()}, {"why", why}});
    }
    if (layers.empty())
      return Status(TN_FAILED_PRECONDITION,
                    cat("nothing to binarize: ",
                        left_.empty() ? "the model has no products with known weights"
                                      : first_reasons(left_, "")));
    return layers;
  }

  std::string why_left(const Decision& one, const Order& order, Layer* layer) const {
    if (std::string why = selected_.why_left(one.node); !why.empty()) return why;
    if (one.role.products.size() != 1) return "it has several weights";
    layer->product = one.role.products[0];
    Value weight = layer->product.weight_of(one.node);
    auto form = layer_form(one.node, static_cast<uint64_t>(layer->product.act),
                           static_cast<uint64_t>(layer->product.weight));
    if (!form || form->act_in < 0 || form->weight_out != layer->product.axis)
      return "how its weight lies is not known";
    if (form->groups != 1) return "it has groups: sums of few signs say little";
    layer->act_axis = form->act_in;
    if (weight.dtype() != TN_F32) return "its weight is no float32";
    if (!layer->product.act_of(one.node).type().ranked) return "the rank of its input is not known";
    if (takes_ends_) return "";
    if (order.is_first(one.node)) return "a first layer stays in float (option ends)";
    return order.is_last(one.node) ? "a last layer stays in float (option ends)" : "";
  }

  Result<std::map<Read, ChannelSpread>> spreads_of(Graph graph,
                                                   const std::vector<Layer>& layers,
                                                   Feed* feed,
                                                   const Cancel& cancel) const {
    std::map<Read, ChannelSpread> out;
    TN_TRY(stages, Stages::make(ctx_, graph, feed, backends_));
    for (const Layer& layer : layers) {
      Value read = layer.product.act_of(layer.node);
      if (is_straight_sign(read)) continue;
      auto [at, is_new] = out.try_emplace({read.id, layer.act_axis}, layer.act_axis);
      if (!is_new) continue;
      TN_CHECK(cancel.check());
      TN_CHECK(stages.reach(read, cancel).in(layer.node.name()));
      for (uint64_t batch = 0; batch < stages.batches(); ++batch) {
        TN_TRY(numbers, stages.read(read, batch));
        at->second.see(numbers.dl());
      }
    }
    return out;
  }

  // Without a spread the layer reads signs already: of an earlier stage.
  void write(Builder& b, const Layer& layer, const ChannelSpread* spread) {
    Node node = b.edit().node(layer.node.id);
    Value read = layer.product.act_of(node);  // what scales of places stand behind, maybe
    if (spread) {
      Value& sign = signs_[{read.id, layer.act_axis}];
      if (!sign) sign = activation(b, read, layer.act_axis, *spread);
      if (!sign) return;
      b.fail(b.edit().set_input(node, static_cast<uint64_t>(layer.product.act), sign));
    }
    if (!keeps_weights_) {
      Value& weight = weights_[{layer.product.weight_of(layer.node).id, layer.product.axis}];
      if (!weight) weight = binary_weight(b, layer);
      if (!weight) return;
      b.fail(b.edit().set_input(node, static_cast<uint64_t>(layer.product.weight), weight));
      if (has_places_) scale_places(b, layer);
    }
    if (has_shortcuts_ && spread) add_shortcut(b, layer, read);
  }

  // Of a normalization: beside the value it reads constants alone. An activation reads none.
  static bool has_parameters_alone(Node node, Value value) {
    if (node.n_outputs() != 1 || node.n_inputs() < 2) return false;
    for (Value v : node.inputs())
      if (v && !v.is_constant() && v != value) return false;
    return node.input(0) == value;
  }

  // What the layer read before the signs goes around it, and around the normalization behind it.
  void add_shortcut(Builder& b, const Layer& layer, Value read) {
    Value made = b.edit().node(layer.node.id).output();
    if (made.consumer_count() == 1 && !made.is_output()) {
      Node next = made.consumer(0);
      if (has_parameters_alone(next, made)) made = next.output();
    }
    const Type from = read.type(), to = made.type();
    if (!from.ranked || !to.ranked || from.dims != to.dims) return;
    const Users users(made);
    Value sum = b.add(made, read);
    if (!sum) return;
    users.move(b, made, sum);
    ++around_;
  }

  // [channels, 1, ...]: broadcasts along the axis.
  static std::vector<int64_t> along(Value value, int64_t axis, size_t channels) {
    std::vector<int64_t> dims(value.type().rank() - static_cast<size_t>(axis), 1);
    dims[0] = static_cast<int64_t>(channels);
    return dims;
  }

  static Value constant(Builder& b,
                        const std::vector<int64_t>& dims,
                        const std::vector<float>& numbers,
                        const std::string& name) {
    return b.take(b.edit().constant<float>(TN_F32, dims, numbers, name));
  }

  static Value activation(Builder& b, Value x, int64_t axis, const ChannelSpread& spread) {
    std::vector<float> mean, factor;
    for (size_t c = 0; c < spread.channels(); ++c) {
      mean.push_back(static_cast<float>(spread.mean(c)));
      factor.push_back(static_cast<float>(1 / spread.deviation(c)));
    }
    const std::string name(x.name());
    const std::vector<int64_t> dims = along(x, axis, spread.channels());
    Value threshold = constant(b, dims, mean, name + "_threshold");
    Value narrow = constant(b, dims, factor, name + "_narrowing");
    if (!threshold || !narrow) return {};
    b.fail(b.edit().set_note(narrow.id, "train", any_int(0)));
    return straight_sign(b, b.op("GreaterOrEqual", {x, threshold}),
                         b.mul(b.sub(x, threshold), narrow), name + "_sign");
  }

  // Latent weights are those of the model over the largest of their channel; gamma begins as the
  // mean of the channel's sizes, which leaves the least squared error (Rastegari et al., ECCV 2016,
  // equation 6).
  static Value binary_weight(Builder& b, const Layer& layer) {
    Value weight = b.edit().value(layer.product.weight_of(layer.node).id);
    const Tensor tensor = weight.constant();
    const std::vector<int64_t> dims = weight.type().dims;
    const auto axis = static_cast<size_t>(layer.product.axis);
    const auto channels = static_cast<size_t>(dims[axis]);
    const AxisSplit at(dims, layer.product.axis);
    const auto* numbers = tensor.data<float>();
    const int64_t count = weight.type().elements();
    std::vector<float> latent(numbers, numbers + count), largest(channels, 0), gamma(channels, 0);
    auto channel = [&](int64_t i) { return at.along(static_cast<size_t>(i)); };
    for (int64_t i = 0; i < count; ++i) {
      largest[channel(i)] = std::max(largest[channel(i)], std::abs(numbers[i]));
      gamma[channel(i)] +=
          std::abs(numbers[i]) * static_cast<float>(channels) / static_cast<float>(count);
    }
    for (int64_t i = 0; i < count; ++i)
      if (largest[channel(i)] > 0) latent[static_cast<size_t>(i)] /= largest[channel(i)];
    for (float& each : gamma)
      each = std::max(each, 1e-6F);
    const std::string name(weight.name());
    Value w = constant(b, dims, latent, name + "_latent");
    Value step = constant(b, {static_cast<int64_t>(channels)}, gamma, name + "_gamma");
    Value sign =
        straight_sign(b, b.op("GreaterOrEqual", {w, b.number(0, TN_F32)}), w, name + "_sign");
    Value now = b.op("Max", {step, b.number(std::numeric_limits<float>::min(), TN_F32)});
    std::vector<int64_t> broadcast(dims.size(), 1);
    broadcast[axis] = static_cast<int64_t>(channels);
    Value scaled = b.mul(sign, b.op("Reshape", {now, b.ints(broadcast)}));
    if (!scaled) return {};
    return b.take(rounded_weight(b.edit(), name, scaled, now, {layer.product.axis, true, 127, {}}));
  }

  // The paper's rank-1 scales of places, beta (x) gamma, behind a convolution of known extents; its
  // bias goes behind them.
  void scale_places(Builder& b, const Layer& layer) {
    Node node = b.edit().node(layer.node.id);
    Value y = node.output(), bias = layer.product.bias_of(node);
    const Type type = y.type();
    const size_t rank = type.ranked ? type.rank() : 0;
    bool is_known = rank > 2;
    for (size_t d = 2; d < rank; ++d)
      is_known = is_known && type.dims[d] > 0;
    if (!is_known) return;
    const Users users(y);
    Value scaled = y;
    for (size_t d = 2; d < rank; ++d) {
      std::vector<int64_t> dims(rank - d, 1);
      dims[0] = type.dims[d];
      std::vector<float> ones(static_cast<size_t>(dims[0]), 1);
      scaled = b.mul(scaled, constant(b, dims, ones, cat(node.name(), "_places_", d)));
    }
    if (bias) {
      b.fail(b.edit().set_input(node, static_cast<uint64_t>(layer.product.bias), {}));
      std::vector<int64_t> dims(rank - 1, 1);
      dims[0] = type.dims[1];
      scaled = b.add(scaled, b.reshape(bias, dims));
    }
    if (scaled) users.move(b, y, scaled);
  }

  tn_ctx* ctx_ = nullptr;
  FeedOptions data_;
  Selected selected_;
  std::vector<std::string> backends_;
  bool takes_ends_ = false, has_places_ = false, keeps_weights_ = false, has_shortcuts_ = false;
  uint64_t around_ = 0;  // layers with a shortcut
  nlohmann::ordered_json left_ = nlohmann::ordered_json::array();
  std::map<Read, Value> signs_, weights_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(binarize,
           tenon::quantizer::Binarize,
           "quantizer.binarize",
           "weights and activations of one bit that can be trained (XNOR-Net++)",
           R"({"required": ["data"], "properties": {)" TENON_FEED_OPTIONS(
               "calibration data", "64", "8") "," TENON_BACKEND_OPTION("runs the float model") R"(,
    "ends": {"type": "string", "enum": ["float", "binary"], "default": "float", "description": "layers that no other is in front of, and those that no other follows"},
    "scales": {"type": "string", "enum": ["channels", "places"], "default": "channels",
               "description": "learned scales: of each output channel; and of each row and column of a convolution's result, where its extents are known"},
    "weights": {"type": "string", "enum": ["binary", "float"], "default": "binary",
                "description": "float: activations alone, as a first stage; applied again after its training, the pass takes the weights"},
    "shortcuts": {"type": "boolean", "default": false,
                  "description": "adds what a layer reads to what it makes, behind its normalization, where the shapes are equal"},
    )" TENON_SELECTED_OPTIONS("layers to binarize") "}}")
