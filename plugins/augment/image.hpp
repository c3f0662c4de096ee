// SPDX-License-Identifier: Apache-2.0
#pragma once
// One sample as numbers: float32 as they are, uint8 as whole numbers from 0 to 255.

#include <string>
#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon::augment {

// A field of a data set.
struct Field {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  std::vector<int64_t> sample;  // shape of one sample

  Field of_size(int64_t height, int64_t width) const {  // of an image
    Field out = *this;
    out.sample.back() = width;
    out.sample[out.sample.size() - 2] = height;
    return out;
  }
};

struct Image {  // [channels, height, width]
  int64_t channels = 0, height = 0, width = 0;
  bool whole = false;  // whole numbers, which an augmentation leaves whole and within 0 to bound()
  std::vector<float> at;

  float bound() const { return whole ? 255.0f : 1.0f; }  // what white is
  int64_t plane() const { return height * width; }
  float* channel(int64_t c) { return at.data() + c * plane(); }
  const float* channel(int64_t c) const { return at.data() + c * plane(); }
  void resize(int64_t new_height, int64_t new_width) {
    height = new_height;
    width = new_width;
    at.resize(static_cast<size_t>(channels * plane()));
  }
};

// An empty image of the field's size. Two axes are one channel; others are no image.
Result<Image> image_of(const Field& field);
// Any field of float32 or uint8, as one row where it is no image.
Result<Image> numbers_of(const Field& field);

// Sample i of a batch.
void read(const Tensor& batch, uint64_t i, Image& out);
void write(const Image& image, uint64_t i, const DLTensor& batch);

}  // namespace tenon::augment
