// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pass is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Status run(tn_graph*, const Cancel&, Report&);
// It edits the graph that it is given; the host has cloned it and throws the clone away on failure.

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

template <class T>
struct PassRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.pass/1";
  static const tn_pass* table() {
    static const tn_pass table{sizeof table, 1, run};
    return &table;
  }
  static tn_status* run(void* self, tn_graph* graph, const tn_cancel* cancel, const tn_sink* sink) {
    return guard([&]() -> Status {
      Sink report(sink);
      return object_of<T>(self).run(graph, Cancel(cancel), report);
    });
  }
};

}  // namespace tenon

#define TENON_PASS(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::PassRole<Class>, "tenon.pass/1", id, summary, schema, 0)
