// SPDX-License-Identifier: Apache-2.0
#include "integer_rewriting.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tenon/sdk/alike.hpp"

#include "assignment.hpp"
#include "float_nodes.hpp"
#include "integer_values.hpp"
#include "known_numbers.hpp"
#include "pointwise_values.hpp"
#include "repeated.hpp"
#include "role.hpp"

namespace tenon::quantizer {
namespace {

class Rewriting {
 public:
  Rewriting(tn_ctx* ctx, EditView edit) : ctx_(ctx), edit_(edit), n_(edit) {}

  Status run() {
    for (Node node : edit_.graph().nodes()) {
      TN_CHECK(take(node).in(node.name()));
      TN_CHECK(n_.status().in(node.name()));
    }
    TN_CHECK(hand_over());
    return erase_unused();
  }
  const nlohmann::ordered_json& refused() const { return refused_; }

 private:
  using Handler = Status (Rewriting::*)(Node);

  const Integers* known(Value v) const {
    auto at = v ? known_.find(v.id) : known_.end();
    return at == known_.end() ? nullptr : &at->second;
  }
  Status refuse(Node node, std::string_view why) {
    refused_.push_back({{"node", node.name()}, {"op", node.type()}, {"why", why}});
    return {};
  }

  Status take(Node node) {
    static const std::unordered_map<std::string_view, Handler> kHandlers = {
        {"DequantizeLinear", &Rewriting::dequantize},
        {"QuantizeLinear", &Rewriting::quantize},
        {"Conv", &Rewriting::product},
        {"Gemm", &Rewriting::product},
        {"MatMul", &Rewriting::product},
        {"Relu", &Rewriting::clip},
        {"Clip", &Rewriting::clip},
        {"Add", &Rewriting::add},
        {"Max", &Rewriting::by_number},
        {"Min", &Rewriting::by_number},
        {"Mul", &Rewriting::by_number},
        {"Div", &Rewriting::by_number},
        {"GlobalAveragePool", &Rewriting::mean},
        {"ReduceMean", &Rewriting::mean},
        {"Softmax", &Rewriting::softmax}};
    if (!node.domain().empty() && node.domain() != "ai.onnx") return {};
    auto found = kHandlers.find(node.type());
    if (found != kHandlers.end()) return (this->*found->second)(node);
    if (role_of(node).kind == Kind::kSameScale) return move(node);
    bool reads_known = false;
    for (Value v : node.inputs())
      reads_known |= known(v) != nullptr;
    return reads_known ? table(node) : Status();
  }

  // ---- the borders of integers ----

  Status dequantize(Node node) {
    std::optional<Stored8> from = storage_of(node);
    Value stored = node.input(0);
    if (!from || stored.is_constant() || stored.dtype() != from->dtype) return {};
    const double most =
        static_cast<double>(std::max(from->high() - from->zero, from->zero - from->low()));
    known_[node.output().id] = {stored, {from->scale}, 0, from->zero, most, {}};
    return {};
  }

  Status quantize(Node node) {
    const Integers* x = known(node.input(0));
    std::optional<Stored8> to = storage_of(node);
    if (!x || !to) return {};
    Value made = n_.requantize(*x, *to);
    TN_CHECK(n_.status());
    return edit_.replace(node.output(), made);
  }

  // ---- sums ----

