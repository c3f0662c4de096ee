// SPDX-License-Identifier: Apache-2.0
#pragma once
// --precision offers what the backend has.

#include <algorithm>

#include "tenon/cxx/choice.hpp"
#include "tenon/cxx/float_quantize.hpp"

#include "command.hpp"

namespace tenon::command {

// A session to run a model in. A precision that the backend does not have is a wrong use. `more`:
// one that the command itself makes.
inline SessionPtr open_for(const Tool& tool, cxx::RunChoice& run, const std::string& more = {}) {
  SessionPtr session = tool.open(run.threads);
  if (run.precision.empty()) return session;
  const std::string backend = run.backend.empty() ? "onednn" : run.backend;
  std::vector<std::string> known = cxx::precisions_of(*session, backend);
  bool has_none = known.size() == 1;
  auto knows = [&](const std::string& one) {
    return std::find(known.begin(), known.end(), one) != known.end();
  };
  if (!more.empty() && !knows(more)) known.push_back(more);
  if (!knows(run.precision))
    throw UsageError(
        cat("--precision: ", cxx::expected_one_of(known, run.precision, "(none)",
                                                  cat(", which backend ", backend, " has"))));
  if (has_none && run.precision == "fp32") run.precision.clear();  // it has no such option
  return session;
}

// A backend computes in 8 bits what a model has in 8 bits, so that of a model without any it would
// give what fp32 gives, under another name.
inline void refuse_idle_int8(const cxx::Model& model, const cxx::RunChoice& run) {
  if (run.precision != "int8" || cxx::is_quantized(model)) return;
  throw Error(
      TN_INVALID_ARGUMENT,
      "--precision int8: expected a quantized model, this one has nothing in 8 bits or less; "
      "'tenon optimize --recipe int8' makes one");
}

}  // namespace tenon::command
