// SPDX-License-Identifier: Apache-2.0
#pragma once
// A metric is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Status update(std::span<const DLTensor* const> out, std::span<const DLTensor* const> label);
//   Result<double> value() const;
//   static constexpr bool kHigherIsBetter;
//   Status details(Sink&) const;                            // JSON

#include <span>

#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

template <class T>
struct MetricRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.metric/1";
  static const tn_metric* table() {
    static const tn_metric table{sizeof table, 1, update, value, details};
    return &table;
  }
  static tn_status* update(void* self,
                           const DLTensor* const* out,
                           uint64_t n_out,
                           const DLTensor* const* label,
                           uint64_t n_label) {
    return guard([&] { return object_of<T>(self).update({out, n_out}, {label, n_label}); });
  }
  static tn_status* value(void* self, double* out, int32_t* higher_is_better) {
    return guard([&]() -> Status {
      *higher_is_better = T::kHigherIsBetter;
      TN_TRY(value, object_of<T>(self).value());
      *out = value;
      return {};
    });
  }
  static tn_status* details(void* self, const tn_sink* sink) {
    return guard([&] {
      Sink out(sink);
      return object_of<T>(self).details(out);
    });
  }
};

}  // namespace tenon

#define TENON_METRIC(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::MetricRole<Class>, "tenon.metric/1", id, summary, schema, 0)
