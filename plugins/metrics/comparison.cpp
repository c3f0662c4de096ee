// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tenon/sdk/decibels.hpp"
#include "tenon/sdk/fields.hpp"

#include "finite.hpp"

namespace tenon::metrics {
namespace {

using nlohmann::json;

constexpr int kDeepest = 16;  // nodes that are followed backwards

// Why a value's elements are no numbers to compare; empty: they are.
std::string why_not(Value value) {
  const tn_type type = value.raw_type();
  if (type.kind == TN_KIND_SEQUENCE) return "a sequence is not compared";
  if (type.kind == TN_KIND_OPTIONAL) return "an optional value is not compared";
  return is_float(type.dtype) ? "" : cat(dtype_name(type.dtype), " is not compared");
}

// What the first of the operators in front of an output that hide differences reads, where there
// is one.
std::optional<Value> before_hiding(Value value) {
  static const std::set<std::string_view> kForms{"Reshape", "Identity",  "Cast",     "Flatten",
                                                 "Squeeze", "Unsqueeze", "Transpose"};
  static const std::set<std::string_view> kHiding{"Softmax", "Sigmoid", "Hardmax", "ArgMax",
                                                  "ArgMin"};
  std::optional<Value> found;
  for (int depth = 0; depth < kDeepest; ++depth) {
    Node node = value.producer();
    if (!node || !node.domain().empty()) break;
    const bool hides = kHiding.contains(node.type());
    if (!hides && !kForms.contains(node.type())) break;
    value = node.input(0);
    if (hides) found = value;
  }
  return found;
}

// In lanes, so that it runs on vectors; sums are doubles.
template <class T>
void add_numbers(const T* xs, const T* ys, size_t n, Difference* out) {
  constexpr size_t kLanes = 8;
  double signal[kLanes] = {}, other[kLanes] = {}, dot[kLanes] = {}, noise[kLanes] = {};
  double worst[kLanes] = {};
  auto add = [&](size_t lane, T left, T right) {
    const auto x = static_cast<double>(left), y = static_cast<double>(right), d = x - y;
    signal[lane] += x * x;
    other[lane] += y * y;
    dot[lane] += x * y;
    noise[lane] += d * d;
    worst[lane] = std::fabs(d) > worst[lane] ? std::fabs(d) : worst[lane];  // NaN: see noise
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      add(lane, xs[i + lane], ys[i + lane]);
  for (; i < n; ++i)
    add(0, xs[i], ys[i]);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    out->signal += signal[lane];
    out->other += other[lane];
    out->dot += dot[lane];
    out->noise += noise[lane];
    const double most = std::isnan(noise[lane]) ? HUGE_VAL : worst[lane];
    out->max_error = std::max(out->max_error, most);
  }
}

}  // namespace

Status Difference::add(const DLTensor& a, const DLTensor& b) {
  if (!std::ranges::equal(shape_of(a), shape_of(b))) {
    auto text = [](const DLTensor& t) {
      return type_text(Type(dtype_of(t), {t.shape, t.shape + t.ndim}));
    };
    trouble = cat("shapes differ: ", text(a), " and ", text(b));
    return {};
  }
  if (dtype_of(a) == TN_F32 && dtype_of(b) == TN_F32) {
    add_numbers(data_of<const float>(a), data_of<const float>(b),
                static_cast<size_t>(element_count(a)), this);
    return {};
  }
  TN_TRY(xs, numbers_as<double>(a));
  TN_TRY(ys, numbers_as<double>(b));
  add_numbers(xs.data(), ys.data(), xs.size(), this);
  return {};
}

double Difference::ratio() const {
  if (std::isnan(noise)) return HUGE_VAL;
  return signal > 0 ? noise / signal : (noise > 0 ? HUGE_VAL : 0);
}

double Difference::cosine() const {
  double length = std::sqrt(signal) * std::sqrt(other);
  return length > 0 ? dot / length : (signal == other ? 1 : 0);
}

Comparison::Comparison(Graph a, Graph b, bool with_layers) : a_(a), b_(b) {
  for (Node node : a.nodes())
    for (Value value : node.outputs())
      consider(node, value);
  add_outputs();
  if (!with_layers) keep_ends();
}

void Comparison::keep_ends() {
  std::set<size_t> kept;
  for (Value end : a_.outputs()) {
    mark(before_hiding(end).value_or(end), &kept);
    if (auto found = row_of_.find(end.id); found != row_of_.end()) kept.insert(found->second);
  }
  std::vector<Difference> rows;
  row_of_.clear();
  for (size_t i : kept) {
    row_of_[rows_[i].in_a.id] = rows.size();
    rows.push_back(std::move(rows_[i]));
  }
  rows_ = std::move(rows);
}

// The row of a value, or of its nearest ancestors that have one, as `ancestral` goes.
void Comparison::mark(Value value, std::set<size_t>* kept, int depth) const {
  if (auto found = row_of_.find(value.id); found != row_of_.end()) {
    kept->insert(found->second);
    return;
  }
  Node node = value.producer();
  if (!node || depth > kDeepest) return;
  for (Value input : node.inputs())
    if (input) mark(input, kept, depth + 1);
}

void Comparison::consider(Node node, Value value) {
  if (!value) return;
  Value other = b_.find(value.name());
  if (!other || !why_not(value).empty() || !why_not(other).empty()) return;
  if (other.is_constant() || !other.producer()) return;
  row_of_[value.id] = rows_.size();
  rows_.push_back({std::string(value.name()), std::string(node.type()), std::string(node.name()),
                   value, other});
}

// Outputs are compared by the names that the world sees, which may differ from the values'.
void Comparison::add_outputs() {
  std::vector<Value> of_a = a_.outputs(), of_b = b_.outputs();
  for (size_t i = 0; i < of_a.size(); ++i) {
    for (size_t j = 0; j < of_b.size() && !row_of_.contains(of_a[i].id); ++j) {
      const bool is_compared = why_not(of_a[i]).empty() && why_not(of_b[j]).empty();
      if (b_.output_name(j) != a_.output_name(i) || !is_compared) continue;
      row_of_[of_a[i].id] = rows_.size();
      rows_.push_back({std::string(a_.output_name(i)), "output", "", of_a[i], of_b[j]});
    }
  }
}

// The row of a value that could be compared.
const Difference* Comparison::row_of(Value value) const {
  auto found = row_of_.find(value.id);
  bool is_compared = found != row_of_.end() && rows_[found->second].trouble.empty();
  return is_compared ? &rows_[found->second] : nullptr;
}

// Noise that a value's nearest compared ancestors already carry, where it has any.
std::optional<double> Comparison::ancestral(Value value, int depth) const {
  Node node = value.producer();
  if (!node || depth > kDeepest) return {};
  std::optional<double> worst;
  for (Value input : node.inputs()) {
    if (!input) continue;
    const Difference* row = row_of(input);
    std::optional<double> one = row ? row->ratio() : ancestral(input, depth + 1);
    if (one) worst = std::max(worst.value_or(0), *one);
  }
  return worst;
}

// Why there is no figure for output i.
std::string Comparison::why_no_figure(size_t i) const {
  const Value end = a_.outputs()[i];
  if (auto row = row_of_.find(end.id); row != row_of_.end()) return rows_[row->second].trouble;
  const std::vector<Value> others = b_.outputs();
  size_t j = 0;
  while (j < others.size() && b_.output_name(j) != a_.output_name(i))
    ++j;
  if (j == others.size()) return "the other model has no output of this name";
  const std::string why = why_not(end);
  return why.empty() ? cat("in the other model, ", why_not(others[j])) : why;
}

// What is left at each output: of what goes into a last Softmax, Sigmoid or choice of the largest,
// behind which differences no longer show, and also where only the form changes after it.
json Comparison::outputs() const {
  json all = json::array();
  std::vector<Value> ends = a_.outputs();
  for (size_t i = 0; i < ends.size(); ++i) {
    const Value value = before_hiding(ends[i]).value_or(ends[i]);
    const auto own = row_of_.find(ends[i].id);
    const bool differs = own != row_of_.end() && !rows_[own->second].trouble.empty();
    const Difference* row = row_of(value);
    std::optional<double> ratio;
    if (!differs) ratio = row ? row->ratio() : ancestral(value);
    if (!ratio && row_of(ends[i])) ratio = row_of(ends[i])->ratio();
    json one{{"name", a_.output_name(i)}, {"value", value.name()}};
    one["snr_db"] = ratio ? json(decibels(1, *ratio)) : json();
    if (!ratio) one["trouble"] = why_no_figure(i);
    all.push_back(std::move(one));
  }
  return all;
}

// The most damaging first, what could not be compared last.
json Comparison::layers() const {
  struct Line {
    double damage;
    const Difference* row;
  };
  std::vector<Line> lines;
  for (const Difference& row : rows_) {
    double own = row.ratio();
    lines.push_back({std::isinf(own) ? own : own - inherited(row.in_a), &row});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& x, const Line& y) {
    const bool is_x = x.row->trouble.empty(), is_y = y.row->trouble.empty();
    return is_x != is_y ? is_x : is_x && x.damage > y.damage;
  });
  json all = json::array();
  for (const Line& line : lines) {
    json one{{"value", line.row->name},
             {"op", line.row->op},
             {"node", line.row->node},
             {"source_snr_db", decibels(1, inherited(line.row->in_a))}};
    if (line.row->trouble.empty()) {
      one["damage"] = finite(line.damage);
      one["snr_db"] = decibels(1, line.row->ratio());
      one["cosine"] = line.row->cosine();
      one["max_error"] = finite(line.row->max_error);
    } else {
      one["damage"] = one["snr_db"] = one["cosine"] = one["max_error"] = json();
      one["trouble"] = line.row->trouble;
    }
    all.push_back(std::move(one));
  }
  return all;
}

json Comparison::report(uint64_t samples) const {
  const auto compared =
      std::ranges::count_if(rows_, [](const Difference& row) { return row.trouble.empty(); });
  json summary{{"samples", samples}, {"compared", compared}, {"outputs", outputs()}};
  for (const json& one : summary["outputs"]) {
    if (one["snr_db"].is_null()) continue;
    summary["snr_db"] = std::min(summary.value("snr_db", HUGE_VAL), one["snr_db"].get<double>());
  }
  summary["layers"] = layers();
  return summary;
}

}  // namespace tenon::metrics
