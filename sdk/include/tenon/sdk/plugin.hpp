// SPDX-License-Identifier: Apache-2.0
#pragma once
// What makes a shared library a Tenon plugin. A component is a class and one macro:
//
//   class Magnitude {                       // any state that it needs
//    public:
//     static tenon::Result<Magnitude> create(tn_ctx*, const tenon::Options&);
//     tenon::Status run(...);               // what its role requires, see role/*.hpp
//   };
//   TENON_PASS(magnitude, Magnitude, "pruner.magnitude",
//              "removes the smallest weights", R"({"properties": {...}})")
//
// The macro defines tenon_component_magnitude and writes the component's description into the
// section ".tenon.plugin", so that listing runs no code. The first argument is the word that the
// plugin's CMake list (tenon_add_plugin ... COMPONENTS magnitude) names; from that list the build
// writes one file with TENON_DECLARE_COMPONENT(word) for each word and
// TENON_PLUGIN(id, version, name, vendor, license, url, &tenon_component_a, &tenon_component_b).

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "tenon/sdk/compiler.h"

#include "tenon/sdk/any.hpp"

#ifndef TENON_PLUGIN_VERSION
#define TENON_PLUGIN_VERSION "0.0.0"
#endif

namespace tenon {

struct ComponentEntry {
  tn_component data;
  tn_status* (*create)(tn_ctx* ctx, const tn_options* options, void** out_self);
  void (*destroy)(void* self);
  const void* (*get_interface)(void* self, std::string_view id);
};

// What create gives to the host: the object with, in front, the entry that it was made by.
struct Instance {
  const ComponentEntry* entry;
};

template <class T>
struct Holder : Instance {
  T object;
  Holder(const ComponentEntry* made_by, T&& made) : Instance{made_by}, object(std::move(made)) {}
};

template <class T>
T& object_of(void* self) {
  return static_cast<Holder<T>*>(static_cast<Instance*>(self))->object;
}

// Role is one of role/*.hpp's: it has Object, kId (the role) and table().
template <class Role>
struct ComponentOf {
  using T = typename Role::Object;
  template <const ComponentEntry& kEntry>
  static tn_status* create(tn_ctx* ctx, const tn_options* options, void** out_self) {
    return guard([&]() -> Status {
      TN_TRY(made, T::create(ctx, Options(options)));
      *out_self = static_cast<Instance*>(new Holder<T>(&kEntry, std::move(made)));
      return {};
    });
  }
  static void destroy(void* self) { delete static_cast<Holder<T>*>(static_cast<Instance*>(self)); }
  static const void* get_interface(void*, std::string_view id) {
    return id == Role::kId ? Role::table() : nullptr;
  }
};

struct PluginState {
  tn_ctx* ctx;
};

struct PluginTable {
  static tn_status* init(const tn_host* host, void** out_state) {
    Services offered;
    std::string_view missing = offered.fill(*host);
    if (!offered.status) return nullptr;  // no status can be made: get_interface is broken
    if (!services.status) services = offered;
    return guard([&]() -> Status {
      if (!missing.empty()) {
        return {TN_UNIMPLEMENTED, cat("host service ", missing, " is missing: update libtenon")};
      }
      if (services.status != offered.status) {
        return {TN_FAILED_PRECONDITION,
                "another libtenon in this process already uses this plugin"};
      }
      *out_state = new PluginState{host->ctx};
      return {};
    });
  }
  static void deinit(void* state) { delete static_cast<PluginState*>(state); }
  static tn_status* create(const ComponentEntry* const* entries,
                           uint64_t count,
                           void* state,
                           tn_str role,
                           tn_str id,
                           const tn_options* options,
                           void** out_self) {
    *out_self = nullptr;
    for (uint64_t i = 0; i < count; ++i) {
      const tn_component& data = entries[i]->data;
      if (view(data.id) != view(id) || view(data.role) != view(role)) continue;
      return entries[i]->create(static_cast<PluginState*>(state)->ctx, options, out_self);
    }
    return Status(TN_NOT_FOUND, cat("no component ", view(id), " of role ", view(role))).release();
  }
  static void destroy(void* self) { static_cast<Instance*>(self)->entry->destroy(self); }
  static const void* get_interface(void* self, tn_str id) {
    return static_cast<Instance*>(self)->entry->get_interface(self, view(id));
  }
};

// Writes no more of the answer than the host has room for.
inline int32_t accept_offer(const tn_offer* offer, tn_accept* accept, const tn_plugin* plugin) {
  tn_accept made{};
  made.struct_size = accept->struct_size;
  made.abi_major = TN_ABI_MAJOR;
  made.needs_minor = TN_ABI_MINOR;
  made.built_minor = TN_ABI_MINOR;
  made.pointer_bits = 8 * sizeof(void*);
  made.sanitizer = TENON_SANITIZER;
  made.plugin = plugin;
  if (offer->oldest_major > TN_ABI_MAJOR || offer->abi_major + 1 <= TN_ABI_MAJOR) {
    made.refusal =
        "built for another major version of the Tenon ABI: rebuild the plugin "
        "with the SDK of this host";
  } else if (offer->abi_major == TN_ABI_MAJOR && offer->abi_minor < TN_ABI_MINOR) {
    made.refusal = "needs a newer minor version of the Tenon ABI: update libtenon";
  } else if (offer->pointer_bits != made.pointer_bits) {
    made.refusal = "built for another pointer width: rebuild the plugin for the host's platform";
  } else if (offer->sanitizer != made.sanitizer) {
    made.refusal = "built with other sanitizers than the host: rebuild with the host's flags";
  }
  std::memcpy(accept, &made, std::min<size_t>(accept->struct_size, sizeof made));
  return made.refusal ? TN_FAILED_PRECONDITION : TN_OK;
}

constexpr tn_str literal(const char* text) {
  return {text, std::char_traits<char>::length(text)};
}

}  // namespace tenon

