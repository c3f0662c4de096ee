// SPDX-License-Identifier: Apache-2.0
#include "registry/loader.hpp"

#include <cfenv>
#include <cstddef>

#include <dlfcn.h>

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>

#include "registry/adopt.hpp"

namespace tenon::host {
namespace {

using Entry = int32_t(TN_CALL*)(const tn_offer*, tn_accept*);

constexpr uint32_t kSanitizers = TN_SAN_NONE
#ifdef __SANITIZE_ADDRESS__
                                 | TN_SAN_ADDRESS
#endif
#ifdef __SANITIZE_THREAD__
                                 | TN_SAN_THREAD
#endif
    ;

// Everything up to the last member of the first published minor is required.
constexpr size_t kLeastPlugin = offsetof(tn_plugin, get_interface) + sizeof(void*);
constexpr size_t kLeastComponent = offsetof(tn_component, options_schema) + sizeof(tn_str);
constexpr uint64_t kMostComponents = 4096;

// A library that was linked with -ffast-math makes the thread that loads it flush denormals: what
// the caller computes afterwards must not depend on that.
class KeptFloatMode {
 public:
  KeptFloatMode() { std::fegetenv(&mode_); }
  ~KeptFloatMode() { std::fesetenv(&mode_); }
  KeptFloatMode(const KeptFloatMode&) = delete;
  KeptFloatMode& operator=(const KeptFloatMode&) = delete;

