// SPDX-License-Identifier: Apache-2.0
// Sums of embedding rows, normalised while they are in L1; contract in ../gather.h.

#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int64_t kMaxColumns = 8192;

Source advance(const Source& from, int64_t n) {
  if (from.data == nullptr) return from;
  const char* data = static_cast<const char*>(from.data) + n * element_bytes(from.type);
  return {data, from.type, from.quant};
}
Target advance(const Target& from, int64_t n) {
  if (from.data == nullptr) return from;
  return {static_cast<char*>(from.data) + n * element_bytes(from.type), from.type, from.quant};
}

}  // namespace

void embedding_rows(const EmbeddingArgs& args, const int64_t* table_rows, int64_t lo, int64_t hi) {
  alignas(64) float sum[kMaxColumns];
  alignas(64) float row[kMaxColumns];
  const int64_t n = args.norm.n;
  for (int64_t r = lo; r < hi; ++r) {
    for (int k = 0; k < args.n_tables; ++k) {
      int64_t id = args.ids[k][r];
      if (id < 0) id += table_rows[k];
      load_f32(args.tables[k], id * n, n, k == 0 ? sum : row);
      for (int64_t i = 0; k > 0 && i < n; ++i)
        sum[i] += row[i];
    }
    NormArgs one = args.norm;
    one.src = {sum, ElementType::kF32, {}};
    one.residual = advance(args.norm.residual, r * n);
    one.sum = advance(args.norm.sum, r * n);
    one.dst = advance(args.norm.dst, r * n);
    one.dst2 = advance(args.norm.dst2, r * n);
    if (one.mean != nullptr) one.mean += r;
    if (one.inv_std != nullptr) one.inv_std += r;
    norm_rows(one, 0, 1);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
