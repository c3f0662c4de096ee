// SPDX-License-Identifier: Apache-2.0
// The first of equal numbers is the maximum, and NaN comes before all numbers.
#include "dilated_max.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/context.h"
#include "window_axes.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kChannels = 64;  // that are looked at at once
constexpr int32_t kOutside = -1;   // the tap of a window that has no pixel of the image

using Sizes = WindowAxes::Sizes;
struct DilatedMax : WindowAxes {
  int64_t images;
  int64_t channels;

  DilatedMax(const Window& window, const Dims& from, const Dims& to)
      : WindowAxes(window, from, to), images(from[0]), channels(from[1]) {}
  Sizes at(const Sizes& sizes, int64_t i) const {
    return {i / (sizes[1] * sizes[2]), i / sizes[2] % sizes[1], i % sizes[2]};
  }
  // The first pixel of a window, in the image or not.
  Sizes pixel(const Sizes& window) const {
    Sizes found;
    for (size_t axis = 0; axis < kAxes; ++axis)
      found[axis] = window[axis] * stride[axis] - pad[axis];
    return found;
  }
  int64_t offset(const Sizes& pixel) const {
    return ((pixel[0] * in[1] + pixel[1]) * in[2] + pixel[2]) * channels;
  }
};

// What is known of some channels of a window.
struct Best {
  std::array<float, kChannels> number;
  std::array<int32_t, kChannels> tap;
};

void take_first(int32_t tap, int64_t n, const float* src, Best* best) {
  std::copy_n(src, n, best->number.begin());
  std::fill_n(best->tap.begin(), n, tap);
}

void take_next(int32_t tap, int64_t n, const float* src, Best* best) {
  float* numbers = best->number.data();
  int32_t* taps = best->tap.data();
  for (int64_t c = 0; c < n; ++c) {
    const float number = src[c], most = numbers[c];
    const bool is_better = !(number <= most) && !std::isnan(most);
    numbers[c] = is_better ? number : most;
    taps[c] = is_better ? tap : taps[c];
  }
}

// n channels of one window from `src` on, the first of them of the image.
void find_best(const DilatedMax& m, const Sizes& window, int64_t n, const float* src, Best* best) {
  bool is_first = true;
  const Sizes begin = m.pixel(window);
  for (int64_t i = 0; i < m.kernel[0]; ++i) {
    const int64_t d = begin[0] + i * m.step[0];
    if (!kernels::is_inside(d, m.in[0])) continue;
    for (int64_t j = 0; j < m.kernel[1]; ++j) {
      const int64_t h = begin[1] + j * m.step[1];
      if (!kernels::is_inside(h, m.in[1])) continue;
      for (int64_t k = 0; k < m.kernel[2]; ++k) {
        const int64_t w = begin[2] + k * m.step[2];
        if (!kernels::is_inside(w, m.in[2])) continue;
        const auto tap = static_cast<int32_t>((i * m.kernel[1] + j) * m.kernel[2] + k);
        (is_first ? take_first : take_next)(tap, n, src + m.offset({d, h, w}), best);
        is_first = false;
      }
    }
  }
  if (!is_first) return;
  best->number.fill(-HUGE_VALF);
  best->tap.fill(kOutside);
}

// One row of windows; taps: nullptr where nobody asks for them.
void run_row(const DilatedMax& m, int64_t row, const float* src, float* dst, int32_t* taps) {
  const int64_t n_rows = m.out[0] * m.out[1];  // of an image
  const float* image = src + row / n_rows * m.in_count() * m.channels;
  Best best;
  for (int64_t x = 0; x < m.out[2]; ++x) {
    const Sizes window{row % n_rows / m.out[1], row % m.out[1], x};
    for (int64_t first = 0; first < m.channels; first += kChannels) {
      const int64_t n = std::min(kChannels, m.channels - first);
      const int64_t to = (row * m.out[2] + x) * m.channels + first;
      find_best(m, window, n, image + first, &best);
      std::copy_n(best.number.begin(), n, dst + to);
      if (taps != nullptr) std::copy_n(best.tap.begin(), n, taps + to);
    }
  }
}

// How far from a window's first pixel, which may lie outside of the image, each tap's is.
std::vector<int64_t> offsets_of_taps(const DilatedMax& m) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < m.n_taps(); ++i) {
    Sizes tap = m.at(m.kernel, i);
    for (size_t axis = 0; axis < WindowAxes::kAxes; ++axis)
      tap[axis] *= m.step[axis];
    offsets.push_back(m.offset(tap));
  }
  return offsets;
}