 private:
  std::fenv_t mode_;
};

Status refused(std::string_view why) {
  return {TN_FAILED_PRECONDITION, why};
}

std::string sanitizer_names(uint32_t set) {
  std::string names;
  for (auto [bit, name] : {std::pair{TN_SAN_ADDRESS, "address"},
                           {TN_SAN_THREAD, "thread"},
                           {TN_SAN_MEMORY, "memory"},
                           {TN_SAN_UNDEFINED, "undefined"}})
    if (set & bit) names += cat(names.empty() ? "" : "+", name);
  return names.empty() ? "none" : names;
}

// RTLD_LOCAL keeps what the plugin links apart from others; RTLD_NOW finds missing symbols here and
// not in the middle of a run. RTLD_NODELETE pins the library after `library` has gone.
Result<Entry> open_library(const std::filesystem::path& file) {
  boost::dll::shared_library library;
  boost::dll::fs::error_code failed;
  library.load(std::filesystem::absolute(file), failed,
               boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (failed) {
    const char* why = dlerror();
    return refused(cat("the system cannot load it: ", why ? why : failed.message().c_str()));
  }
  if (!library.has("tenon_plugin_entry"))
    return refused(
        "expected it to export tenon_plugin_entry, which it lacks; build it with "
        "tenon_add_plugin");
  Entry entry = &library.get<int32_t(const tn_offer*, tn_accept*)>("tenon_plugin_entry");
  if (!dlopen(library.location().c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE))
    return refused("the library cannot be kept loaded");
  return entry;
}

// Of calls of init and deinit, which are [serial], whichever session makes them. A thread may come
// again: from inside of one call it may open a session. As libraries stay, so do their locks.
std::recursive_mutex& turns_of(const tn_plugin* library) {
  static std::mutex lock;
  static std::map<const tn_plugin*, std::recursive_mutex> turns;
  std::lock_guard hold(lock);
  return turns[library];
}

Status check_members(const tn_plugin& plugin) {
  auto lacks = [](std::string_view member) {
    return refused(cat("its tn_plugin has no ", member, ", which every plugin needs"));
  };
  if (!plugin.create) return lacks("create");
  if (!plugin.destroy) return lacks("destroy");
  if (!plugin.get_interface) return lacks("get_interface");
  if (plugin.component_count > kMostComponents)
    return refused(cat("its tn_plugin says ", plugin.component_count,
                       " components: expected at most ", kMostComponents));
  if (plugin.component_count && !plugin.components) return lacks("components");
  return {};
}

Status same(std::string_view what, tn_str got, std::string_view said) {
  if (view(got) == said) return {};
  return refused(cat(what, ": its description says '", said, "', its code says '", view(got),
                     "'; both must come from one text, as the SDK's macros write it"));
}

Status adopt_components(const tn_plugin& plugin, const PluginText& said, Plugin& into) {
  for (uint64_t i = 0; i < plugin.component_count; ++i) {
    std::string what = cat("component ", i);
    TN_TRY(c, adopt_struct(what, plugin.components[i], kLeastComponent));
    into.components.push_back(c);
    std::string name = cat(what, " ", view(c.id));
    const ComponentText* text = said.find(view(c.role), view(c.id));
    if (!text)
      return refused(cat(name, " of role ", view(c.role), " is missing in its description"));
    TN_CHECK(same(cat(name, " version"), c.version, text->version));
    TN_CHECK(same(cat(name, " summary"), c.summary, text->summary));
    TN_CHECK(same(cat(name, " options schema"), c.options_schema, text->schema));
  }
  if (said.components.size() != into.components.size())
    return refused(cat("its description has ", said.components.size(), " components, its code ",
                       into.components.size()));
  return {};
}

Status shake_hands(Entry entry, const PluginText& said, Plugin& into) {
  tn_offer offer = host_offer();
  tn_accept accept{};
  accept.struct_size = sizeof accept;
  int32_t code = entry(&offer, &accept);
  TN_CHECK(check_accept(offer, code, accept));
  TN_TRY(table, adopt_struct("its tn_plugin", accept.plugin, kLeastPlugin));
  TN_CHECK(check_members(table));
  into.table = table;
  into.turns = &turns_of(accept.plugin);
  TN_CHECK(same("plugin id", table.id, said.id));
  TN_CHECK(same("plugin version", table.version, said.version));
  return adopt_components(table, said, into);
}

}  // namespace

tn_offer host_offer() {
  return {sizeof(tn_offer),  0,
          TN_ABI_MAJOR,      TN_ABI_MINOR,
          TN_ABI_MAJOR,      TN_ABI_OLDEST_MINOR,
          8 * sizeof(void*), kSanitizers,
          str("tenon"),      str(TENON_VERSION)};
}

Status check_accept(const tn_offer& offer, int32_t code, const tn_accept& accept) {
  if (code != TN_OK) {
    const char* why = accept.refusal ? accept.refusal : "it gave no reason";
    return refused(cat("the plugin refuses this host (Tenon ", view(offer.host_version), ", ABI ",
                       offer.abi_major, ".", offer.abi_minor, "): ", why));
  }
  if (accept.abi_major < offer.oldest_major || accept.abi_major > offer.abi_major)
    return refused(cat("ABI major: expected ", offer.oldest_major, " to ", offer.abi_major,
                       ", got ", accept.abi_major, "; ",
                       accept.abi_major > offer.abi_major ? "install a newer Tenon"
                                                          : "rebuild the plugin with this SDK"));
  if (accept.abi_major == offer.abi_major && accept.needs_minor > offer.abi_minor)
    return refused(cat("ABI minor: it needs ", accept.abi_major, ".", accept.needs_minor,
                       ", this host has ", offer.abi_major, ".", offer.abi_minor,
                       "; install a newer Tenon"));
  if (accept.abi_major == offer.oldest_major && accept.built_minor < offer.oldest_minor)
    return refused(cat("ABI minor: it was built with ", accept.abi_major, ".", accept.built_minor,
                       ", tables have changed since and this host takes ", offer.oldest_major, ".",
                       offer.oldest_minor, " and newer; rebuild the plugin with this SDK"));
  if (accept.pointer_bits != offer.pointer_bits)
    return refused(
        cat("pointer bits: expected ", offer.pointer_bits, ", got ", accept.pointer_bits));
  if (accept.sanitizer != offer.sanitizer)
    return refused(cat("sanitizers: expected ", sanitizer_names(offer.sanitizer), ", got ",
                       sanitizer_names(accept.sanitizer),
                       "; build host and plugin with the same -fsanitize"));
  return {};
}

const tn_component* Plugin::find(std::string_view role, std::string_view id) const {
  for (const tn_component& c : components)
    if (view(c.role) == role && view(c.id) == id) return &c;
  return nullptr;
}

Plugin::~Plugin() {
  if (!initialised || !table.deinit) return;
  std::lock_guard hold(*turns);
  table.deinit(state);
}

Status load_plugin(Plugin& plugin, const PluginText& said) {
  KeptFloatMode kept;
  TN_TRY(entry, open_library(plugin.file));
  TN_CHECK(shake_hands(entry, said, plugin));
  if (plugin.table.init) {
    std::lock_guard hold(*plugin.turns);
    Status failed(plugin.table.init(&plugin.ctx.host, &plugin.state));
    if (!failed.ok()) return std::move(failed).in("its init failed", said.id);
  }
  plugin.initialised = true;
  return {};
}

}  // namespace tenon::host
