// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two models layer by layer: the values that have the same name in both, on the same samples.

#include <limits>
#include <optional>
#include <set>

#include "tenon/cxx/batches.hpp"

namespace tenon::cxx {

struct CompareChoice {
  RunChoice run;
  RunChoice other_run;  // of the second model
  uint64_t batch = 0;
  uint64_t limit = 64;
};

// Noise to signal as signal to noise.
inline double decibels(double ratio) {
  constexpr double kEqual = 200;  // what equal values count as
  return ratio > 0 ? std::clamp(-10 * std::log10(ratio), -kEqual, kEqual) : kEqual;
}

// Sums over all elements of one value.
struct Difference {
  std::string name, op, node;
  tn_value_id in_a = 0, in_b = 0;
  double signal = 0, noise = 0, dot = 0, other = 0, max_error = 0;
  int64_t elements = 0;
  std::string trouble = {};  // shapes that differ

  void add(const Tensor& a, const Tensor& b) {
    if (!std::ranges::equal(a.shape(), b.shape())) {
      trouble = cat("shapes differ: ", a.text(), " and ", b.text());
      return;
    }
    for (int64_t i = 0; i < a.size(); ++i) {
      double x = a.at(i);
      double y = b.at(i);
      signal += x * x;
      other += y * y;
      dot += x * y;
      noise += (x - y) * (x - y);
      max_error = std::max(max_error, std::isnan(x - y) ? HUGE_VAL : std::fabs(x - y));
    }
    elements += a.size();
  }
  // Noise to signal, the figure behind the decibels.
  double ratio() const {
    if (std::isnan(noise)) return HUGE_VAL;
    return signal > 0 ? noise / signal : (noise > 0 ? HUGE_VAL : 0);
  }
  double snr_db() const { return decibels(ratio()); }
  double cosine() const {
    double length = std::sqrt(signal) * std::sqrt(other);
    return length > 0 ? dot / length : (signal == other ? 1 : 0);
  }
};

class Comparison {
 public:
  Comparison(const Model& a, const Model& b) : a_(a), b_(b) {
    const tn_host_graph& graphs = a.services();
    for (uint64_t i = 0; i < graphs.count(a.get(), TN_LIST_NODES); ++i) {
      tn_node_id node = graphs.node_at(a.get(), i);
      for (uint64_t out = 0; out < graphs.io_count(a.get(), node, TN_LIST_OUTPUTS); ++out)
        consider(node, graphs.io_at(a.get(), node, TN_LIST_OUTPUTS, out));
    }
    add_outputs();
    if (rows_.empty())
      invalid("compare: expected values of the same name in both models, got none");
  }

  Json run(const Dataset& data, const CompareChoice& choice) {
    std::vector<tn_value_id> taps_a;
    std::vector<tn_value_id> taps_b;
    for (const Difference& row : rows_) {
      taps_a.push_back(row.in_a);
      taps_b.push_back(row.in_b);
    }
    const Session& session = *a_.session();
    Batches batches(a_, data, choice.batch, choice.limit);
    Plan plan_a(a_, compile_options(session, choice.run), taps_a);
    Plan plan_b(b_, compile_options(session, choice.other_run), taps_b);
    Progress progress(session, "compare", batches.samples());
    for (uint64_t i = 0; i < batches.count(); ++i) {
      session.stop_if_cancelled();
      Batches::Batch batch = batches.at(i);
      std::vector<Tensor> of_a = batches.cut(plan_a.run(batch.inputs), batch.samples);
      std::vector<Tensor> of_b = batches.cut(plan_b.run(batch.inputs), batch.samples);
      const size_t skip_a = of_a.size() - rows_.size();
      const size_t skip_b = of_b.size() - rows_.size();
      for (size_t row = 0; row < rows_.size(); ++row)
        rows_[row].add(of_a[skip_a + row], of_b[skip_b + row]);
      progress.update(i * batches.batch() + static_cast<uint64_t>(batch.samples));
    }
    return report(batches.samples());
  }

 private:
  void consider(tn_node_id node, tn_value_id value) {
    const tn_host_graph& graphs = a_.services();
    if (!value) return;
    Port port = a_.port_of(value);
    tn_value_id other = graphs.find_value(b_.get(), str(port.name));
    if (!other || !is_float(port.dtype) || b_.port_of(other).dtype != port.dtype) return;
    if (graphs.constant(b_.get(), other) || !graphs.producer(b_.get(), other, nullptr)) return;
    tn_str domain{};
    tn_str type{};
    check(graphs.node_op(a_.get(), node, &domain, &type));
    row_of_[value] = rows_.size();
    rows_.push_back({port.name, std::string(view(type)),
                     std::string(view(graphs.node_name(a_.get(), node))), value, other});
  }
  // Outputs are compared by the names that the world sees, which may differ from the values'.
  void add_outputs() {
    const tn_host_graph& graphs = a_.services();
    std::vector<Port> of_b = b_.outputs();
    std::vector<Port> of_a = a_.outputs();
    for (size_t i = 0; i < of_a.size(); ++i) {
      tn_value_id value = graphs.value_at(a_.get(), TN_LIST_OUTPUTS, i, 0);
      for (size_t j = 0; j < of_b.size() && !row_of_.contains(value); ++j) {
        if (of_b[j].name != of_a[i].name || !is_float(of_a[i].dtype)) continue;
        row_of_[value] = rows_.size();
        rows_.push_back(
            {of_a[i].name, "output", "", value, graphs.value_at(b_.get(), TN_LIST_OUTPUTS, j, 0)});
      }
    }
  }
  // The row of a value that could be compared.
  const Difference* row_of(tn_value_id value) const {
    auto found = row_of_.find(value);
    bool is_compared = found != row_of_.end() && rows_[found->second].trouble.empty();
    return is_compared ? &rows_[found->second] : nullptr;
  }
  // Noise that a value's nearest compared ancestors already carry, where it has any.
  std::optional<double> ancestral(tn_value_id value, int depth = 0) const {
    const tn_host_graph& graphs = a_.services();
    tn_node_id node = graphs.producer(a_.get(), value, nullptr);
    if (!node || depth > 16) return {};
    std::optional<double> worst;
    for (uint64_t i = 0; i < graphs.io_count(a_.get(), node, TN_LIST_INPUTS); ++i) {
      tn_value_id input = graphs.io_at(a_.get(), node, TN_LIST_INPUTS, i);
      if (!input) continue;
      const Difference* row = row_of(input);
      std::optional<double> one = row ? row->ratio() : ancestral(input, depth + 1);
      if (one) worst = std::max(worst.value_or(0), *one);
    }
    return worst;
  }
  double inherited(tn_value_id value) const { return ancestral(value).value_or(0); }

