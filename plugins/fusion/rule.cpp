// SPDX-License-Identifier: Apache-2.0
#include "rule.hpp"

namespace tenon::fusion {
namespace {

constexpr int kMostRounds = 32;

Result<uint64_t> apply_everywhere(tn_graph* graph, const Rule& rule) {
  TN_TRY(edit, Edit::begin(graph));
  uint64_t changes = 0;
  for (Node node : edit.graph().nodes()) {
    if (node.type().empty()) continue;  // an earlier change took it
    TN_TRY(changed, rule.at(edit, node));
    changes += changed;
  }
  if (changes) TN_CHECK(edit.commit());
  return changes;
}

}  // namespace

Status apply_rules(tn_ctx* ctx,
                   tn_graph* graph,
                   const std::vector<const Rule*>& rules,
                   const Cancel& cancel,
                   std::vector<uint64_t>* counts) {
  for (int round = 0; round < kMostRounds; ++round) {
    uint64_t changes = 0;
    for (size_t i = 0; i < rules.size(); ++i) {
      TN_CHECK(cancel.check());
      const Rule& rule = *rules[i];
      Result<uint64_t> made = rule.whole ? rule.whole(ctx, graph) : apply_everywhere(graph, rule);
      if (!made.ok()) return made.status().in(cat("rule ", rule.name));
      (*counts)[i] += *made;
      changes += *made;
    }
    if (!changes) break;
  }
  return {};
}

std::string report_of(const std::vector<const Rule*>& rules, const std::vector<uint64_t>& counts) {
  std::string out;
  for (size_t i = 0; i < rules.size(); ++i) {
    out += cat(i ? ", " : "", "\"", rules[i]->name, "\": ", counts[i]);
  }
  return "{\"changes\": {" + out + "}}";
}

bool scalar_of(Value value, double* out) {
  if (!value || !value.is_constant()) return false;
  DLTensor tensor = value.constant().dl();
  if (element_count(tensor) != 1) return false;
  switch (dtype_of(tensor)) {
    case TN_F32:
      *out = static_cast<double>(*data_of<float>(tensor));
      return true;
    case TN_F64:
      *out = *data_of<double>(tensor);
      return true;
    case TN_I64:
      *out = static_cast<double>(*data_of<int64_t>(tensor));
      return true;
    default:
      return false;
  }
}

const float* floats_of(Value value, int64_t n) {
  if (!value || !value.is_constant()) return nullptr;
  DLTensor tensor = value.constant().dl();
  if (dtype_of(tensor) != TN_F32 || element_count(tensor) != n) return nullptr;
  return data_of<const float>(tensor);
}

}  // namespace tenon::fusion
