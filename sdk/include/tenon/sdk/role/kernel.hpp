// SPDX-License-Identifier: Apache-2.0
#pragma once
// A kernel is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   static constexpr std::string_view kPattern = "Relu(Add(Mul(x, #scale), #shift))";
//   Status claim(const KernelSite&) const;                       // unsupported(why): not this one
//   struct Compiled;                                             // what a run needs to know
//   Result<Compiled> compile(const KernelSite&) const;
//   Status run(Compiled&, std::span<const DLTensor* const> in, const DLTensor& out,
//              const Cancel&) const;                             // any thread
//   Result<Value> sample(EditView, uint64_t seed) const;         // the output of a site

#include <memory>
#include <span>

#include "tenon/role/kernel.h"

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"
#include "tenon/sdk/sized.hpp"

namespace tenon {

class KernelSite {
 public:
  explicit KernelSite(const tn_kernel_site& raw) : raw_(raw) {}
  Node node(size_t i) const { return {raw_.graph, raw_.nodes[i]}; }
  size_t n_inputs() const { return static_cast<size_t>(raw_.n_inputs); }
  Value input(size_t i) const { return {raw_.graph, raw_.inputs[i]}; }
  Value output() const { return {raw_.graph, raw_.output}; }

 private:
  const tn_kernel_site& raw_;
};

template <class T>
struct KernelRole {
  using Object = T;
  using Compiled = typename T::Compiled;
  static constexpr std::string_view kId = "tenon.kernel/1";
  static const tn_kernel* table() {
    static const tn_kernel table{sizeof table, 1, pattern, claim, compile, run, exe_free, sample};
    return &table;
  }
  static tn_status* pattern(void*, const tn_sink* sink) {
    return guard([&] { return Sink(sink).write(T::kPattern); });
  }
  static tn_status* claim(void* self, const tn_kernel_site* site) {
    return guard([&] { return object_of<T>(self).claim(KernelSite(*Sized(site).get())); });
  }
  static tn_status* compile(void* self, const tn_kernel_site* site, void** out_exe) {
    *out_exe = nullptr;
    return guard([&]() -> Status {
      Sized<tn_kernel_site> given(site);
      TN_TRY(made, object_of<T>(self).compile(KernelSite(*given)));
      *out_exe = std::make_unique<Compiled>(std::move(made)).release();
      return {};
    });
  }
  static tn_status* run(void* self,
                        void* exe,
                        const DLTensor* const* in,
                        uint64_t n_in,
                        DLTensor* out,
                        const tn_cancel* cancel) {
    return guard([&] {
      return object_of<T>(self).run(*static_cast<Compiled*>(exe), {in, n_in}, *out, Cancel(cancel));
    });
  }
  static void exe_free(void*, void* exe) { delete static_cast<Compiled*>(exe); }
  static tn_status* sample(void* self, tn_edit* edit, uint64_t seed, tn_value_id* out) {
    return guard([&]() -> Status {
      *out = 0;
      TN_TRY(made, object_of<T>(self).sample(EditView{edit}, seed));
      *out = made.id;
      return {};
    });
  }
};

}  // namespace tenon

#define TENON_KERNEL(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::KernelRole<Class>, "tenon.kernel/1", id, summary, schema, 0)
