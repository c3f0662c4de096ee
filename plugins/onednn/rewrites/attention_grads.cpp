// SPDX-License-Identifier: Apache-2.0
#include "attention_grads.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "graph/reductions.hpp"

namespace tenon::onednn {
namespace {

// A value as a transpose of the one that no Transpose makes.
struct Origin {
  int value;
  Dims axes;  // of it, in the order in which the value has them
};

Origin origin_of(const Graph& graph, int value) {
  Dims axes(graph.value(value).dims.size());
  for (size_t i = 0; i < axes.size(); ++i)
    axes[i] = static_cast<int64_t>(i);
  for (;;) {
    const int producer = graph.value(value).producer;
    if (producer == kNone || graph.node(producer).op != "Transpose") return {value, axes};
    const Node& node = graph.node(producer);
    Dims reversed(axes.size());
    for (size_t i = 0; i < axes.size(); ++i)
      reversed[i] = static_cast<int64_t>(axes.size() - 1 - i);
    const Dims perm = node.integers("perm", reversed);
    for (int64_t& axis : axes)
      axis = perm[static_cast<size_t>(axis)];
    value = node.inputs[0];
  }
}

bool are_same(const Graph& graph, int a, int b) {
  const Origin of_a = origin_of(graph, a), of_b = origin_of(graph, b);
  return of_a.value == of_b.value && of_a.axes == of_b.axes;
}

// Whether a is b with its last two axes swapped.
bool are_transposes(const Graph& graph, int a, int b) {
  const Origin of_a = origin_of(graph, a);
  Origin of_b = origin_of(graph, b);
  const size_t rank = of_b.axes.size();
  if (of_a.value != of_b.value || rank < 2) return false;
  std::swap(of_b.axes[rank - 1], of_b.axes[rank - 2]);
  return of_a.axes == of_b.axes;
}

struct Gradient {
  int scores = kNone;  // the node of the product q k
  int weights = kNone;
  int mask = kNone;
  int v = kNone, dy = kNone;
  double scale = 1.0;                      // of the scores
  int dq = kNone, dk = kNone, dv = kNone;  // nodes
  bool is_dk_by_keys = false;              // the transpose of dk is computed
  std::vector<int> nodes;                  // all that the merged one replaces
};

class Match {
 public:
  Match(const Graph& graph, int softmax) : graph_(graph) {
    found_.weights = graph.node(softmax).outputs[0];
  }

  std::optional<Gradient> find(int softmax) {
    const bool fits = is_over_last_axis(softmax) && find_scores(graph_.node(softmax).inputs[0]) &&
                      find_readers() && find_factor() && find_products() && have_one_batch();
    if (!fits) return std::nullopt;
    return std::move(found_);
  }

 private:
  const Dims& dims(int value) const { return graph_.value(value).dims; }
  int only_result(int node) const { return graph_.node(node).outputs[0]; }
  bool multiplies(int node) const { return graph_.node(node).op == "MatMul"; }
  int other_input(int node, int input) const {
    const Node& of = graph_.node(node);
    return of.inputs[of.inputs[0] == input ? 1 : 0];
  }
  // Read by these nodes alone, in any order.
  bool is_read_by(int value, std::vector<int> nodes) const {
    std::vector<int> users = graph_.value(value).users;
    std::ranges::sort(users);
    std::ranges::sort(nodes);
    return graph_.value(value).n_outputs == 0 && users == nodes;
  }

  bool is_over_last_axis(int softmax) const {
    const auto rank = static_cast<int64_t>(dims(found_.weights).size());
    const int64_t axis = graph_.node(softmax).integer("axis", -1);
    const Value& weights = graph_.value(found_.weights);
    return (rank == 3 || rank == 4) && (axis == -1 || axis == rank - 1) &&
           weights.type == ElementType::kF32 && weights.count() > 0;
  }

  // The number by which the node multiplies `value`.
  std::optional<double> factor_of(int node, int value) const {
    const Node& of = graph_.node(node);
    const bool divides = of.op == "Div" && of.inputs[0] == value;
    if (of.op != "Mul" && !divides) return std::nullopt;
    const int number = other_input(node, value);
    const std::optional<double> factor = constant_number(graph_.value(number));
    if (!factor || dims(of.outputs[0]) != dims(value)) return std::nullopt;
    return divides ? 1.0 / *factor : *factor;
  }

  // From Softmax's input up to the product: a mask, in front of it factors.
  bool find_scores(int value) {
    for (;;) {
      const int producer = graph_.value(value).producer;
      if (producer == kNone) return false;
      if (multiplies(producer)) {
        found_.scores = producer;
        return true;
      }
      const Node& node = graph_.node(producer);
      const auto scaled = std::ranges::find_if(
          node.inputs, [&](int input) { return input != kNone && may_be_scores(input); });
      if (node.inputs.size() != 2 || scaled == node.inputs.end()) return false;
      value = *scaled;
      if (node.op == "Add") {
        if (found_.mask != kNone || found_.scale != 1.0) return false;
        found_.mask = other_input(producer, value);
      } else {
        const std::optional<double> factor = factor_of(producer, value);
        if (!factor) return false;
        found_.scale *= *factor;
      }
    }
  }
  bool may_be_scores(int value) const {
    const int producer = graph_.value(value).producer;
    if (producer == kNone || dims(value) != dims(found_.weights)) return false;
    const std::string& op = graph_.node(producer).op;
    return op == "MatMul" || op == "Mul" || op == "Div" || op == "Add";
  }