// The section's bytes: texts that end in NUL, as tenon/plugin.h says.
#define TENON_DESCRIPTION_(variable, text) TENON_DESCRIBES static const char variable[] = text;

#define TENON_DECLARE_COMPONENT(word) extern "C" const tenon::ComponentEntry tenon_component_##word;

// What the macros of role/*.hpp expand to; role, id, summary and schema are string literals.
#define TENON_COMPONENT_(word, Role, role_id, component_id, summary, schema, flags)                \
  TENON_DESCRIPTION_(tenon_description_##word, "TENON-COMPONENT-1\0" role_id "\0" component_id     \
                                               "\0" TENON_PLUGIN_VERSION "\0" summary "\0" schema) \
  TENON_DECLARE_COMPONENT(word)                                                                    \
  const tenon::ComponentEntry tenon_component_##word = {                                           \
      {sizeof(tn_component), flags, tenon::literal(role_id), tenon::literal(component_id),         \
       tenon::literal(TENON_PLUGIN_VERSION), tenon::literal(summary), tenon::literal(schema)},     \
      tenon::ComponentOf<Role>::create<tenon_component_##word>,                                    \
      tenon::ComponentOf<Role>::destroy,                                                           \
      tenon::ComponentOf<Role>::get_interface};

#define TENON_PLUGIN(plugin_id, version, name, vendor, license, url, ...)                     \
  TENON_DESCRIPTION_(tenon_description_, "TENON-PLUGIN-1\0" plugin_id "\0" version "\0" name  \
                                         "\0" vendor "\0" license "\0" url)                   \
  namespace {                                                                                 \
  const tenon::ComponentEntry* const tenon_entries[] = {__VA_ARGS__};                         \
  constexpr uint64_t kTenonEntries = sizeof(tenon_entries) / sizeof(tenon_entries[0]);        \
  tn_status* tenon_create(                                                                    \
      void* state, tn_str role, tn_str id, const tn_options* options, void** out_self) {      \
    return tenon::PluginTable::create(tenon_entries, kTenonEntries, state, role, id, options, \
                                      out_self);                                              \
  }                                                                                           \
  const tn_plugin* tenon_plugin_table() {                                                     \
    static const auto components = [] {                                                       \
      std::array<const tn_component*, kTenonEntries> all{};                                   \
      for (uint64_t i = 0; i < kTenonEntries; ++i)                                            \
        all[i] = &tenon_entries[i]->data;                                                     \
      return all;                                                                             \
    }();                                                                                      \
    static const tn_plugin table{sizeof(tn_plugin),                                           \
                                 0,                                                           \
                                 tenon::literal(plugin_id),                                   \
                                 tenon::literal(version),                                     \
                                 tenon::literal(name),                                        \
                                 tenon::literal(vendor),                                      \
                                 tenon::literal(license),                                     \
                                 tenon::literal(url),                                         \
                                 kTenonEntries,                                               \
                                 components.data(),                                           \
                                 tenon::PluginTable::init,                                    \
                                 tenon::PluginTable::deinit,                                  \
                                 tenon_create,                                                \
                                 tenon::PluginTable::destroy,                                 \
                                 tenon::PluginTable::get_interface};                          \
    return &table;                                                                            \
  }                                                                                           \
  }                                                                                           \
  extern "C" TN_EXPORT int32_t TN_CALL tenon_plugin_entry(const tn_offer* offer,              \
                                                          tn_accept* accept) {                \
    return tenon::accept_offer(offer, accept, tenon_plugin_table());                          \
  }
