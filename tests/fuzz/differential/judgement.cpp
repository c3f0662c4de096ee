// SPDX-License-Identifier: Apache-2.0
#include "judgement.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tenon/sdk/collected.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon::fuzz {
namespace {

constexpr const char* kReference = R"({"backend": "reference", "max_value_bytes": 67108864})";
constexpr double kLargest = 1e30;  // beyond it sums overflow in one order and not in another

Result<std::vector<Tensor>> run_plan(tn_ctx* ctx,
                                     tn_plan* plan,
                                     const std::vector<Tensor>& inputs,
                                     size_t n_results) {
  std::vector<DLTensor> views;
  for (const Tensor& tensor : inputs)
    views.push_back(tensor.dl());
  std::vector<const DLTensor*> in;
  for (const DLTensor& one : views)
    in.push_back(&one);
  Collected results(ctx, n_results);
  TN_CHECK(tenon_run(plan, in.data(), in.size(), results.outputs(), nullptr));
  return Result<std::vector<Tensor>>(results.take());
}

std::vector<double> doubles(const Tensor& tensor) {
  Result<std::vector<double>> out = numbers_as<double>(tensor.dl());
  return out.ok() ? *out : std::vector<double>{};
}

bool is_finite(const Tensor& tensor) {
  if (!tensor || !is_float(dtype_of(tensor.dl()))) return true;
  std::vector<double> all = doubles(tensor);
  return std::all_of(all.begin(), all.end(), [](double x) { return std::fabs(x) < kLargest; });
}

double precision_of(uint32_t dtype) {
  return dtype == TN_BF16 ? 0x1p-7 : dtype == TN_F16 ? 0x1p-9 : 0;
}

// Multiplies what nodes give by 1 + noise, element by element.
Result<OwnedGraph> noisy(const tn_graph* graph, double noise, Random random) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->clone(graph, &raw));
  OwnedGraph out = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  for (Node node : edit.graph().nodes()) {
    for (Value value : node.outputs()) {
      Type type = value.type();
      if (!value || type.kind != TN_KIND_TENSOR || !is_float(type.dtype)) continue;
      if (TN_DTYPE_BITS(type.dtype) < 16) continue;
      Type shape(TN_F64, type.is_static() ? type.dims : std::vector<int64_t>{});
      TN_TRY(factors, Tensor::zeros(edit.ctx(), TN_F64, shape.dims));
      double loudness = std::max(noise, precision_of(type.dtype));
      for (int64_t i = 0; i < shape.elements(); ++i)
        factors.data<double>()[i] = random.one_in(2) ? 1 + loudness : 1 - loudness;
      TN_TRY(wide, edit.constant(factors));
      TN_TRY(factor, edit.op("Cast", {wide}, {{"to", any_dtype(type.dtype)}}));
      TN_TRY(product, edit.add({.type = "Mul", .inputs = {value, factor}}));
      TN_CHECK(edit.replace(value, product.output()));
      TN_CHECK(edit.set_input(product, 0, value));
    }
  }
  TN_CHECK(edit.commit());
  return Result<OwnedGraph>(std::move(out));
}

// Values that follow from one that is not finite, where backends need not agree.
std::set<std::string> unsettled(Graph graph, const std::map<std::string, Tensor>& values) {
  std::set<std::string> out;
  for (Node node : graph.nodes()) {
    bool is_wild = false;
    for (Value value : node.inputs())
      is_wild = is_wild || (value && out.count(std::string(value.name())));
    for (Value value : node.outputs())
      if (auto at = values.find(std::string(value.name())); value && at != values.end())
        is_wild = is_wild || !is_finite(at->second);
    for (Value value : node.outputs())
      if (is_wild) out.insert(std::string(value.name()));
  }
  return out;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  std::vector<double> x = doubles(a), y = doubles(b);
  if (x.size() != y.size()) return HUGE_VAL;
  double out = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (!(x[i] == y[i]))
      out = std::max(out, std::isnan(x[i] - y[i]) ? HUGE_VAL : std::fabs(x[i] - y[i]));
  return out;
}

