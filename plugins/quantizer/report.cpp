// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "tenon/sdk/run.hpp"

namespace tenon::quantizer {
namespace {

const char* kind_name(Kind kind) {
  constexpr const char* kNames[] = {"float",   "compute",  "same_scale", "table",
                                    "requant", "quantize", "dequantize", "integer"};
  return kNames[static_cast<size_t>(kind)];
}

bool is_left(const Decision& one) {
  return !one.taken && one.is_float;
}

}  // namespace

nlohmann::ordered_json report_nodes(const Assignment& assignment,
                                    const std::vector<WeightNote>& weights) {
  std::map<std::string, WeightNote> by_node;  // the worst of its weights
  for (const WeightNote& note : weights) {
    auto [at, is_first] = by_node.try_emplace(note.node, note);
    if (is_first) continue;
    WeightNote& worst = at->second;
    worst.snr_db = std::min(worst.snr_db, note.snr_db);
    worst.integer_bias =
        (worst.integer_bias || !worst.has_bias) && (note.integer_bias || !note.has_bias);
    worst.has_bias |= note.has_bias;
  }
  nlohmann::ordered_json quantized = nlohmann::ordered_json::array(), left = quantized;
  std::map<std::string, uint64_t> counts;
  for (const Decision& one : assignment.nodes()) {
    std::string name(one.node.name());
    if (is_left(one)) left.push_back({{"node", name}, {"op", one.node.type()}, {"why", one.why}});
    if (!one.taken) continue;
    nlohmann::ordered_json row{
        {"node", name}, {"op", one.node.type()}, {"role", kind_name(one.role.kind)}};
    ++counts[kind_name(one.role.kind)];
    auto note = by_node.find(name);
    if (note != by_node.end()) {
      row["weight_snr_db"] = note->second.snr_db;
      if (note->second.has_bias) row["bias"] = note->second.integer_bias ? "int32" : "float32";
    }
    quantized.push_back(std::move(row));
  }
  nlohmann::ordered_json summary{{"quantized", quantized.size()}, {"float", left.size()}};
  for (const auto& [kind, n] : counts)
    summary[kind] = n;
  return {{"counts", summary}, {"quantized", quantized}, {"float", left}};
}

nlohmann::ordered_json weight_bytes(const Assignment& assignment) {
  uint64_t all = 0, left = 0, most = 0;
  const Decision* largest = nullptr;
  std::set<tn_value_id> counted, counted_left;  // nodes may share a weight
  for (const Decision& one : assignment.nodes())
    for (const Product& product : one.role.products) {
      const Value weight = product.weight_of(one.node);
      if (!weight || !weight.is_constant() || !is_float(weight.dtype())) continue;
      const uint64_t bytes = bytes_of(weight.dtype(), weight.type().elements());
      all += counted.insert(weight.id).second ? bytes : 0;
      if (one.taken) continue;
      left += counted_left.insert(weight.id).second ? bytes : 0;
      if (bytes > most) most = bytes, largest = &one;
    }
  nlohmann::ordered_json out{{"all", all}, {"float", left}};
  if (largest) out["node"] = largest->node.name(), out["why"] = largest->why;
  return out;
}

nlohmann::ordered_json report_zeros(tn_ctx* ctx, const std::vector<WeightNote>& weights) {
  ZeroCounts all;
  for (const WeightNote& note : weights) {
    all.held += note.zeros.held;
    all.trained += note.zeros.trained;
    if (note.zeros.held > 0)
      log_line(ctx, TN_LOG_DEBUG, cat(note.node, ": ", note.zeros.held, " zeros stay zeros"));
  }
  if (all.held + all.trained > 0)
    log_line(ctx, TN_LOG_INFO,
             cat("zeros of weights: ", all.held, " stay so in training, ", all.trained,
                 " are trained (option zeros)"));
  return {{"held", all.held}, {"trained", all.trained}};
}

void log_left(tn_ctx* ctx, const Assignment& assignment) {
  std::map<std::string, std::string> names;
  size_t total = 0;
  for (const Decision& one : assignment.nodes()) {
    if (!is_left(one)) continue;
    ++total;
    std::string& list = names[one.why];
    list += cat(list.empty() ? "" : ", ", one.node.name());
  }
  log_line(ctx, TN_LOG_INFO,
           cat("quantized: ", assignment.taken_count(), " nodes; float: ", total, " nodes"));
  for (const auto& [why, list] : names)
    log_line(ctx, TN_LOG_DEBUG, cat("left in float, ", why, ": ", list));
}

std::string first_reasons(const nlohmann::ordered_json& left, std::string_view before) {
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(left.size(), 3); ++i)
    out += cat(i ? "; " : before, left[i]["node"].get<std::string>(), ": ",
               left[i]["why"].get<std::string>());
  return out;
}

Status check_something_taken(const Assignment& assignment) {
  std::string reasons;
  size_t shown = 0;
  for (const Decision& one : assignment.nodes()) {
    if (one.taken && one.role.kind == Kind::kCompute) return {};
    if (one.role.kind == Kind::kCompute && shown++ < 3)
      reasons += cat(reasons.empty() ? "" : "; ", one.node.name(), ": ", one.why);
  }
  if (reasons.empty())
    reasons = "the model has no convolution or matrix product outside of control flow";
  return {TN_FAILED_PRECONDITION, cat("nothing to quantize (", reasons, ")")};
}

}  // namespace tenon::quantizer
