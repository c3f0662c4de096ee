// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a graph given as text on the reference and on onednn, and says how far apart they are.

#include <cmath>
#include <random>

#include "tenon/half.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::test {

class BothBackends : public PluginTest {
 protected:
  struct Outcome {
    std::vector<std::vector<double>> outputs;
    json plan;
    std::string error;
  };

  OwnedGraph parse(const std::string& text) {
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "") << text;
    return OwnedGraph::take(raw);
  }

  static std::vector<double> numbers_of(const Tensor& tensor) {
    DLTensor t = tensor.dl();
    std::vector<double> out;
    for (int64_t i = 0, n = element_count(t); i < n; ++i)
      out.push_back(number(t, i));
    return out;
  }

  // Inputs are seeded; integers lie in -3..3, reals in -2..2.
  Tensor input_of(Value value, std::mt19937& random) {
    Result<Tensor> made = Tensor::zeros(ctx_, value.dtype(), value.type().dims);
    DLTensor t = made->dl();
    std::uniform_real_distribution<double> reals(-2, 2);
    std::uniform_int_distribution<int64_t> integers(-3, 3);
    for (int64_t i = 0, n = element_count(t); i < n; ++i)
      set_number(t, i, reals(random), integers(random));
    return *made;
  }

  Outcome run(const OwnedGraph& graph, const json& options, uint32_t seed = 7) {
    Outcome outcome;
    tn_plan* plan = nullptr;
    outcome.error =
        text_of(Status(tenon_compile(session_, graph.get(), str(options.dump()), &plan)));
    if (!outcome.error.empty()) return outcome;
    std::mt19937 random(seed);
    std::vector<Tensor> inputs;
    std::vector<DLTensor> views;
    for (Value value : graph.view().inputs())
      inputs.push_back(input_of(value, random));
    for (const Tensor& input : inputs)
      views.push_back(input.dl());
    std::vector<const DLTensor*> in;
    for (const DLTensor& view : views)
      in.push_back(&view);
    Collected out(ctx_);
    outcome.error = text_of(Status(tenon_run(plan, in.data(), in.size(), &out.raw, nullptr)));
    for (size_t i = 0; outcome.error.empty() && i < out.tensors.size(); ++i)
      outcome.outputs.push_back(numbers_of(out.tensors[i]));
    StringSink sink;
    EXPECT_EQ(text_of(Status(services.eval->describe(plan, sink.get()))), "");
    outcome.plan = json::parse(sink.text);
    services.eval->release(plan);
    return outcome;
  }

  // Expects onednn to take every node and to agree within `tolerance` of the largest magnitude.
  void expect_same(const std::string& text, double tolerance = 2e-5) {
    OwnedGraph graph = parse(text);
    Outcome expected = run(graph, {{"backend", "reference"}});
    Outcome got = run(graph, {{"backend", "onednn"}, {"threads", 2}});
    ASSERT_EQ(expected.error, "");
    ASSERT_EQ(got.error, "");
    EXPECT_EQ(got.plan["fallback_nodes"], json::array());
    ASSERT_EQ(got.outputs.size(), expected.outputs.size());
    for (size_t k = 0; k < expected.outputs.size(); ++k)
      expect_near(got.outputs[k], expected.outputs[k], tolerance);
  }

  static void expect_near(const std::vector<double>& got,
                          const std::vector<double>& expected,
                          double tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    double most = 1;
    for (double x : expected)
      most = std::isfinite(x) ? std::max(most, std::abs(x)) : most;
    for (size_t i = 0; i < got.size(); ++i) {
      bool both_nan = std::isnan(got[i]) && std::isnan(expected[i]);
      if (got[i] == expected[i] || both_nan) continue;
      ASSERT_NEAR(got[i], expected[i], most * tolerance) << "at " << i;
    }
  }

 private:
  struct Bfloat {
    explicit Bfloat(double number) : bits(bfloat_of_float(static_cast<float>(number))) {}
    explicit operator double() const { return double{float_of_bfloat(bits)}; }
    uint16_t bits;
  };
  template <class F>
  static void with_type(const DLTensor& t, const F& f) {
    switch (dtype_of(t)) {
      case TN_F32:
        return f(data_of<float>(t));
      case TN_F64:
        return f(data_of<double>(t));
      case TN_F16:
        return f(data_of<_Float16>(t));
      case TN_BF16:
        return f(data_of<Bfloat>(t));
      case TN_I64:
        return f(data_of<int64_t>(t));
      case TN_I32:
        return f(data_of<int32_t>(t));
      case TN_I16:
        return f(data_of<int16_t>(t));
      case TN_I8:
        return f(data_of<int8_t>(t));
      case TN_U16:
        return f(data_of<uint16_t>(t));
      case TN_U32:
        return f(data_of<uint32_t>(t));
      case TN_U64:
        return f(data_of<uint64_t>(t));
      case TN_BOOL:
        return f(data_of<bool>(t));
      case TN_U8:
        return f(data_of<uint8_t>(t));
      default:
        ADD_FAILURE() << "no numbers of type " << dtype_name(dtype_of(t));
    }
  }
  static double number(const DLTensor& t, int64_t i) {
    double out = 0;
    with_type(t, [&](auto* data) { out = static_cast<double>(data[i]); });
    return out;
  }
  static void set_number(const DLTensor& t, int64_t i, double real, int64_t integer) {
    bool is_real = is_float(dtype_of(t));
    with_type(t, [&](auto* data) {
      using T = std::remove_pointer_t<decltype(data)>;
      if constexpr (std::is_same_v<T, bool>) {
        data[i] = integer > 0;
      } else {
        data[i] = is_real ? static_cast<T>(real) : static_cast<T>(integer);
      }
    });
  }
};

}  // namespace tenon::test
