// SPDX-License-Identifier: Apache-2.0
#pragma once
// A backend is a class with the functions of tn_backend as methods. The ones of a CPU backend:
//   static Result<T> create(tn_ctx*, const Options&);
//   Status devices(Sink&);  Status prepare(Sink&);
//   Status claim(const tn_graph*, int32_t device, const tn_claims&);
//   Result<void*> compile(const tn_graph* part, int32_t device, const Options&);
//   uint64_t workspace(void* exe);
//   Status run(void* exe, void* state, const DLTensor* const* in, uint64_t n_in,
//              const tn_outputs*, const tn_exec*);
//   void exe_free(void* exe);  Status describe(void* exe, Sink&);  Status profile(void* exe,
//   Sink&);
// A backend with an address space of its own derives its table: BackendRole<T>::cpu_table() with
// the memory, stream, event, copy and state functions filled in, returned by T::table().

#include "tenon/sdk/graph.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"
#include "tenon/sdk/sized.hpp"

namespace tenon {

template <class T>
struct BackendRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.backend/1";
  static const tn_backend* table() {
    static const tn_backend table = [] {
      if constexpr (requires { T::table(); }) {
        return T::table();
      } else {
        return cpu_table();
      }
    }();
    return &table;
  }
  static tn_backend cpu_table() {
    tn_backend t{};
    t.struct_size = sizeof t;
    t.revision = 1;
    t.devices = devices;
    t.prepare = prepare;
    t.claim = claim;
    t.compile = compile;
    t.workspace = [](void* self, void* exe) { return object_of<T>(self).workspace(exe); };
    t.run = run;
    t.exe_free = [](void* self, void* exe) { object_of<T>(self).exe_free(exe); };
    t.describe = describe;
    t.profile = profile;
    return t;
  }
  static tn_status* devices(void* self, const tn_sink* sink) {
    return guard([&] {
      Sink out(sink);
      return object_of<T>(self).devices(out);
    });
  }
  static tn_status* prepare(void* self, const tn_sink* sink) {
    return guard([&] {
      Sink out(sink);
      return object_of<T>(self).prepare(out);
    });
  }
  static tn_status* claim(void* self,
                          const tn_graph* graph,
                          int32_t device,
                          const tn_claims* claims) {
    return guard([&] { return object_of<T>(self).claim(graph, device, *claims); });
  }
  static tn_status* compile(
      void* self, const tn_graph* part, int32_t device, const tn_options* options, void** out_exe) {
    *out_exe = nullptr;
    return guard([&]() -> Status {
      TN_TRY(exe, object_of<T>(self).compile(part, device, Options(options)));
      *out_exe = exe;
      return {};
    });
  }
  static tn_status* run(void* self,
                        void* exe,
                        void* state,
                        const DLTensor* const* in,
                        uint64_t n_in,
                        const tn_outputs* outputs,
                        const tn_exec* exec) {
    return guard([&] {
      Sized<tn_exec> how(exec);
      return object_of<T>(self).run(exe, state, in, n_in, outputs, how.get());
    });
  }
  static tn_status* describe(void* self, void* exe, const tn_sink* sink) {
    return guard([&] {
      Sink out(sink);
      return object_of<T>(self).describe(exe, out);
    });
  }
  static tn_status* profile(void* self, void* exe, const tn_sink* sink) {
    return guard([&] {
      Sink out(sink);
      return object_of<T>(self).profile(exe, out);
    });
  }
};

}  // namespace tenon

#define TENON_BACKEND(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::BackendRole<Class>, "tenon.backend/1", id, summary, schema, 0)
