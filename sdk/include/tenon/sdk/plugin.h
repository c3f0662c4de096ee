/* SPDX-License-Identifier: Apache-2.0
 * For plugins in C99, over the ABI alone: the handshake, and texts. No C++, no state.
 *
 *   TENON_C_DESCRIPTION = TENON_C_PLUGIN("com.acme", "1.0.0", "Acme", "Acme Ltd", "MIT", "")
 *       TENON_C_COMPONENT("tenon.schedule/1", "com.acme.wave", "1.0.0", "a wave", SCHEMA);
 *   TN_EXPORT int32_t TN_CALL tenon_plugin_entry(const tn_offer* offer, tn_accept* accept) {
 *     return tenon_c_accept(offer, accept, &plugin);
 *   } */
#ifndef TENON_SDK_PLUGIN_H
#define TENON_SDK_PLUGIN_H
#include <string.h>

#include "tenon/abi.h"
#include "tenon/sdk/compiler.h"

/* The bytes from which the host lists the plugin without running it. All arguments are literals. */
#define TENON_C_DESCRIPTION TENON_DESCRIBES static const char tenon_c_description[]
#define TENON_C_PLUGIN(id, version, name, vendor, license, url) \
  "TENON-PLUGIN-1\0" id "\0" version "\0" name "\0" vendor "\0" license "\0" url "\0"
#define TENON_C_COMPONENT(role, id, version, summary, schema) \
  "TENON-COMPONENT-1\0" role "\0" id "\0" version "\0" summary "\0" schema "\0"

/* A literal as a tn_str: in initializers, and as a value. */
#define TENON_C_TEXT(literal) {(literal), sizeof(literal) - 1}
static inline tn_str tenon_c_str(const char* text) {
  tn_str made = {text, strlen(text)};
  return made;
}
static inline int tenon_c_same(tn_str a, const char* b) {
  return a.len == strlen(b) && memcmp(a.data, b, (size_t)a.len) == 0;
}

static inline int32_t tenon_c_accept(const tn_offer* offer,
                                     tn_accept* accept,
                                     const tn_plugin* plugin) {
  uint32_t size = accept->struct_size < sizeof *accept ? accept->struct_size : sizeof *accept;
  tn_accept made;
  memset(&made, 0, sizeof made);
  made.struct_size = accept->struct_size;
  made.abi_major = TN_ABI_MAJOR;
  made.needs_minor = made.built_minor = TN_ABI_MINOR;
  made.pointer_bits = (uint32_t)(8 * sizeof(void*));
  made.sanitizer = TENON_SANITIZER;
  made.plugin = plugin;
  if (offer->oldest_major > TN_ABI_MAJOR || offer->abi_major + 1 <= TN_ABI_MAJOR) {
    made.refusal = "built for another major of the Tenon ABI: rebuild it with this host's SDK";
  } else if (offer->abi_major == TN_ABI_MAJOR && offer->abi_minor < made.needs_minor) {
    made.refusal = "needs a newer minor of the Tenon ABI: update libtenon";
  } else if (offer->pointer_bits != made.pointer_bits) {
    made.refusal = "built for another pointer width: rebuild it for the host's platform";
  } else if (offer->sanitizer != made.sanitizer) {
    made.refusal = "built with other sanitizers than the host: rebuild it with the host's flags";
  }
  memcpy(accept, &made, size);
  return made.refusal ? TN_FAILED_PRECONDITION : TN_OK;
}
#endif