std::string text_of(const Tensor& tensor) {
  std::string out = dtype_name(dtype_of(tensor.dl())) + "[";
  for (int64_t dim : shape_of(tensor.dl()))
    out += cat(out.back() == '[' ? "" : ", ", dim);
  return out + "]";
}

// Why a result is not what was expected, or nothing.
std::string difference(const Tensor& want, const Tensor& got, double slack) {
  if (text_of(want) != text_of(got)) return cat("expected ", text_of(want), ", got ", text_of(got));
  if (slack < 0) return "";
  std::vector<double> x = doubles(want), y = doubles(got);
  for (size_t i = 0; i < x.size(); ++i)
    if (!(std::fabs(x[i] - y[i]) <= slack))
      return cat("element ", i, ": expected ", x[i], ", got ", y[i], ", tolerance ", slack);
  return "";
}

}  // namespace

Result<std::vector<Tensor>> Judge::run(const tn_graph* graph,
                                       const std::vector<Tensor>& inputs,
                                       std::string_view options) const {
  tn_plan* plan = nullptr;
  TN_CHECK(tenon_compile(session_, graph, str(options), &plan));
  Result<std::vector<Tensor>> out = run_plan(ctx_, plan, inputs, Graph{graph}.outputs().size());
  services.eval->release(plan);
  return out;
}

Result<Judge::Values> Judge::values_of(const tn_graph* graph,
                                       const std::vector<Tensor>& inputs) const {
  std::vector<Value> taken;
  std::vector<tn_value_id> taps;
  for (Node node : Graph{graph}.nodes())
    for (Value value : node.outputs())
      if (value && value.type().kind == TN_KIND_TENSOR) {
        taken.push_back(value);
        taps.push_back(value.id);
      }
  tn_plan* plan = nullptr;
  TN_CHECK(services.eval->compile(ctx_, graph, taps.data(), taps.size(), str(kReference), &plan));
  size_t n_outputs = Graph{graph}.outputs().size();
  auto all = run_plan(ctx_, plan, inputs, n_outputs + taps.size());
  services.eval->release(plan);
  if (!all.ok()) return std::move(all).status();
  Values out;
  for (size_t i = 0; i < taken.size(); ++i)
    out[std::string(taken[i].name())] = (*all)[n_outputs + i];
  std::vector<Value> entering = Graph{graph}.inputs();
  for (size_t i = 0; i < entering.size(); ++i)
    out[std::string(entering[i].name())] = inputs[i];
  return Result<Values>(std::move(out));
}

Result<std::vector<Expected>> Judge::expect(const tn_graph* graph,
                                            const std::vector<Tensor>& inputs,
                                            uint64_t seed,
                                            int n_noisy,
                                            double loudness) const {
  TN_TRY(want, run(graph, inputs, kReference));
  TN_TRY(values, values_of(graph, inputs));
  std::set<std::string> wild = unsettled(Graph{graph}, values);
  std::vector<Value> outputs = Graph{graph}.outputs();
  std::vector<Expected> out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    bool is_settled = want[i] && outputs[i].type().kind == TN_KIND_TENSOR &&
                      !wild.count(std::string(outputs[i].name())) && !doubles(want[i]).empty();
    out.push_back({want[i], is_settled ? 0.0 : -1.0});
  }
  for (int k = 0; k < n_noisy; ++k) {
    TN_TRY(other, noisy(graph, mode_.noise * loudness, Random(seed * 977 + k)));
    Result<std::vector<Tensor>> got = run(other.get(), inputs, kReference);
    if (!got.ok()) return std::move(got).status().in("with noise");
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].slack >= 0)
        out[i].slack = std::max(out[i].slack, largest_difference(want[i], (*got)[i]));
  }
  for (Expected& one : out) {
    if (one.slack < 0) continue;
    double size = 0;
    for (double x : doubles(one.tensor))
      size = std::max(size, std::fabs(x));
    bool is_real = is_float(dtype_of(one.tensor.dl()));
    double tolerance = std::max(mode_.tolerance, 2 * precision_of(dtype_of(one.tensor.dl())));
    bool is_settled = is_real ? one.slack < 0.1 * (1 + size) : one.slack == 0;
    one.slack = !is_settled ? -1 : is_real ? 6 * one.slack + tolerance * (1 + size) : 0;
  }
  return Result<std::vector<Expected>>(std::move(out));
}