  // Who reads the weights: the forward product, perhaps; their Transpose in front of dv; and the
  // gradient of the Softmax, dw - sum(dw * w) between two products with w.
  bool find_readers() {
    int inner = kNone, outer = kNone;  // dw * w, w * (dw - sum)
    int transposed = kNone;
    for (int user : graph_.value(found_.weights).users) {
      const Node& node = graph_.node(user);
      if (node.op == "Transpose" && transposed == kNone) {
        transposed = user;
      } else if (node.op == "Mul" && is_centred_by_sum(other_input(user, found_.weights))) {
        if (outer != kNone) return false;
        outer = user;
      } else if (node.op == "Mul") {
        if (inner != kNone) return false;
        inner = user;
      } else if (!multiplies(user) || node.inputs[0] != found_.weights) {
        return false;
      }
    }
    if (inner == kNone || outer == kNone || transposed == kNone) return false;
    if (graph_.value(found_.weights).n_outputs != 0) return false;
    return find_centring(inner, outer) && find_dv(transposed);
  }

  // dw - sum(dw * w)
  bool is_centred_by_sum(int value) const {
    const int producer = graph_.value(value).producer;
    if (producer == kNone || graph_.node(producer).op != "Sub") return false;
    const int sum = graph_.value(graph_.node(producer).inputs[1]).producer;
    return sum != kNone && graph_.node(sum).op == "ReduceSum";
  }

  bool find_centring(int inner, int outer) {
    const int dw = other_input(inner, found_.weights);
    const int centring = graph_.value(other_input(outer, found_.weights)).producer;
    const int sum = graph_.value(graph_.node(centring).inputs[1]).producer;
    const int product = graph_.value(dw).producer;
    const bool fits =
        graph_.node(centring).inputs[0] == dw && graph_.node(sum).inputs[0] == only_result(inner) &&
        reduced_last_axes(graph_, graph_.node(sum)) == 1 &&
        dims(only_result(sum)).size() == dims(dw).size() && dims(dw) == dims(found_.weights) &&
        product != kNone && multiplies(product) && is_read_by(dw, {inner, centring}) &&
        is_read_by(only_result(inner), {sum}) && is_read_by(only_result(sum), {centring}) &&
        is_read_by(only_result(centring), {outer});
    if (!fits) return false;
    found_.dy = graph_.node(product).inputs[0];
    found_.v = graph_.node(product).inputs[1];  // transposed; find_dv and find_v say of what
    found_.nodes = {product, inner, sum, centring, outer};
    outer_ = outer;
    return find_v();
  }

  // The values, whose transpose made dw: what the weights are multiplied with, or the Transpose's
  // own operand where the forward product read other weights.
  bool find_v() {
    const int of_transposed = found_.v;
    for (int user : graph_.value(found_.weights).users) {
      if (!multiplies(user) || graph_.node(user).inputs[0] != found_.weights) continue;
      found_.v = graph_.node(user).inputs[1];
      return are_transposes(graph_, found_.v, of_transposed);
    }
    const int producer = graph_.value(of_transposed).producer;
    if (producer == kNone || graph_.node(producer).op != "Transpose") return false;
    found_.v = graph_.node(producer).inputs[0];
    return are_transposes(graph_, found_.v, of_transposed);
  }

  bool find_dv(int transposed) {
    const int value = only_result(transposed);
    if (!are_transposes(graph_, value, found_.weights)) return false;
    found_.dv = graph_.only_user(value);
    const bool fits = found_.dv != kNone && multiplies(found_.dv) &&
                      graph_.node(found_.dv).inputs[0] == value &&
                      graph_.node(found_.dv).inputs[1] == found_.dy;
    found_.nodes.insert(found_.nodes.end(), {transposed, found_.dv});
    return fits;
  }

  // The factors behind the gradient of the Softmax are those of the scores.
  bool find_factor() {
    double scale = 1.0;
    ds_ = only_result(outer_);
    for (int next = graph_.only_user(ds_); next != kNone; next = graph_.only_user(ds_)) {
      const std::optional<double> factor = factor_of(next, ds_);
      if (!factor) break;
      scale *= *factor;
      found_.nodes.push_back(next);
      ds_ = only_result(next);
    }
    return std::abs(scale - found_.scale) <= 1e-6 * std::abs(scale);
  }