// One image's gradient of up to kChannels channels, from `first` on.
void spread(const DilatedMax& m,
            const std::vector<int64_t>& offsets,
            int64_t first,
            const float* dy,
            const int32_t* taps,
            float* dx) {
  const int64_t n = std::min(kChannels, m.channels - first);
  for (int64_t i = 0; i < m.in_count(); ++i)
    std::fill_n(dx + i * m.channels + first, n, 0.0F);
  const int64_t n_windows = m.out_count();
  for (int64_t i = 0; i < n_windows; ++i) {
    const int64_t from = i * m.channels + first, to = m.offset(m.pixel(m.at(m.out, i))) + first;
    for (int64_t c = 0; c < n; ++c) {
      const int32_t tap = taps[from + c];
      if (tap != kOutside) dx[to + offsets[static_cast<size_t>(tap)] + c] += dy[from + c];
    }
  }
}

Step step_of(const std::string& name, const DilatedMax& m, const View& dst) {
  Step step{.name = name, .kernel = "tenon:dilated_max", .always_succeeds = true};
  step.flops =
      static_cast<double>(m.images * m.out_count() * m.channels) * static_cast<double>(m.n_taps());
  step.bytes = static_cast<double>(m.images * m.in_count() * m.channels) * sizeof(float) +
               static_cast<double>(dst.bytes());
  return step;
}

}  // namespace

bool is_dilated(const Window& window) {
  return std::any_of(window.dilates.begin(), window.dilates.end(),
                     [](int64_t dilation) { return dilation > 0; });
}

Place taps_of(Lowering& lowering, const Dims& dst) {
  return {lowering.scratch(element_count(dst) * static_cast<int64_t>(sizeof(int32_t))), 0};
}

void add_dilated_max(Lowering& lowering,
                     const std::string& name,
                     const Window& window,
                     const View& src,
                     const View& dst,
                     const Place* taps) {
  const DilatedMax m(window, src.dims, dst.dims);
  Step step = step_of(name, m, dst);
  step.places = {place_of(src), place_of(dst)};
  if (taps != nullptr) step.places.push_back(*taps);
  step.kernel_function = [m, keeps = taps != nullptr](const kernels::Context& context,
                                                      void* const* pointers) -> const char* {
    const int64_t row_bytes = m.out[2] * m.channels * m.n_taps() * int64_t{sizeof(float)};
    kernels::parallel_for(context.parallel, m.images * m.out[0] * m.out[1],
                          kernels::grain_rows(row_bytes), [&](int64_t lo, int64_t hi) {
                            for (int64_t row = lo; row < hi; ++row)
                              run_row(m, row, static_cast<const float*>(pointers[0]),
                                      static_cast<float*>(pointers[1]),
                                      keeps ? static_cast<int32_t*>(pointers[2]) : nullptr);
                          });
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

void add_dilated_max_grad(Lowering& lowering,
                          const std::string& name,
                          const Window& window,
                          const View& dy,
                          const View& dx,
                          Place taps) {
  const DilatedMax m(window, dx.dims, dy.dims);
  Step step = step_of(name, m, dy);
  step.places = {place_of(dy), taps, place_of(dx)};
  step.kernel_function = [m, offsets = offsets_of_taps(m)](const kernels::Context& context,
                                                           void* const* pointers) -> const char* {
    const int64_t n_blocks = (m.channels + kChannels - 1) / kChannels;
    const int64_t n_windows = m.out_count();
    const int64_t bytes = (m.in_count() + n_windows) * kChannels * int64_t{sizeof(float)};
    kernels::parallel_for(
        context.parallel, m.images * n_blocks, kernels::grain_rows(bytes),
        [&](int64_t lo, int64_t hi) {
          for (int64_t i = lo; i < hi; ++i) {
            const int64_t image = i / n_blocks, from = image * n_windows * m.channels;
            spread(m, offsets, i % n_blocks * kChannels,
                   static_cast<const float*>(pointers[0]) + from,
                   static_cast<const int32_t*>(pointers[1]) + from,
                   static_cast<float*>(pointers[2]) + image * m.in_count() * m.channels);
          }
        });
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn
