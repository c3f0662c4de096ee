// SPDX-License-Identifier: Apache-2.0
#include "image.hpp"

#include <algorithm>

namespace tenon::augment {
namespace {

Status check_dtype(const Field& field) {
  if (field.dtype == TN_F32 || field.dtype == TN_U8) return {};
  return invalid(
      cat("field ", field.name, ": expected float32 or uint8, got ", dtype_name(field.dtype)));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (int64_t dim : shape)
    out += cat(out.size() > 1 ? ", " : "", dim);
  return out + "]";
}

}  // namespace

Result<Image> image_of(const Field& field) {
  TN_CHECK(check_dtype(field));
  const std::vector<int64_t>& s = field.sample;
  if (s.size() != 2 && s.size() != 3)
    return invalid(cat("field ", field.name, ": expected an image [channels, height, width] or ",
                       "[height, width], got samples of ", shape_text(s)));
  Image out{s.size() == 3 ? s[0] : 1, 0, 0, field.dtype == TN_U8, {}};
  out.resize(s[s.size() - 2], s[s.size() - 1]);
  if (out.at.empty()) return invalid(cat("field ", field.name, ": its samples are empty"));
  return out;
}

Result<Image> numbers_of(const Field& field) {
  if (field.sample.size() == 2 || field.sample.size() == 3) return image_of(field);
  TN_CHECK(check_dtype(field));
  Image out{1, 0, 0, field.dtype == TN_U8, {}};
  out.resize(1, element_count(field.sample));
  return out;
}

void read(const Tensor& batch, uint64_t i, Image& out) {
  DLTensor t = batch.dl();
  uint64_t first = i * out.at.size();
  if (out.whole)
    std::copy_n(data_of<const uint8_t>(t) + first, out.at.size(), out.at.begin());
  else
    std::copy_n(data_of<const float>(t) + first, out.at.size(), out.at.begin());
}

void write(const Image& image, uint64_t i, const DLTensor& batch) {
  uint64_t first = i * image.at.size();
  if (dtype_of(batch) == TN_F32) {
    std::copy(image.at.begin(), image.at.end(), data_of<float>(batch) + first);
  } else {
    std::transform(image.at.begin(), image.at.end(), data_of<uint8_t>(batch) + first,
                   [](float x) { return static_cast<uint8_t>(x); });
  }
}

}  // namespace tenon::augment
