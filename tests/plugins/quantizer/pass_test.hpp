// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models made through the API, data sets as npy files, passes applied and plans run.

#include <cmath>

#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {

using testing::HasSubstr;
using Floats = std::vector<float>;

class PassTest : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    tn_graph* raw = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
    model_ = OwnedGraph::take(raw);
  }
  void TearDown() override {
    model_ = {};
    result_ = {};
  }

  Floats random(size_t n, uint64_t seed, float scale = 1) {
    std::vector<double> draws(n);
    services.random->normal(seed, 0, 0, draws.data(), n);
    Floats out;
    for (double x : draws)
      out.push_back(scale * static_cast<float>(x));
    return out;
  }
  static size_t count(const std::vector<int64_t>& shape) {
    return static_cast<size_t>(element_count(shape));
  }
  // Adds a random constant.
  Value weight(EditView edit,
               std::string_view name,
               const std::vector<int64_t>& shape,
               uint64_t seed,
               float scale = 0.5) {
    auto made = edit.constant<float>(TN_F32, shape, random(count(shape), seed, scale), name);
    EXPECT_TRUE(made.ok());
    return *made;
  }
  Value node(EditView edit,
             std::string_view type,
             std::vector<Value> inputs,
             std::string_view name,
             std::vector<Attr> attrs = {}) {
    auto made = edit.add({.type = type,
                          .inputs = std::move(inputs),
                          .attrs = std::move(attrs),
                          .name = name,
                          .output_names = {name}});
    if (made.ok()) return made->output();
    ADD_FAILURE() << name << ": " << text_of(made.status());
    return {};
  }
  Value input(EditView edit, std::string_view name, std::vector<int64_t> dims) {
    auto made = edit.input(name, Type(TN_F32, std::move(dims)));
    EXPECT_TRUE(made.ok());
    return *made;
  }
  template <class Build>
  void build(Build&& body) {
    auto edit = Edit::begin(model_.get());
    ASSERT_TRUE(edit.ok());
    body(*edit);
    ASSERT_EQ(text_of(edit->commit()), "");
  }
  // Two convolutions with a residual, a pool, a mean and a classifier.
  void residual_cnn() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {2, 3, 8, 8});
      std::vector<int64_t> pads{1, 1, 1, 1}, two{2, 2};
      Attr same("pads", pads);
      Value a =
          node(edit, "Conv", {x, weight(edit, "wa", {8, 3, 3, 3}, 1), weight(edit, "ba", {8}, 2)},
               "conv_a", {same});
      Value ra = node(edit, "Relu", {a}, "relu_a");
      Value pool = node(edit, "MaxPool", {ra}, "pool", {{"kernel_shape", two}, {"strides", two}});
      Value b =
          node(edit, "Conv", {pool, weight(edit, "wb", {8, 8, 3, 3}, 3, 0.2F)}, "conv_b", {same});
      Value sum = node(edit, "Add", {b, pool}, "sum");
      Value rb = node(edit, "Relu", {sum}, "relu_b");
      Value mean = node(edit, "GlobalAveragePool", {rb}, "mean");
      Value flat = node(edit, "Flatten", {mean}, "flat");
      Value y = node(edit, "Gemm",
                     {flat, weight(edit, "wf", {8, 5}, 6), weight(edit, "bf", {5}, 7)}, "fc");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }

  // A .npy of n random samples, as the data set of field `name`.
  std::string data(std::string_view name, std::vector<int64_t> sample, size_t n, uint64_t seed) {
    sample.insert(sample.begin(), static_cast<int64_t>(n));
    return data_of_numbers(name, sample, random(count(sample), seed));
  }
  std::string data_of_numbers(std::string_view name,
                              const std::vector<int64_t>& shape,
                              const Floats& numbers) {
    std::string dims;
    for (int64_t dim : shape)
      dims += std::to_string(dim) + ", ";
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + dims + "), }";
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
    uint16_t length = static_cast<uint16_t>(header.size() + 1);
    std::string bytes = "\x93NUMPY\x01";
    bytes += '\0';
    bytes.append(reinterpret_cast<const char*>(&length), 2);
    bytes += header + "\n";
    bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
    return write(cat(name, ".npy"), bytes);
  }

  // Applies the pass to model_; the result and its report are kept. The message of a failure.
  std::string apply(std::string_view id, const json& options) {
    tn_options* given = nullptr;
    Status made(services.options->create(ctx_, &given));
    Status parsed(services.options->parse(given, str(options.dump())));
    EXPECT_TRUE(made.ok() && parsed.ok());
    StringSink report;
    tn_graph* out = nullptr;
    Status status(tenon_apply(session_, model_.get(), str(id), given, nullptr, report.get(), &out));
    services.options->release(given);
    result_ = OwnedGraph::take(out);
    report_ = report.text.empty() ? json() : json::parse(report.text);
    return text_of(std::move(status));
  }
  // Output 0 of the graph on one batch, by the reference backend.
  Floats run(const OwnedGraph& graph, const std::vector<int64_t>& shape, const Floats& numbers) {
    tn_plan* plan = nullptr;
    Status compiled(services.eval->compile(ctx_, graph.get(), nullptr, 0,
                                           str("{\"backend\": \"reference\"}"), &plan));
    EXPECT_EQ(text_of(std::move(compiled)), "");
    if (!plan) return {};
    DenseView tensor(TN_F32, shape, numbers.data());
    const DLTensor* in[] = {tensor.get()};
    Collected out(ctx_);
    EXPECT_EQ(text_of(Status(services.eval->run(plan, in, 1, &out.raw, nullptr))), "");
    services.eval->release(plan);
    return out.tensors.empty() ? Floats() : out.numbers<float>(0);
  }
  static double cosine(const Floats& a, const Floats& b) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
      ab += double{a[i]} * b[i];
      aa += double{a[i]} * a[i];
      bb += double{b[i]} * b[i];
    }
    return a.size() == b.size() ? ab / std::sqrt(aa * bb) : -2;
  }
  // "Conv <- x_dequantized, w_dequantized": what each node of this name reads.
  std::vector<std::string> reads(std::string_view name) {
    std::vector<std::string> out;
    for (Node n : result_.view().nodes()) {
      if (n.name() != name) continue;
      for (Value v : n.inputs())
        out.emplace_back(v ? v.name() : "");
    }
    return out;
  }
  size_t count_ops(std::string_view type) {
    size_t n = 0;
    for (Node node : result_.view().nodes())
      n += node.type() == type;
    return n;
  }
  std::string why(std::string_view node) {
    for (const json& one : report_["float"])
      if (one["node"] == node) return one["why"];
    return "not in the list";
  }

  OwnedGraph model_, result_;
  json report_;
};

}  // namespace tenon::test
