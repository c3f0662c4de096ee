// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that was freed, but that malloc keeps between blocks that stay: its pages go back to the
// system. Takes milliseconds, so it is for moments in which hundreds of megabytes were freed.

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tenon::host {

inline void give_back_free_pages() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace tenon::host
