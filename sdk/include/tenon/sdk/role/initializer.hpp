// SPDX-License-Identifier: Apache-2.0
#pragma once
// An initializer is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Status fill(const tn_initial&, std::span<float> out) const;

#include <span>

#include "tenon/role/initializer.h"

#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/sized.hpp"

namespace tenon {

template <class T>
struct InitializerRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.initializer/1";
  static const tn_initializer* table() {
    static const tn_initializer table{sizeof table, 1, fill};
    return &table;
  }
  static tn_status* fill(void* self, const tn_initial* sized, float* out) {
    return guard([&]() -> Status {
      Sized<tn_initial> given(sized);
      int64_t n = element_count({given->shape, static_cast<size_t>(given->rank)});
      return object_of<T>(self).fill(*given, std::span(out, static_cast<size_t>(n)));
    });
  }
};

}  // namespace tenon

#define TENON_INITIALIZER(word, Class, id, summary, schema)                                 \
  TENON_COMPONENT_(word, tenon::InitializerRole<Class>, "tenon.initializer/1", id, summary, \
                   schema, 0)
