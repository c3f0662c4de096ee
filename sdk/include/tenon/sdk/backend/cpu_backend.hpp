// SPDX-License-Identifier: Apache-2.0
#pragma once
// A backend on the CPU, whole but for its kernels:
//
//   class Mine : public tenon::backend::CpuBackend<Mine> {
//    public:
//     static constexpr std::string_view kDevice = "CPU, my kernels";
//     static Result<Mine> create(tn_ctx* ctx, const Options&) { return Mine(ctx); }
//     tenon::backend::Kernels kernels(const Options& options) const;  // of one compilation
//    private:
//     using CpuBackend::CpuBackend;
//   };
//   TENON_BACKEND(mine, Mine, "com.acme.mine", "what it is", "{}")

#include "tenon/sdk/backend/compile.hpp"

namespace tenon::backend {

template <class T>
class CpuBackend {
 public:
  static tn_backend table() {
    tn_backend t = BackendRole<T>::cpu_table();
    add_states<T, StateStore>(t);
    return t;
  }
  Status devices(Sink& out) {
    return out.write(cat("[{\"id\": 0, \"type\": 1, \"name\": ", json_text(T::kDevice),
                         ", \"memory_bytes\": 0}]"));
  }
  // Constants folded, known patterns fused: shapes that can be known are known then.
  Status prepare(Sink& out) { return out.write("fusion.default\n"); }
  Status claim(const tn_graph* graph, int32_t, const tn_claims& claims) {
    return backend::claim(graph, claims);
  }
  Result<void*> compile(const tn_graph* part, int32_t, const Options& options) {
    TN_TRY(made, backend::compile(ctx_, part, static_cast<T*>(this)->kernels(options)));
    return static_cast<void*>(made.release());
  }
  uint64_t workspace(void* exe) { return of(exe).workspace(); }
  Status run(void* exe,
             void* state,
             const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec* exec) {
    return of(exe).run(static_cast<StateStore*>(state), in, n_in, outputs, *exec);
  }
  void exe_free(void* exe) { delete &of(exe); }
  Status describe(void* exe, Sink& out) { return out.write(of(exe).describe()); }
  Status profile(void* exe, Sink& out) { return out.write(of(exe).profile()); }
  Result<StateStore*> new_state(int32_t) { return new StateStore(ctx_); }

 protected:
  explicit CpuBackend(tn_ctx* ctx) : ctx_(ctx) {}

 private:
  static Executable& of(void* exe) { return *static_cast<Executable*>(exe); }
  tn_ctx* ctx_;
};

}  // namespace tenon::backend
