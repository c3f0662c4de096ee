// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs as text, passes applied, numbers in fp64 on the backend "reference".

#include <cmath>
#include <random>

#include "tenon/role/op.h"

#include "plugins/plugin_session.hpp"

namespace tenon::test {

using Numbers = std::vector<double>;

// Random numbers, and what takes or gives sequences and optional values: not tensors of numbers.
inline bool is_special(const tn_op& row) {
  std::string_view type = view(row.type);
  bool has_sequences = type.find("Sequence") != std::string_view::npos && type != "ReverseSequence";
  return (row.traits & TN_OP_RANDOM) != 0 || has_sequences ||
         type.find("Optional") != std::string_view::npos;
}

class AutodiffTest : public PluginTest {
 protected:
  OwnedGraph parse(const std::string& text) {
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "");
    return OwnedGraph::take(raw);
  }
  // The error, and the new graph where there is none.
  std::string apply(const tn_graph* graph,
                    const std::string& pass,
                    const json& options,
                    OwnedGraph& out) {
    if (!graph) return "there is no graph";
    StringSink sink;
    tn_graph* made = nullptr;
    tn_options* parsed = nullptr;
    EXPECT_EQ(text_of(Status(services.options->create(ctx_, &parsed))), "");
    if (!options.is_null()) {
      EXPECT_EQ(text_of(Status(services.options->parse(parsed, str(options.dump())))), "");
    }
    std::string failed = text_of(
        Status(tenon_apply(session_, graph, str(pass), parsed, nullptr, sink.get(), &made)));
    services.options->release(parsed);
    if (failed.empty()) out = OwnedGraph::take(made);
    return failed;
  }
  OwnedGraph applied(const OwnedGraph& graph, const std::string& pass, const json& options = {}) {
    OwnedGraph out;
    EXPECT_EQ(apply(graph.get(), pass, options, out), "");
    return out;
  }
  std::string refused(const std::string& text, const std::string& pass, const json& options = {}) {
    OwnedGraph graph = parse(text), out;
    return apply(graph.get(), pass, options, out);
  }

  // Runs with fp64 inputs; other types are rounded.
  Status run(const tn_graph* graph, const std::vector<Numbers>& inputs, std::vector<Numbers>& out) {
    tn_plan* plan = nullptr;
    TN_CHECK(tenon_compile(session_, graph, str(R"({"backend": "reference"})"), &plan));
    Status status = run_plan(plan, graph, inputs, out);
    services.eval->release(plan);
    return status;
  }
  Status run_plan(tn_plan* plan,
                  const tn_graph* graph,
                  const std::vector<Numbers>& inputs,
                  std::vector<Numbers>& out) {
    std::vector<Tensor> tensors;
    std::vector<Value> values = Graph{graph}.inputs();
    for (size_t i = 0; i < values.size(); ++i) {
      TN_TRY(tensor, tensor_of(values[i].type(), inputs[i]));
      tensors.push_back(tensor);
    }
    std::vector<DLTensor> views;
    for (const Tensor& tensor : tensors)
      views.push_back(tensor.dl());
    std::vector<const DLTensor*> pointers;
    for (const DLTensor& view : views)
      pointers.push_back(&view);
    Collected results(ctx_);
    TN_CHECK(tenon_run(plan, pointers.data(), pointers.size(), &results.raw, nullptr));
    out.clear();
    for (const Tensor& tensor : results.tensors)
      out.push_back(numbers_in(tensor));
    return {};
  }
  std::vector<Numbers> results(const OwnedGraph& graph, const std::vector<Numbers>& inputs) {
    std::vector<Numbers> out;
    if (graph.get()) {
      EXPECT_EQ(text_of(run(graph.get(), inputs, out)), "");
    }
    return out;
  }

  // An open size, of which there is at most one, is as the numbers need it.
  Result<Tensor> tensor_of(const Type& type, const Numbers& numbers) {
    std::vector<int64_t> dims = type.dims;
    int64_t known = 1;
    for (int64_t dim : dims)
      known *= dim < 0 ? 1 : dim;
    for (int64_t& dim : dims)
      if (dim < 0) dim = static_cast<int64_t>(numbers.size()) / known;
    TN_TRY(tensor, Tensor::zeros(ctx_, type.dtype, dims));
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (type.dtype == TN_F64)
        tensor.data<double>()[i] = numbers[i];
      else if (type.dtype == TN_F32)
        tensor.data<float>()[i] = static_cast<float>(numbers[i]);
      else if (type.dtype == TN_BOOL)
        tensor.data<uint8_t>()[i] = numbers[i] > 0;
      else if (type.dtype == TN_I64)
        tensor.data<int64_t>()[i] = std::lround(numbers[i]);
      else if (TN_DTYPE_BITS(type.dtype) == 8)
        tensor.data<int8_t>()[i] = static_cast<int8_t>(std::lround(std::fabs(numbers[i])));
      else if (TN_DTYPE_BITS(type.dtype) == 32)
        tensor.data<int32_t>()[i] = static_cast<int32_t>(std::lround(std::fabs(numbers[i])));
      else
        return unsupported(cat("a test's input of ", dtype_name(type.dtype)));
    }
    return Result<Tensor>(std::move(tensor));
  }
  static Numbers numbers_in(const Tensor& tensor) {
    DLTensor t = tensor.dl();
    Numbers out;
    for (int64_t i = 0, n = element_count(t); i < n; ++i) {
      if (dtype_of(t) == TN_F64)
        out.push_back(data_of<double>(t)[i]);
      else if (dtype_of(t) == TN_F32)
        out.push_back(double{data_of<float>(t)[i]});
      else if (dtype_of(t) == TN_I64)
        out.push_back(double(data_of<int64_t>(t)[i]));
      else if (dtype_of(t) == TN_I32)
        out.push_back(data_of<int32_t>(t)[i]);
      else if (TN_DTYPE_BITS(dtype_of(t)) == 8)
        out.push_back(data_of<uint8_t>(t)[i]);
    }
    return out;
  }
  static Numbers random_numbers(int64_t n, std::mt19937& random, double lo = -2, double hi = 2) {
    std::uniform_real_distribution<double> number(lo, hi);
    Numbers out;
    for (int64_t i = 0; i < n; ++i)
      out.push_back(number(random));
    return out;
  }
};

}  // namespace tenon::test