  // The codes as the integer products have them: [k, n] for matrices.
  Status product(Node node) {
    Role role = role_of(node);
    const bool is_conv = node.is("Conv");
    const Integers* x = known(node.input(0));
    if (!x) return {};
    if (!x->is_stored()) return refuse(node, "its input is a sum that was not rounded to 8 bits");
    std::optional<Known> w = known_of(node.input(1));
    if (!w || w->numbers.dtype() != TN_I8 || role.products.empty())
      return refuse(node, "its weight is no int8 constant with zero point 0");
    if (node.is("Gemm") && (node.attr_float("alpha", 1) != 1 || node.attr_float("beta", 1) != 1 ||
                            node.attr_int("transA") != 0))
      return refuse(node, "alpha, beta or transA");
    const int64_t axis = role.products[0].axis;
    if (w->scale.size() > 1 && w->axis != axis) return refuse(node, "scales along another axis");
    if (!is_conv && w->numbers.type().rank() != 2) return refuse(node, "its weight is no matrix");
    Value codes = w->numbers;
    if (node.is("Gemm") && node.attr_int("transB") != 0) {
      TN_TRY(flipped, transposed(edit_, codes));
      codes = flipped;
    }
    Builder& b = n_.builder();
    TN_TRY(zero, zero_of(*x));
    std::vector<Value> inputs{x->value, codes, zero};
    Node made =
        is_conv ? b.node({.type = "ConvInteger", .inputs = inputs, .attrs = attributes_of(node)})
                : b.node({.type = "MatMulInteger", .inputs = inputs});
    if (!made) return n_.status();
    return finish_product(node, *x, *w, axis, made.output());
  }

  Status finish_product(Node node, const Integers& x, const Known& w, int64_t axis, Value sums) {
    Builder& b = n_.builder();
    const size_t rank = node.output().type().rank();
    Integers out;
    out.axis = node.is("Conv") ? 1 : static_cast<int64_t>(rank) - 1;
    const Type type = w.numbers.type();
    const auto channels = static_cast<size_t>(type.dims[static_cast<size_t>(axis)]);
    for (size_t c = 0; c < channels; ++c)
      out.scale.push_back(x.scale[0] * (w.scale.size() == 1 ? w.scale[0] : w.scale[c]));
    out.value = b.cast(sums, TN_I64);
    out.most = x.most * 127 * static_cast<double>(type.elements()) / static_cast<double>(channels);
    if (Value bias = node.input(2)) {
      std::vector<int64_t> steps = in_steps(bias, out.scale);
      if (steps.empty()) return refuse(node, "its bias is not one known number for each channel");
      for (int64_t each : steps)
        out.most = std::max(out.most, 2 * std::abs(static_cast<double>(each)));
      out.most *= 2;
      out.value = b.add(out.value, n_.numbers(steps, out.axis, rank));
    }
    known_[node.output().id] = out;
    return {};
  }

  Result<Value> zero_of(const Integers& x) {
    return edit_.constant<uint8_t>(x.value.dtype(), {}, {static_cast<uint8_t>(x.zero)});
  }

  Status add(Node node) {
    const Integers *x = known(node.input(0)), *y = known(node.input(1));
    if (!x && !y) return {};
    Integers constant;
    if (!x || !y) {
      constant = n_.constant(numbers_of(node.input(x ? 1 : 0)), node.input(x ? 1 : 0).type().dims);
      if (!constant.value) return refuse(node, "one of its inputs is float");
    }
    known_[node.output().id] = n_.add(x ? *x : constant, y ? *y : constant);
    return {};
  }

  // Max, Min, Mul and Div of integers and one known number.
  Status by_number(Node node) {
    const Integers *x = known(node.input(0)), *y = known(node.input(1));
    if (!x && !y) return {};
    const std::vector<double> found =
        x && y ? std::vector<double>() : numbers_of(node.input(x ? 1 : 0));
    const bool is_max = node.is("Max"), is_bound = is_max || node.is("Min");
    if (x && y && is_bound) return move(node);
    const double number = found.size() == 1 ? found[0] : 0;
    const bool fits = found.size() == 1 && (is_bound || (number > 0 && (x || node.is("Mul"))));
    if (!fits) return table(node);
    constexpr double kNone = std::numeric_limits<double>::infinity();
    Integers out = is_bound
                       ? n_.clip(x ? *x : *y, is_max ? number : -kNone, is_max ? kNone : number)
                       : n_.wide(x ? *x : *y);
    for (double& scale : out.scale)
      if (!is_bound) scale = node.is("Mul") ? scale * number : scale / number;
    known_[node.output().id] = out;
    return {};
  }

