// SPDX-License-Identifier: Apache-2.0
// Concat, shuffle and Split of channels; contract in ../channel_rows.h. Some pixels are joined in
// the cache, piece by piece, so that a table stays in its registers; then results are gathered.

#include "../instructions.h"
#include "byte_lookup.h"
#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

// Behind the last byte of a pixel a register may be read and written.
constexpr int64_t kJoinedBytes = int64_t{16} << 10;
static_assert(kJoinedBytes >= 2 * (kMostChannels + kChannelChunk));

// n pixels, `stride` bytes from one joined pixel to the next.
struct Joined {
  uint8_t* data;
  int64_t stride;
  int64_t n;
};

void join_plain(const ChannelPiece& piece, int64_t first, const Joined& to) {
  for (int64_t p = 0; p < to.n; ++p) {
    const uint8_t* const src = piece.src + (first + p) * piece.stride;
    uint8_t* const dst = to.data + p * to.stride;
    for (int64_t c = 0; c < piece.channels; ++c)
      dst[c] = piece.table != nullptr ? piece.table[src[c]] : src[c];
  }
}

void gather_plain(const ChannelResult& result, int64_t first, const Joined& from) {
  for (int64_t p = 0; p < from.n; ++p) {
    const uint8_t* const src = from.data + p * from.stride;
    uint8_t* const dst = result.dst + (first + p) * result.channels;
    for (int64_t c = 0; c < result.channels; ++c)
      dst[c] = src[result.from[c]];
  }
}

#if defined(__AVX512BW__)

inline __mmask64 bytes_mask(int64_t n) {
  return n >= kChannelChunk ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
}

template <bool kHasTable>
TENON_VBMI void join_registers(const ChannelPiece& piece, int64_t first, const Joined& to) {
  const RegisterTable table = kHasTable ? registers_of(piece.table) : RegisterTable();
  for (int64_t p = 0; p < to.n; ++p) {
    const uint8_t* const src = piece.src + (first + p) * piece.stride;
    uint8_t* const dst = to.data + p * to.stride;
    for (int64_t c = 0; c < piece.channels; c += kChannelChunk) {
      const __mmask64 mask = bytes_mask(piece.channels - c);
      __m512i x = _mm512_maskz_loadu_epi8(mask, src + c);
      if (kHasTable) x = look_up(table, x);
      _mm512_mask_storeu_epi8(dst + c, mask, x);
    }
  }
}

TENON_VBMI void gather_registers(const ChannelResult& result, int64_t first, const Joined& from) {
  for (int64_t c = 0; c < result.channels; c += kChannelChunk) {
    const ChannelChunk& chunk = result.chunks[c / kChannelChunk];
    const __mmask64 mask = bytes_mask(result.channels - c);
    const __m512i index = _mm512_loadu_si512(chunk.index[0]);
    const __m512i second = _mm512_loadu_si512(chunk.index[1]);
    for (int64_t p = 0; p < from.n; ++p) {
      const uint8_t* const src = from.data + p * from.stride;
      auto window = [&](int i) { return _mm512_loadu_si512(src + chunk.window[i]); };
      __m512i y = _mm512_permutex2var_epi8(window(0), index, window(1));
      if (chunk.n_windows > 2)
        y = _mm512_mask_blend_epi8(chunk.is_second, y,
                                   _mm512_permutex2var_epi8(window(2), second, window(3)));
      _mm512_mask_storeu_epi8(result.dst + (first + p) * result.channels + c, mask, y);
    }
  }
}

#endif

void join(const ChannelPiece& piece, int64_t first, const Joined& to) {
#if defined(__AVX512BW__)
  if (instructions().avx512_vbmi)
    return piece.table != nullptr ? join_registers<true>(piece, first, to)
                                  : join_registers<false>(piece, first, to);
#endif
  join_plain(piece, first, to);
}

void gather(const ChannelResult& result, int64_t first, const Joined& from) {
#if defined(__AVX512BW__)
  if (result.chunks != nullptr && instructions().avx512_vbmi)
    return gather_registers(result, first, from);
#endif
  gather_plain(result, first, from);
}

}  // namespace

void channel_rows(const ChannelRowsArgs& args, int64_t lo, int64_t hi) {
  alignas(64) uint8_t memory[kJoinedBytes];
  int64_t channels = 0;
  for (int i = 0; i < args.n_pieces; ++i)
    channels += args.pieces[i].channels;
  const int64_t stride = channels + kChannelChunk;
  const int64_t most = kJoinedBytes / stride;
  for (int64_t first = lo; first < hi; first += most) {
    const int64_t n = hi - first < most ? hi - first : most;
    int64_t at = 0;
    for (int i = 0; i < args.n_pieces; ++i) {
      join(args.pieces[i], first, {memory + at, stride, n});
      at += args.pieces[i].channels;
    }
    for (int i = 0; i < args.n_results; ++i)
      gather(args.results[i], first, {memory, stride, n});
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
