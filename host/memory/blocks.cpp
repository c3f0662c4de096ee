// SPDX-License-Identifier: Apache-2.0
// Service "tenon.host.memory/1": blocks counted against the plugin that asked.
#include <bit>
#include <new>

#include "tenon/host/memory.h"

#include "memory/free_memory.hpp"
#include "services/boundary.hpp"
#include "services/log.hpp"
#include "services/services.hpp"
#include "services/session.hpp"

namespace tenon::host {
namespace {

void* alloc(tn_ctx* ctx, uint64_t bytes, uint64_t align, tn_str tag) {
  if (align < 8 || !std::has_single_bit(align)) return nullptr;
  void* block = bytes > INT64_MAX || !fits_memory(bytes)
                    ? nullptr
                    : ::operator new(bytes ? bytes : 1, std::align_val_t{align}, std::nothrow);
  if (!block) {
    quietly([&] {
      ctx->session->log->write(TN_LOG_WARNING, ctx->id,
                               cat(view(tag), ": ", no_memory_text(bytes)));
    });
    return nullptr;
  }
  ctx->add(Held::kBlock, 1);
  ctx->add(Held::kBytes, static_cast<int64_t>(bytes));
  return block;
}

void free(tn_ctx* ctx, void* block, uint64_t bytes, uint64_t align) {
  if (!block) return;
  ctx->add(Held::kBlock, -1);
  ctx->add(Held::kBytes, -static_cast<int64_t>(bytes));
  ::operator delete(block, std::align_val_t{align});
}

}  // namespace

const tn_host_memory* memory_service() {
  static const tn_host_memory table{sizeof table, 1, alloc, free};
  return &table;
}

}  // namespace tenon::host
