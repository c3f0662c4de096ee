// SPDX-License-Identifier: Apache-2.0
#pragma once
// A reader is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   int probe(std::span<const std::byte> head, std::string_view name) const;   // 0..100
//   Status read(tn_blob*, tn_graph* into, const Cancel&);

#include <span>

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

template <class T>
struct ReaderRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.reader/1";
  static const tn_reader* table() {
    static const tn_reader table{sizeof table, 1, probe, read};
    return &table;
  }
  static int32_t probe(void* self, tn_bytes head, tn_str name) {
    int32_t sure = 0;
    Status ignored(guard([&]() -> Status {  // a probe that throws is not sure
      sure = object_of<T>(self).probe({static_cast<const std::byte*>(head.data), head.len},
                                      view(name));
      return {};
    }));
    return sure;
  }
  static tn_status* read(void* self, tn_blob* blob, tn_graph* into, const tn_cancel* cancel) {
    return guard([&] { return object_of<T>(self).read(blob, into, Cancel(cancel)); });
  }
};

}  // namespace tenon

#define TENON_READER(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::ReaderRole<Class>, "tenon.reader/1", id, summary, schema, 0)
