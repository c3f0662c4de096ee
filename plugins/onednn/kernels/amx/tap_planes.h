// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the windows of a convolution see, for tiles that read it where it lies. The pixels of some
// lines are copied once, with padding, to one plane for each phase of the strides: pixel (y, x) of
// phase (py, px) is pixel (y * stride_y + py, x * stride_x + px) of the image. There, what a tap of
// the window sees at places side by side lies side by side, at one distance from what the first tap
// sees. Lines of a plane follow each other with their padding in common, so that a tile goes on
// across their ends; the places that lie in the padding have results which nobody wants (RowGaps).

#include <cstring>

#include "../tile_product_args.h"

namespace tenon::onednn::kernels::amx {

class TapPlanes {
 public:
  TapPlanes(const TileTaps& taps, uint8_t zero) : w_(taps), zero_(zero) {}

  // Copies what `count` lines of the result see, from line `first` of an image.
  void make(const char* image, int64_t first, int64_t count, char* to) {
    planes_ = to;
    rows_ = count + w_.y.last - w_.y.first;
    for (int64_t py = 0; py < w_.stride_y; ++py)
      for (int64_t px = 0; px < w_.stride_x; ++px)
        if (w_.sees_phase(py, px)) copy_phase(image, first + w_.y.first, {py, px});
    int64_t end = 0;  // of what the tap before this one sees
    for (int64_t tap = 0; tap < w_.count(); ++tap) {
      const int64_t at = tap_offset(tap);
      jumps_[tap] = at - end;
      end = at + w_.pixel_bytes;
    }
  }
  // What the first tap sees at a place of the padded lines.
  const char* at(int64_t place) const { return planes_ + jumps_[0] + place * w_.pixel_bytes; }
  // From the end of what a tap sees to what the next one sees, for each tap.
  const int64_t* jumps() const { return jumps_; }

 private:
  struct Phase {
    int64_t y, x;
  };

  char* plane(const Phase& phase) const {
    return planes_ + (phase.y * w_.stride_x + phase.x) * tap_plane_bytes(w_, rows_);
  }

  void copy_phase(const char* image, int64_t first, const Phase& phase) const {
    char* to = plane(phase);
    const int64_t line_bytes = w_.line() * w_.pixel_bytes;
    for (int64_t i = 0; i < rows_; ++i, to += line_bytes) {
      const int64_t y = (first + i) * w_.stride_y + phase.y;
      if (y < 0 || y >= w_.height)
        fill(to, w_.line());
      else
        copy_line(image + y * w_.width * w_.pixel_bytes, phase.x, to);
    }
    fill(to, w_.gap());
  }
  void copy_line(const char* from, int64_t phase, char* to) const {
    const int64_t outside = -w_.x.first;
    const int64_t pixels = (w_.width - phase + w_.stride_x - 1) / w_.stride_x;
    const int64_t space = w_.line() - outside;
    const int64_t inside = pixels < space ? pixels : space;
    fill(to, outside);
    to += outside * w_.pixel_bytes;
    from += phase * w_.pixel_bytes;
    if (w_.stride_x == 1) {
      std::memcpy(to, from, bytes(inside * w_.pixel_bytes));
      to += inside * w_.pixel_bytes;
    } else {
      const int64_t step = w_.stride_x * w_.pixel_bytes;
      for (int64_t i = 0; i < inside; ++i, from += step, to += w_.pixel_bytes)
        std::memcpy(to, from, bytes(w_.pixel_bytes));
    }
    fill(to, space - inside);
  }
  void fill(char* to, int64_t pixels) const {
    if (pixels > 0) std::memset(to, zero_, bytes(pixels * w_.pixel_bytes));
  }
  static size_t bytes(int64_t n) { return static_cast<size_t>(n); }

  // In the planes, of what a tap sees at the first place.
  int64_t tap_offset(int64_t tap) const {
    const TapPlace y = tap_place(tap / w_.window_width * w_.step_y - w_.pad_top, w_.stride_y);
    const TapPlace x = tap_place(tap % w_.window_width * w_.step_x - w_.pad_left, w_.stride_x);
    return (y.phase * w_.stride_x + x.phase) * tap_plane_bytes(w_, rows_) +
           ((y.at - w_.y.first) * w_.line() + x.at - w_.x.first) * w_.pixel_bytes;
  }

  const TileTaps& w_;
  uint8_t zero_;
  char* planes_ = nullptr;
  int64_t rows_ = 0;  // of a plane
  int64_t jumps_[kMostTaps] = {};
};

}  // namespace tenon::onednn::kernels::amx
