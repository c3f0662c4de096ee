/* SPDX-License-Identifier: Apache-2.0
 * The handshake, and what a plugin is. Frozen: these structs only ever grow at their ends.
 *
 * A plugin exports exactly one symbol, tenon_plugin_entry. Besides, it carries its description as
 * bytes in the section ".tenon.plugin", so that listing runs none of its code: records of
 * NUL-terminated texts, one after the other, in any order, with zero bytes between allowed:
 *   "TENON-PLUGIN-1" id version name vendor license url
 *   "TENON-COMPONENT-1" role id version summary options_schema
 * They must say the same as the entry function does; the SDK's macros write both from one text. */
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H
#include "tenon/base.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TN_SAN_NONE 0u
#define TN_SAN_ADDRESS 1u
#define TN_SAN_THREAD 2u
#define TN_SAN_MEMORY 4u
#define TN_SAN_UNDEFINED 8u

typedef struct tn_offer { /* host -> plugin, valid during the call */
  uint32_t struct_size;
  uint32_t reserved0;
  uint32_t abi_major; /* newest that the host speaks */
  uint32_t abi_minor;
  uint32_t oldest_major; /* oldest that it still speaks */
  uint32_t oldest_minor;
  uint32_t pointer_bits;
  uint32_t sanitizer; /* TN_SAN_* */
  tn_str host_name;
  tn_str host_version;
} tn_offer;

struct tn_plugin;
typedef struct tn_accept { /* plugin -> host: the host zeroes it, sets struct_size, and the
                              plugin writes only inside that many bytes */
  uint32_t struct_size;
  uint32_t flags;       /* TN_ACCEPT_* */
  uint32_t abi_major;   /* chosen */
  uint32_t needs_minor; /* lowest host minor that works */
  uint32_t built_minor; /* header that it was compiled with: the offer's oldest minor or newer */
  uint32_t pointer_bits;
  uint32_t sanitizer;
  uint32_t reserved0;
  const struct tn_plugin* plugin; /* static storage */
  const char* refusal; /* when the result is not TN_OK: why, and what to install; static */
} tn_accept;
#define TN_ACCEPT_UNLOADABLE 1u /* of no effect: a library stays loaded once its code has run */
/* Works when the two sides share nothing but these two structs: no host call, no allocation, no
 * output; may be called many times, also from two threads. Returns TN_OK or a status code. [pure] */
TN_EXPORT int32_t TN_CALL tenon_plugin_entry(const tn_offer* offer, tn_accept* accept);

typedef struct tn_component { /* static data of a plugin */
  uint32_t struct_size;
  uint32_t flags; /* TN_COMP_* */
  tn_str role;    /* "tenon.pass/1" */
  tn_str id;      /* "quantizer.static"; "com.acme.awq" for third parties; unique per role */
  tn_str version;
  tn_str summary; /* one line */
  /* JSON Schema subset (host/schemas/README.md): checked options, defaults and help everywhere.
   * Top-level "extensions": [".npz"] says which files a reader, writer or data set is for. */
  tn_str options_schema;
} tn_component;
#define TN_COMP_REENTRANT 1u     /* its [serial] calls may be made concurrently: none waits its turn */
#define TN_COMP_DETERMINISTIC 2u /* same input and seed, same bytes */
#define TN_COMP_DRAFT 4u         /* not used, nor are its rows, unless drafts are enabled */

typedef struct tn_host {
  uint32_t struct_size;
  uint32_t reserved0;
  uint32_t abi_major;
  uint32_t abi_minor;
  tn_ctx* ctx; /* who is asking: pass it to the services that want one */
  /* The table of a host service ("tenon.host.graph/1"), or NULL; lives as long as the host. [any] */
  const void*(TN_CALL* get_interface)(const struct tn_host*, tn_str id);
} tn_host;

typedef struct tn_plugin {
  uint32_t struct_size;
  uint32_t reserved0;
  tn_str id;
  tn_str version;
  tn_str name;
  tn_str vendor;
  tn_str license;
  tn_str url;
  uint64_t component_count;
  const tn_component* const* components;
  /* Counted: called again only after deinit, or by a second host in the process. The host table
   * lives until deinit, and out_state is the plugin's own. Errors: any; the plugin is not loaded. [serial] */
  tn_status*(TN_CALL* TN_NULLABLE init)(const tn_host*, void** out_state);
  void(TN_CALL* TN_NULLABLE deinit)(void* state); /* [serial] */
  /* options: checked against the schema, defaults filled in, borrowed for the call. out_self: the
   * plugin's own until destroy. Errors: any; TN_INVALID_ARGUMENT: options that contradict each other. [any] */
  tn_status*(TN_CALL* create)(void* state, tn_str role, tn_str component_id, const tn_options*,
                              void** out_self);
  void(TN_CALL* destroy)(void* self); /* [serial] */
  /* The table of the component's role or of an optional interface, or NULL; the same answer each
   * time, valid until destroy. [any] */
  const void*(TN_CALL* get_interface)(void* self, tn_str id);
} tn_plugin;

#ifdef __cplusplus
}
#endif
#endif
