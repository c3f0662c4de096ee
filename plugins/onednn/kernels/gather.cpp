// SPDX-License-Identifier: Apache-2.0
// Index checks and the cutting of gathers; the rows themselves are memcpy or level/embedding.cpp.

#include "gather.h"

#include <cstring>

#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace {

int64_t id_at(const GatherArgs& args, int64_t i) {
  const int64_t id = args.ids_type == ElementType::kI32 ? static_cast<const int32_t*>(args.ids)[i]
                                                        : static_cast<const int64_t*>(args.ids)[i];
  return id < 0 ? id + args.m : id;
}

}  // namespace

int64_t gather_rows(const Context& context, const GatherArgs& args) {
  for (int64_t i = 0; i < args.n; ++i) {
    const int64_t id = id_at(args, i);
    if (id < 0 || id >= args.m) return i;
  }
  parallel_for(context.parallel, args.outer * args.n, grain_rows(args.row_bytes * 2),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t row = lo; row < hi; ++row) {
                   const int64_t from = row / args.n * args.m + id_at(args, row % args.n);
                   std::memcpy(static_cast<char*>(args.dst) + row * args.row_bytes,
                               static_cast<const char*>(args.src) + from * args.row_bytes,
                               static_cast<uint64_t>(args.row_bytes));
                 }
               });
  return -1;
}

int64_t embed(const Context& context,
              const EmbeddingArgs& args,
              std::span<const int64_t> table_rows) {
  for (int k = 0; k < args.n_tables; ++k) {
    const int64_t m = table_rows[static_cast<uint64_t>(k)];
    for (int64_t i = 0; i < args.norm.rows; ++i) {
      if (args.ids[k][i] < -m || args.ids[k][i] >= m) return i;
    }
  }
  parallel_for(context.parallel, args.norm.rows, grain_rows(args.norm.n * 16),
               [&](int64_t lo, int64_t hi) {
                 context.table->embedding_rows(args, table_rows.data(), lo, hi);
               });
  return -1;
}

}  // namespace tenon::onednn::kernels
