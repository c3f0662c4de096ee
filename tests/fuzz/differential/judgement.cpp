// SPDX-License-Identifier: Apache-2.0
#include "judgement.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tenon/sdk/collected.hpp"
#include "tenon/sdk/number.hpp"

#include "noise.hpp"

namespace tenon::fuzz {
namespace {

constexpr const char* kReference = R"({"backend": "reference", "max_value_bytes": 67108864})";
constexpr int kRuns = 3;
constexpr uint64_t kMostThreads = 4;
// Louder noise, of each element, would explain any result.
constexpr double kMostNoise = 0x1p-6;
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

bool have_same_bits(const Tensor& a, const Tensor& b) {
  if (!a || !b) return !a && !b;
  DLTensor x = a.dl(), y = b.dl();
  int64_t n = element_count(x);
  return n == element_count(y) &&
         std::memcmp(data_of<const char>(x), data_of<const char>(y), bytes_of(dtype_of(x), n)) == 0;
}

// Several runs of one plan, whose results have the same bits: whatever the memory held that they
// use, and in whatever order threads came to their parts.
Result<std::vector<Tensor>> run_often(
    tn_ctx* ctx, tn_plan* plan, const std::vector<Tensor>& inputs, size_t n_results, int times) {
  TN_TRY(first, run_plan(ctx, plan, inputs, n_results));
  for (int again = 1; again < times; ++again) {
    TN_TRY(next, run_plan(ctx, plan, inputs, n_results));
    for (size_t i = 0; i < n_results; ++i)
      if (!have_same_bits(first[i], next[i]))
        return Status(TN_INTERNAL, cat("two runs differ in output ", i));
  }
  return Result<std::vector<Tensor>>(std::move(first));
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

// Values that follow from one that is not finite, where backends need not agree.
std::set<std::string> undetermined(Graph graph, const std::map<std::string, Tensor>& values) {
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

// What noise did to a result so far: at each element, of each the largest.
void widen(std::vector<double>& moved, const Tensor& calm, const Tensor& noisy) {
  std::vector<double> x = doubles(calm), y = doubles(noisy);
  for (size_t i = 0; i < moved.size(); ++i) {
    double by = x.size() == y.size() ? std::fabs(x[i] - y[i]) : HUGE_VAL;
    if (x.size() == y.size() && x[i] == y[i]) by = 0;
    moved[i] = std::max(moved[i], std::isnan(by) ? HUGE_VAL : by);
  }
}

// How far each element of a result may be off; nothing where the result is not decided. Real
// numbers share what noise did to any of them, since rounding is of another sign everywhere.
// Integers and truth values are right or wrong, each by itself, unless noise moved it.
std::vector<double> slack_of(const Tensor& want,
                             const std::vector<double>& moved,
                             double tolerance) {
  std::vector<double> numbers = doubles(want), out(moved.size(), 0);
  if (numbers.empty() || moved.empty()) return {};
  double most = *std::max_element(moved.begin(), moved.end()), size = 0;
  for (double x : numbers)
    size = std::max(size, std::fabs(x));
  if (is_float(dtype_of(want.dl()))) {
    if (most >= 0.1 * (1 + size)) return {};
    std::fill(out.begin(), out.end(), 6 * most + tolerance * (1 + size));
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i)
    if (moved[i] > 0) out[i] = HUGE_VAL;
  bool is_determined = std::count(out.begin(), out.end(), 0) > 0;
  return is_determined ? out : std::vector<double>{};
}

std::string text_of(const Tensor& tensor) {
  std::string out = dtype_name(dtype_of(tensor.dl())) + "[";
  for (int64_t dim : shape_of(tensor.dl()))
    out += cat(out.back() == '[' ? "" : ", ", dim);
  return out + "]";
}

std::map<std::string, double> largest_of(const std::map<std::string, Tensor>& values) {
  std::map<std::string, double> out;
  for (const auto& [name, tensor] : values)
    for (double x : tensor ? doubles(tensor) : std::vector<double>{})
      if (std::fabs(x) < kLargest) out[name] = std::max(out[name], std::fabs(x));
  return out;
}

// Why a result is not what was expected, or nothing.
std::string difference(const Expected& want, const Tensor& got) {
  if (text_of(want.tensor) != text_of(got))
    return want.slack.empty() ? "" : cat("expected ", text_of(want.tensor), ", got ", text_of(got));
  std::vector<double> x = doubles(want.tensor), y = doubles(got);
  for (size_t i = 0; i < want.slack.size(); ++i)
    if (!(std::fabs(x[i] - y[i]) <= want.slack[i]) && x[i] != y[i])
      return cat("element ", i, ": expected ", x[i], ", got ", y[i], ", tolerance ", want.slack[i]);
  return "";
}

}  // namespace

Result<std::vector<Tensor>> Judge::run(const tn_graph* graph,
                                       const std::vector<Tensor>& inputs,
                                       std::string_view options,
                                       int times) const {
  tn_plan* plan = nullptr;
  TN_CHECK(tenon_compile(session_, graph, str(options), &plan));
  Result<std::vector<Tensor>> out =
      run_often(ctx_, plan, inputs, Graph{graph}.outputs().size(), times);
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
                                            const Doubt& doubt) const {
  TN_TRY(want, run(graph, inputs, kReference));
  TN_TRY(values, values_of(graph, inputs));
  std::set<std::string> wild = undetermined(Graph{graph}, values);
  std::vector<Value> outputs = Graph{graph}.outputs();
  std::vector<std::vector<double>> moved(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (want[i] && outputs[i].type().kind == TN_KIND_TENSOR &&
        !wild.count(std::string(outputs[i].name())))
      moved[i].resize(doubles(want[i]).size());
  Noise noise{.size = std::min(mode_.noise * doubt.loudness, kMostNoise),
              .is_deep = doubt.is_deep,
              .is_open = doubt.is_open,
              .largest = largest_of(values)};
  for (int k = 0; k < doubt.n_noisy + (doubt.is_deep ? 1 : 0); ++k) {
    Random random(seed * 977 + static_cast<uint64_t>(k));
    noise.only_flushes = k == doubt.n_noisy;
    Result<std::vector<Tensor>> got = invalid("not run");
    if (auto other = noisy(graph, noise, random); other.ok())
      got = run(other->get(), inputs, kReference);
    if (!got.ok() && noise.is_deep) {  // a size that follows from a number which moved
      TN_TRY(shallow, noisy(graph, {.size = noise.size}, random));
      got = run(shallow.get(), inputs, kReference);
    }
    if (!got.ok()) return std::move(got).status().in("with noise");
    for (size_t i = 0; i < outputs.size(); ++i)
      widen(moved[i], want[i], (*got)[i]);
  }
  std::vector<Expected> out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    double own = moved[i].empty() ? 0 : precision_of(dtype_of(want[i].dl()));
    out.push_back({want[i], slack_of(want[i], moved[i], std::max(mode_.tolerance, 2 * own))});
  }
  return Result<std::vector<Expected>>(std::move(out));
}

Verdict Judge::judge(const tn_graph* graph,
                     const std::vector<Tensor>& inputs,
                     uint64_t seed) const {
  Verdict out;
  std::string options =
      cat(R"({"backend": ")", backend_, R"(", "precision": ")", mode_.precision,
          R"(", "threads": )", 1 + seed % kMostThreads, R"(, "max_value_bytes": 67108864})");
  Result<std::vector<Tensor>> got = run(graph, inputs, options, kRuns);
  for (const Doubt& doubt : kDoubts) {
    Result<std::vector<Expected>> want = expect(graph, inputs, seed, doubt);
    if (!want.ok()) return out;
    out = {.ran = true, .n_outputs = want->size()};
    if (!got.ok()) {
      out.finding = cat(backend_, " fails: ", got.status().text());
      return out;
    }
    for (size_t i = 0; i < want->size(); ++i) {
      const Expected& one = (*want)[i];
      if (!one.tensor || !(*got)[i]) continue;
      if (Graph{graph}.outputs()[i].type().kind != TN_KIND_TENSOR) continue;
      out.n_decided += !one.slack.empty();
      std::string why = difference(one, (*got)[i]);
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
