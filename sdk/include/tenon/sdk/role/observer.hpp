// SPDX-License-Identifier: Apache-2.0
#pragma once
// An observer is a class with
//   static Result<T> create(tn_ctx*, const Options&);     // "bits", "symmetric" and its own
//   Status observe(const DLTensor&);                      // dense, CPU, a float type
//   Status save(Sink&) const;  Status merge(std::string_view saved);
//   Result<tn_range> range() const;

#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

template <class T>
struct ObserverRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.observer/1";
  static const tn_observer* table() {
    static const tn_observer table{sizeof table, 1, observe, save, merge, range};
    return &table;
  }
  static tn_status* observe(void* self, const DLTensor* tensor) {
    return guard([&] { return object_of<T>(self).observe(*tensor); });
  }
  static tn_status* save(void* self, const tn_sink* sink) {
    return guard([&] {
      Sink out(sink);
      return object_of<T>(self).save(out);
    });
  }
  static tn_status* merge(void* self, tn_bytes saved) {
    return guard([&] {
      return object_of<T>(self).merge({static_cast<const char*>(saved.data), saved.len});
    });
  }
  static tn_status* range(void* self, tn_range* out) {
    return guard([&]() -> Status {
      *out = {};
      TN_TRY(range, object_of<T>(self).range());
      *out = range;
      return {};
    });
  }
};

}  // namespace tenon

#define TENON_OBSERVER(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::ObserverRole<Class>, "tenon.observer/1", id, summary, schema, 0)
