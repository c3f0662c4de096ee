// SPDX-License-Identifier: Apache-2.0
#pragma once
// --precision offers what the backend has.

#include <algorithm>

#include "command.hpp"

namespace tenon::command {

// What the backend that runs for a choice takes as precision; one that says nothing has fp32 alone.
inline std::vector<std::string> precisions_of(const cxx::Session& session,
                                              const std::string& backend) {
  std::vector<std::string> all;
  for (const Json& one : cxx::list_components(session, "tenon.backend/1")) {
    if (one["id"] != backend) continue;
    const Json schema = one["schema"].is_object() ? one["schema"] : Json::object();
    const Json options = schema.value("properties", Json::object());
    all = options.value("precision", Json::object()).value("enum", all);
  }
  return all.empty() ? std::vector<std::string>{"fp32"} : all;
}

// A session to run a model in. A precision that the backend does not have is a wrong use. `more`:
// one that the command itself makes.
inline SessionPtr open_for(const Tool& tool, cxx::RunChoice& run, const std::string& more = {}) {
  SessionPtr session = tool.open(run.threads);
  if (run.precision.empty()) return session;
  const std::string backend = run.backend.empty() ? "onednn" : run.backend;
  std::vector<std::string> known = precisions_of(*session, backend);
  bool has_none = known.size() == 1;
  auto knows = [&](const std::string& one) {
    return std::find(known.begin(), known.end(), one) != known.end();
  };
  if (!more.empty() && !knows(more)) known.push_back(more);
  std::string all;
  for (const std::string& one : known)
    all += cat(all.empty() ? "" : ", ", one);
  if (!knows(run.precision))
    throw UsageError(cat("--precision: expected one of ", all, ", which backend ", backend,
                         " has, got '", run.precision, "'"));
  if (has_none && run.precision == "fp32") run.precision.clear();  // it has no such option
  return session;
}

}  // namespace tenon::command
