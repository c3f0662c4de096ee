// SPDX-License-Identifier: Apache-2.0
// Results of a check in the XML that build servers read (the format of Ant's JUnit task).
#include <fstream>

#include "check.hpp"

namespace tenon::command::check {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return out;
}

}  // namespace

void write_junit(const std::string& path, const Json& components) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const Json& one : components) {
    std::string cases;
    int failed = 0, skipped = 0;
    std::string of = escaped(one["component"].get<std::string>());
    for (const Json& result : one["checks"]) {
      std::string why = escaped(result["why"].get<std::string>());
      cases += cat("    <testcase classname=\"", of, "\" name=\"",
                   escaped(result["check"].get<std::string>()), "\"");
      bool is_failed = result["result"] == "failed", is_skipped = result["result"] == "skipped";
      failed += is_failed;
      skipped += is_skipped;
      if (is_failed || is_skipped)
        cases +=
            cat("><", is_failed ? "failure" : "skipped", " message=\"", why, "\"/></testcase>\n");
      else
        cases += "/>\n";
    }
    out += cat("  <testsuite name=\"", of, "\" tests=\"", one["checks"].size(), "\" failures=\"",
               failed, "\" skipped=\"", skipped, "\">\n", cases, "  </testsuite>\n");
  }
  std::ofstream file(path);
  file << out << "</testsuites>\n";
  file.close();
  if (!file) throw cxx::Error(TN_INVALID_ARGUMENT, cat(path, ": cannot be written"));
}

}  // namespace tenon::command::check
