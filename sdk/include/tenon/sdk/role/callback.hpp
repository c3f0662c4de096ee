// SPDX-License-Identifier: Apache-2.0
#pragma once
// A callback is a class with
//   static Result<T> create(tn_ctx*, const Options&);
// and one or both of these; true ends the run:
//   Result<bool> step(const tn_progress_point&);
//   Result<bool> epoch(std::string_view record, Graph model);

#include "tenon/role/callback.h"

#include "tenon/sdk/graph.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/sized.hpp"

namespace tenon {

template <class T>
struct CallbackRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.callback/1";
  static const tn_callback* table() {
    constexpr bool kSteps = requires(T& object, tn_progress_point at) { object.step(at); };
    constexpr bool kEpochs = requires(T& object, Graph model) { object.epoch("", model); };
    static_assert(kSteps || kEpochs, "a callback has step or epoch");
    static const tn_callback table = [] {
      tn_callback made{sizeof made, 1, nullptr, nullptr};
      if constexpr (kSteps) made.step = step;
      if constexpr (kEpochs) made.epoch = epoch;
      return made;
    }();
    return &table;
  }
  static tn_status* step(void* self, const tn_progress_point* at, int32_t* out_stop) {
    return guard([&] {
      Sized<tn_progress_point> point(at);
      return answer(object_of<T>(self).step(*point), out_stop);
    });
  }
  static tn_status* epoch(void* self, tn_str record, const tn_graph* model, int32_t* out_stop) {
    return guard(
        [&] { return answer(object_of<T>(self).epoch(view(record), Graph{model}), out_stop); });
  }

 private:
  static Status answer(Result<bool> stops, int32_t* out_stop) {
    if (!stops.ok()) return std::move(stops).status();
    *out_stop = *stops;
    return {};
  }
};

}  // namespace tenon

#define TENON_CALLBACK(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::CallbackRole<Class>, "tenon.callback/1", id, summary, schema, 0)
