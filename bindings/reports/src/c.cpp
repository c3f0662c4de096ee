// SPDX-License-Identifier: Apache-2.0
// The reports for C and FFI.
#include "tenon/reports.h"

#include "tenon/cxx/inspection.hpp"
#include "tenon/cxx/line_diff.hpp"

namespace {

using tenon::cxx::check, tenon::cxx::TextSink;

struct Services : tenon::cxx::Services {
  explicit Services(const tn_host* host) { find_services(host); }
};

void write_to(const tn_sink* sink, const std::string& text) {
  check(sink->write(sink->ctx, text.data(), text.size()));
}

const tn_graph* given(const tn_graph* graph) {
  if (!graph) throw tenon::cxx::Error(TN_INVALID_ARGUMENT, "graph: expected one, got NULL");
  return graph;
}

std::string text_of(const Services& services, const tn_graph* graph) {
  TextSink text;
  check(services.graph->print(given(graph), 0, text.get()));
  return text.text();
}

}  // namespace

extern "C" tn_status* tn_reports_inspect(const tn_host* host,
                                         const tn_graph* graph,
                                         const tn_sink* sink) {
  return tenon::cxx::callback_with<Services>(host, [&](const Services& services) {
    using Json = nlohmann::ordered_json;
    const Json report = tenon::cxx::inspect(services, given(graph));
    write_to(sink, report.dump(-1, ' ', false, Json::error_handler_t::replace));
  });
}

extern "C" tn_status* tn_reports_diff(const tn_host* host,
                                      const tn_graph* before,
                                      const tn_graph* after,
                                      const tn_sink* sink) {
  return tenon::cxx::callback_with<Services>(host, [&](const Services& services) {
    const std::string changes =
        tenon::cxx::diff_lines(text_of(services, before), text_of(services, after));
    if (!changes.empty()) write_to(sink, changes);
  });
}