  Status clip(Node node) {
    const Integers* x = known(node.input(0));
    if (!x) return {};
    double low = 0, high = std::numeric_limits<double>::infinity();
    if (node.is("Clip")) {
      low = -high;
      for (uint64_t i : {1, 2}) {
        if (!node.input(i)) continue;
        const std::vector<double> bound = numbers_of(node.input(i));
        if (bound.size() != 1) return refuse(node, "computed bounds");
        (i == 1 ? low : high) = bound[0];
      }
    }
    known_[node.output().id] = n_.clip(*x, low, high);
    return {};
  }

  // The same numbers elsewhere, or some of them.
  Status move(Node node) {
    const Integers* first = nullptr;
    std::vector<Value> inputs = node.inputs();
    bool are_alike = true;
    for (uint64_t i : data_inputs(node)) {
      const Integers* x = known(inputs[i]);
      if (!x) {
        are_alike = false;
        continue;
      }
      if (!first) first = x;
      are_alike = are_alike && is_alike(*x, *first);
      inputs[i] = x->value;
    }
    if (!first) return {};
    if (!are_alike) return refuse(node, "not all of its inputs are integers of one scale");
    if (first->scale.size() > 1) return refuse(node, "it moves sums with a scale for each channel");
    for (Value v : inputs)
      if (holds_floats(v)) return refuse(node, "it reads a float constant");
    if (node.is("Pad") && first->zero != 0) return refuse(node, "its zeros are not stored as 0");
    Integers out = *first;
    Result<Node> made = added_again(edit_, node, inputs);
    if (!made.ok()) return refuse(node, made.status().message());
    out.value = made->output();
    known_[node.output().id] = out;
    return {};
  }

  static bool is_alike(const Integers& x, const Integers& y) {
    return x.table == y.table && x.zero == y.zero && x.scale == y.scale && x.value && y.value &&
           x.value.dtype() == y.value.dtype();
  }

  Status mean(Node node) {
    const Integers* x = known(node.input(0));
    if (!x) return {};
    const Type type = x->value.type();
    std::vector<int64_t> axes;
    bool keeps = true;
    if (node.is("GlobalAveragePool")) {
      for (size_t d = 2; d < type.rank(); ++d)
        axes.push_back(static_cast<int64_t>(d));
    } else {
      if (!node.input(1) || !node.input(1).is_constant()) return refuse(node, "computed axes");
      for (double axis : numbers_of(node.input(1)))
        axes.push_back(static_cast<int64_t>(axis));
      keeps = node.attr_int("keepdims", 1) != 0;
    }
    double count = 1;
    for (int64_t axis : axes) {
      const int64_t at = axis < 0 ? axis + static_cast<int64_t>(type.rank()) : axis;
      const int64_t extent = type.dims[static_cast<size_t>(at)];
      if (extent < 1) return refuse(node, "extents that are not known");
      count *= static_cast<double>(extent);
    }
    if (x->scale.size() > 1) return refuse(node, "it adds up sums with a scale for each channel");
    Integers out = n_.wide(*x);
    out.value = n_.builder().sum(out.value, axes, keeps);
    out.scale[0] /= count;
    out.most *= count;
    known_[node.output().id] = out;
    return {};
  }

  // ---- functions ----

  Status softmax(Node node) {
    const Integers* x = known(node.input(0));
    if (!x) return {};
    if (!x->is_stored()) return refuse(node, "its input is a sum that was not rounded to 8 bits");
    Integers out = n_.softmax(*x, node.attr_int("axis", -1));
    known_[node.output().id] = out;
    return {};
  }

  // What all that reads a value stores it as; nothing where they differ.
  static std::optional<Stored8> stored_behind(Value v) {
    if (v.consumer_count() != 1 || !v.consumer(0).is("QuantizeLinear")) return std::nullopt;
    return storage_of(v.consumer(0));
  }

  // Whether the function stores at the largest sums what it stores at the ends of the table.
  Result<bool> is_flat_outside(Node node, const Stored8& to, double range, double most) {
    if (most <= range) return true;
    const auto end = static_cast<float>(range), far = static_cast<float>(most);
    TN_TRY(results, values_at(ctx_, std::span(&node, 1), {-far, -end, end, far}, {4}));
    const auto* y = results.data<float>();
    auto stored = [&](int i) {
      return std::clamp(std::nearbyint(static_cast<double>(y[i]) / to.scale),
                        static_cast<double>(to.low() - to.zero),
                        static_cast<double>(to.high() - to.zero));
    };
    return stored(0) == stored(1) && stored(2) == stored(3);
  }