  // ds k' and q' ds, or its transpose ds' q; one of the two may be missing.
  bool find_products() {
    const Node& scores = graph_.node(found_.scores);
    for (int user : graph_.value(ds_).users) {
      const Node& node = graph_.node(user);
      found_.nodes.push_back(user);
      if (multiplies(user) && node.inputs[0] == ds_ && found_.dq == kNone &&
          are_transposes(graph_, node.inputs[1], scores.inputs[1])) {
        found_.dq = user;
      } else if (multiplies(user) && node.inputs[1] == ds_ && found_.dk == kNone &&
                 are_transposes(graph_, node.inputs[0], scores.inputs[0])) {
        found_.dk = user;
      } else if (node.op != "Transpose" || found_.dk != kNone || !find_transposed_dk(user)) {
        return false;
      }
    }
    return graph_.value(ds_).n_outputs == 0 && (found_.dq != kNone || found_.dk != kNone);
  }
  bool find_transposed_dk(int transpose) {
    const int value = only_result(transpose);
    const int product = graph_.only_user(value);
    const bool fits =
        are_transposes(graph_, value, ds_) && product != kNone && multiplies(product) &&
        graph_.node(product).inputs[0] == value &&
        are_same(graph_, graph_.node(product).inputs[1], graph_.node(found_.scores).inputs[0]);
    if (!fits) return false;
    found_.dk = product;
    found_.is_dk_by_keys = true;
    found_.nodes.push_back(product);
    return true;
  }

  // No operand broadcasts: gradients would be sums over heads.
  bool have_one_batch() const {
    const Dims& whole = dims(found_.weights);
    const Node& scores = graph_.node(found_.scores);
    auto fits = [&](int value) {
      const Dims& its = dims(value);
      return its.size() == whole.size() &&
             std::equal(whole.begin(), whole.end() - 2, its.begin()) &&
             graph_.value(value).type == ElementType::kF32;
    };
    const bool has_fit_mask =
        found_.mask == kNone || graph_.value(found_.mask).type == ElementType::kF32;
    return fits(scores.inputs[0]) && fits(scores.inputs[1]) && fits(found_.v) && fits(found_.dy) &&
           has_fit_mask;
  }

  const Graph& graph_;
  Gradient found_;
  int outer_ = kNone;  // the node of ds without factors
  int ds_ = kNone;     // with them
};

// The merged node, in front of which all that it reads is made. Nothing where somebody reads a
// result before.
std::optional<std::pair<int, Node>> merged(const Graph& graph, const Gradient& found) {
  const Node& scores = graph.node(found.scores);
  auto result = [&](int node) { return node == kNone ? kNone : graph.node(node).outputs[0]; };
  Node node{
      .op = kAttentionGrad,
      .name = graph.node(found.dv).name,
      .inputs = {scores.inputs[0], scores.inputs[1], found.v, found.dy, found.mask},
      .outputs = {result(found.dq), result(found.dk), result(found.dv)},
      .attributes = {{"scale", found.scale}, {kDkByKeys, int64_t{found.is_dk_by_keys ? 1 : 0}}}};
  int place = 0;
  for (int input : node.inputs)
    if (input != kNone) place = std::max(place, graph.value(input).producer + 1);
  for (int output : node.outputs)
    if (output != kNone)
      for (int user : graph.value(output).users)
        if (user < place) return std::nullopt;
  return std::pair(place, std::move(node));
}

// What nobody reads any more goes, from the last node to the first.
void mark_unread(const Graph& graph, std::vector<bool>& is_gone, std::vector<int> n_users) {
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool is_unread = !is_gone[i] && std::ranges::all_of(node.outputs, [&](int output) {
      return output == kNone ||
             (n_users[static_cast<size_t>(output)] == 0 && graph.value(output).n_outputs == 0);
    });
    if (!is_unread) continue;
    is_gone[i] = true;
    for (int input : node.inputs)
      if (input != kNone) --n_users[static_cast<size_t>(input)];
  }
}

}  // namespace

void merge_attention_grads(Graph& graph) {
  std::vector<bool> is_gone(graph.nodes.size(), false);
  std::vector<std::vector<Node>> in_front(graph.nodes.size() + 1);
  std::vector<int> n_users;
  for (const Value& value : graph.values)
    n_users.push_back(static_cast<int>(value.users.size()));
  bool any = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op != "Softmax") continue;
    const auto found = Match(graph, static_cast<int>(i)).find(static_cast<int>(i));
    if (!found) continue;
    auto made = merged(graph, *found);
    if (!made) continue;
    any = true;
    for (int node : found->nodes) {
      is_gone[static_cast<size_t>(node)] = true;
      for (int input : graph.node(node).inputs)
        if (input != kNone) --n_users[static_cast<size_t>(input)];
    }
    for (int input : made->second.inputs)
      if (input != kNone) ++n_users[static_cast<size_t>(input)];
    in_front[static_cast<size_t>(made->first)].push_back(std::move(made->second));
  }
  if (!any) return;
  mark_unread(graph, is_gone, std::move(n_users));
  std::vector<Node> ordered;
  for (size_t i = 0; i <= graph.nodes.size(); ++i) {
    std::ranges::move(in_front[i], std::back_inserter(ordered));
    if (i < graph.nodes.size() && !is_gone[i]) ordered.push_back(std::move(graph.nodes[i]));
  }
  graph.reorder(std::move(ordered));
}

}  // namespace tenon::onednn