Verdict Judge::judge(const tn_graph* graph,
                     const std::vector<Tensor>& inputs,
                     uint64_t seed) const {
  Verdict out;
  std::string options = cat(R"({"backend": ")", backend_, R"(", "precision": ")", mode_.precision,
                            R"(", "max_value_bytes": 67108864})");
  Result<std::vector<Tensor>> got = run(graph, inputs, options);
  // What differs is asked again with more and louder noise: a step that rounding may cross.
  for (auto [n_noisy, loudness] : {std::pair{3, 1.0}, std::pair{16, 16.0}, std::pair{32, 128.0}}) {
    Result<std::vector<Expected>> want = expect(graph, inputs, seed, n_noisy, loudness);
    if (!want.ok()) return out;
    out = {.ran = true, .n_outputs = want->size()};
    if (!got.ok()) {
      out.finding = cat(backend_, " fails: ", got.status().message());
      return out;
    }
    for (size_t i = 0; i < want->size(); ++i) {
      const Expected& one = (*want)[i];
      if (!one.tensor || !(*got)[i]) continue;
      if (Graph{graph}.outputs()[i].type().kind != TN_KIND_TENSOR) continue;
      out.n_settled += one.slack >= 0;
      std::string why = difference(one.tensor, (*got)[i], one.slack);
      if (!why.empty() && out.finding.empty())
        out.finding = cat("output ", Graph{graph}.output_name(i), ": ", why);
    }
    if (out.finding.empty()) return out;
  }
  return out;
}

Result<Judge::Small> Judge::minimise(const tn_graph* graph,
                                     const std::vector<Tensor>& inputs,
                                     uint64_t seed) const {
  TN_TRY(values, values_of(graph, inputs));
  std::vector<tn_node_id> nodes;
  for (Node node : Graph{graph}.nodes())
    nodes.push_back(node.id);
  Small best;
  auto still = [&](const std::vector<tn_node_id>& some) {
    tn_graph* raw = nullptr;
    if (!Status(services.graph->extract(graph, some.data(), some.size(), &raw)).ok()) return false;
    Small one{OwnedGraph::take(raw), {}, {}};
    for (Value value : one.graph.view().inputs()) {
      auto at = values.find(std::string(value.name()));
      if (at == values.end() || !at->second) return false;
      one.inputs.push_back(at->second);
    }
    one.finding = judge(raw, one.inputs, seed).finding;
    if (one.finding.empty()) return false;
    best = std::move(one);
    return true;
  };
  still(nodes);
  // Leaves out halves, quarters and so on (delta debugging; Zeller, Hildebrandt, TSE 2002).
  for (size_t part = std::max<size_t>(nodes.size() / 2, 1); part > 0; part /= 2) {
    for (size_t at = 0; at < nodes.size() && nodes.size() > 1;) {
      std::vector<tn_node_id> fewer = nodes;
      auto from = fewer.begin() + static_cast<ptrdiff_t>(at);
      fewer.erase(from, from + static_cast<ptrdiff_t>(std::min(part, fewer.size() - at)));
      if (!fewer.empty() && still(fewer)) {
        nodes = fewer;
      } else {
        at += part;
      }
    }
  }
  return Result<Small>(std::move(best));
}

}  // namespace tenon::fuzz