  Status table(Node node) {
    const Integers* x = known(node.input(0));
    if (!x || !is_pointwise_of_one(node)) return refuse(node, "it has no integer form here");
    std::vector<float> numbers;
    Integers out;
    if (!x->table.empty()) {
      out.value = x->value;
      numbers.assign(x->table.begin(), x->table.end());
    } else if (x->is_stored()) {
      out.value = n_.index_of(*x);
      const int64_t first = x->value.dtype() == TN_I8 ? -128 : 0;
      for (int64_t i = 0; i < 256; ++i)
        numbers.push_back(
            static_cast<float>(x->scale[0] * static_cast<double>(first + i - x->zero)));
    } else {
      std::optional<Stored8> to = stored_behind(node.output());
      if (!to)
        return refuse(node, "a function of a sum whose result is not rounded right behind it");
      const double range = std::max(16.0, 256 * to->scale), step = range / 2048;
      Value index = n_.rescaled(*x, step, -2048, 2047);
      out.value = n_.builder().add(index, n_.builder().number(2048, TN_I64));
      for (int i = -2048; i < 2048; ++i)
        numbers.push_back(static_cast<float>(i * step));
      const double most = x->most * *std::max_element(x->scale.begin(), x->scale.end());
      TN_TRY(same, is_flat_outside(node, *to, range, most));
      if (!same) return refuse(node, "a function of a sum that goes on outside of its table");
    }
    TN_CHECK(n_.status());
    TN_TRY(results,
           values_at(ctx_, std::span(&node, 1), numbers, {static_cast<int64_t>(numbers.size())}));
    const auto* made = results.data<float>();
    for (size_t i = 0; i < numbers.size(); ++i)
      out.table.push_back(static_cast<double>(made[i]));
    known_[node.output().id] = out;
    return {};
  }

  // ---- what is left over ----

  // Sums that float nodes or the graph's outputs still read: as int32 behind a DequantizeLinear.
  Status hand_over() {
    std::vector<Value> open = edit_.graph().outputs();
    std::unordered_set<tn_value_id> seen;
    while (!open.empty()) {
      Value v = open.back();
      open.pop_back();
      if (!v || !v.producer() || !seen.insert(v.id).second) continue;
      const Integers* x = v.producer().is("DequantizeLinear") ? nullptr : known(v);
      if (!x) {
        for (Value input : v.producer().inputs())
          open.push_back(input);
        continue;
      }
      Value real = n_.real(*x, std::string(v.name()));
      TN_CHECK(n_.status());
      const std::vector<Value> outputs = edit_.graph().outputs();
      TN_CHECK(edit_.replace(v, real));
      for (size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] == v) TN_CHECK(Status(services.edit->set_output(edit_.raw, i, real.id)));
    }
    return {};
  }

  Status erase_unused() {
    std::vector<Node> nodes = edit_.graph().nodes();
    for (size_t i = nodes.size(); i-- > 0;) {
      std::vector<Value> made = nodes[i].outputs();
      const bool used = std::any_of(made.begin(), made.end(), [](Value v) {
        return v && (v.consumer_count() > 0 || v.is_output());
      });
      if (!used) TN_CHECK(edit_.erase(nodes[i]));
    }
    return {};
  }

  tn_ctx* ctx_;
  EditView edit_;
  IntegerNodes n_;
  std::unordered_map<tn_value_id, Integers> known_;
  nlohmann::ordered_json refused_ = nlohmann::ordered_json::array();
};

}  // namespace

Result<nlohmann::ordered_json> rewrite_in_integers(tn_ctx* ctx, EditView edit) {
  Rewriting rewriting(ctx, edit);
  TN_CHECK(rewriting.run());
  return rewriting.refused();
}

}  // namespace tenon::quantizer
