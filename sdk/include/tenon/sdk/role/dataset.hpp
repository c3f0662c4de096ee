// SPDX-License-Identifier: Apache-2.0
#pragma once
// A data set is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   uint64_t size() const;
//   Status fields(Sink&) const;                            // JSON, see tenon/role/dataset.h
//   Status batch(std::span<const uint64_t> index, uint64_t seed, const Outputs&);

#include <span>

#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

template <class T>
struct DatasetRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.dataset/1";
  static const tn_dataset* table() {
    static const tn_dataset table{sizeof table, 1, size, fields, batch};
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
};

}  // namespace tenon

#define TENON_DATASET(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::DatasetRole<Class>, "tenon.dataset/1", id, summary, schema, 0)
