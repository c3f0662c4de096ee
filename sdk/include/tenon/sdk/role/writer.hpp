// SPDX-License-Identifier: Apache-2.0
#pragma once
// A writer is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Status write(const tn_graph*, tn_target*, const Cancel&);   // the host commits the target

#include "tenon/sdk/graph.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

template <class T>
struct WriterRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.writer/1";
  static const tn_writer* table() {
    static const tn_writer table{sizeof table, 1, write};
    return &table;
  }
  static tn_status* write(void* self,
                          const tn_graph* graph,
                          tn_target* target,
                          const tn_cancel* cancel) {
    return guard([&] { return object_of<T>(self).write(graph, target, Cancel(cancel)); });
  }
};

}  // namespace tenon

#define TENON_WRITER(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::WriterRole<Class>, "tenon.writer/1", id, summary, schema, 0)
