// SPDX-License-Identifier: Apache-2.0
#pragma once
// A data set is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   uint64_t size() const;
//   Status fields(Sink&) const;                            // JSON, see tenon/role/dataset.h
//   Status batch(std::span<const uint64_t> index, uint64_t seed, const Outputs&);
// and, where its samples have names or are another data set's,
//   std::string origin(uint64_t index) const;              // which in words, for messages
// A schema with "extensions" has the option "path" of type "path": the file to open.

#include <span>

#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

template <class T>
struct DatasetRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.dataset/1";
  static const tn_dataset* table() {
    static const tn_dataset table{sizeof table, 1, size, fields, batch, origin()};
    return &table;
  }
  static uint64_t size(void* self) { return object_of<T>(self).size(); }
  static tn_status* fields(void* self, const tn_sink* sink) {
    return guard([&] {
      Sink out(sink);
      return object_of<T>(self).fields(out);
    });
  }
  static tn_status* batch(
      void* self, const uint64_t* index, uint64_t n, uint64_t seed, const tn_outputs* outputs) {
    return guard([&] { return object_of<T>(self).batch({index, n}, seed, Outputs(outputs)); });
  }
  static constexpr auto origin() -> decltype(tn_dataset::origin) {
    if constexpr (requires(const T& object) { object.origin(uint64_t{}); }) {
      return [](void* self, uint64_t index, const tn_sink* sink) -> tn_status* {
        return guard([&]() -> Status {
          const T& object = object_of<T>(self);
          if (index < object.size()) return Sink(sink).write(object.origin(index));
          return {TN_OUT_OF_RANGE, cat("sample ", index, " of ", object.size())};
        });
      };
    } else {
      return nullptr;
    }
  }
};

}  // namespace tenon

#define TENON_DATASET(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::DatasetRole<Class>, "tenon.dataset/1", id, summary, schema, 0)
