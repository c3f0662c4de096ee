// SPDX-License-Identifier: Apache-2.0
#pragma once
// A word of 32 bits, over which products are summed: one f32, or two bf16. The bf16 instructions
// are written as assembly, so that one template serves both words and nothing else in a file may
// use instructions that its level does not promise. They take denormals as zero.

#include "elements.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

struct Single {
  using Element = float;
  static constexpr int kWord = 1;

  static void put(float* to, Vf v) { store(to, v); }
  static void put_words(float* to, const Vf (&v)[1]) { store(to, v[0]); }
  // sum += the products of one word with kLanes words
  static Vf dot(Vf sum, float word, Vf words) { return fma(splat(word), words, sum); }
};

#if defined(__AVX512F__)
struct Pair {
  using Element = Bf16;
  static constexpr int kWord = 2;

  static void put(Bf16* to, Vf v) {
    __m256i halves;
    asm("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(v));
    std::memcpy(to, &halves, sizeof halves);
  }
  static void put_words(float* to, const Vf (&v)[2]) {
    const __m512i kZip =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i halves;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(halves) : "v"(v[0]), "v"(v[1]));
    halves = _mm512_permutexvar_epi16(kZip, halves);
    std::memcpy(to, &halves, sizeof halves);
  }
  static Vf dot(Vf sum, float word, Vf words) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(splat(word)), "v"(words));
    return sum;
  }
};
#endif

}  // namespace tenon::onednn::kernels::TENON_LEVEL