  // What is left at each output: of what goes into a last Softmax, Sigmoid or choice of the
  // largest, behind which differences no longer show, and also where only the form changes after
  // it.
  Json outputs() const {
    const tn_host_graph& graphs = a_.services();
    Json all = Json::array();
    std::vector<Port> ports = a_.outputs();
    for (size_t i = 0; i < ports.size(); ++i) {
      tn_value_id end = graphs.value_at(a_.get(), TN_LIST_OUTPUTS, i, 0);
      const tn_value_id value = before_hiding(end).value_or(end);
      const Difference* row = row_of(value);
      std::optional<double> ratio = row ? row->ratio() : ancestral(value);
      if (!ratio && row_of(end)) ratio = row_of(end)->ratio();
      Json one{{"name", ports[i].name}, {"value", a_.port_of(value).name}};
      one["snr_db"] = ratio ? Json(decibels(*ratio)) : Json();
      all.push_back(std::move(one));
    }
    return all;
  }
  // What the first of the hiding operators in front of an output reads, where there is one.
  std::optional<tn_value_id> before_hiding(tn_value_id value) const {
    static const std::set<std::string_view> kForms{"Reshape", "Identity",  "Cast",     "Flatten",
                                                   "Squeeze", "Unsqueeze", "Transpose"};
    static const std::set<std::string_view> kHiding{"Softmax", "Sigmoid", "Hardmax", "ArgMax",
                                                    "ArgMin"};
    const tn_host_graph& graphs = a_.services();
    std::optional<tn_value_id> found;
    for (int depth = 0; depth < 16; ++depth) {
      tn_node_id node = graphs.producer(a_.get(), value, nullptr);
      tn_str domain{};
      tn_str type{};
      if (!node) break;
      check(graphs.node_op(a_.get(), node, &domain, &type));
      if (!view(domain).empty()) break;
      const bool hides = kHiding.contains(view(type));
      if (!hides && !kForms.contains(view(type))) break;
      value = graphs.io_at(a_.get(), node, TN_LIST_INPUTS, 0);
      if (hides) found = value;
    }
    return found;
  }
  Json report(uint64_t samples) const {
    struct Line {
      double damage;
      const Difference* row;
    };
    std::vector<Line> lines;
    for (const Difference& row : rows_) {
      double own = row.ratio();
      lines.push_back({std::isinf(own) ? own : own - inherited(row.in_a), &row});
    }
    std::stable_sort(lines.begin(), lines.end(),
                     [](const Line& x, const Line& y) { return x.damage > y.damage; });
    Json all = Json::array();
    for (const Line& line : lines) {
      Json one{
          {"value", line.row->name},      {"op", line.row->op},
          {"node", line.row->node},       {"source_snr_db", decibels(inherited(line.row->in_a))},
          {"damage", line.damage},        {"snr_db", line.row->snr_db()},
          {"cosine", line.row->cosine()}, {"max_error", line.row->max_error}};
      if (!line.row->trouble.empty()) one["trouble"] = line.row->trouble;
      all.push_back(std::move(one));
    }
    Json told{{"samples", samples}, {"compared", rows_.size()}, {"outputs", outputs()}};
    for (const Json& one : told["outputs"]) {
      if (one["snr_db"].is_null()) continue;
      told["snr_db"] = std::min(told.value("snr_db", HUGE_VAL), one["snr_db"].get<double>());
    }
    told["layers"] = std::move(all);
    return told;
  }

  const Model& a_;
  const Model& b_;
  std::vector<Difference> rows_;
  std::map<tn_value_id, size_t> row_of_;
};

// {"samples", "compared", "outputs": [{"name", "value", "snr_db"}], "snr_db", "layers": [{"value",
// "op", "node", "source_snr_db", "damage", "snr_db", "cosine", "max_error"}]} snr_db: of the worst
// output, in front of what hides differences (a last Softmax). source_snr_db: of what the node
// reads. damage: noise to signal of the value, less what its inputs already had.
inline Json compare(const Model& a, const Model& b, const Dataset& data, const CompareChoice& how) {
  return Comparison(a, b).run(data, how);
}

}  // namespace tenon::cxx
