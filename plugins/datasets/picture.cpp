// SPDX-License-Identifier: Apache-2.0
#include "picture.hpp"

#include <cstdlib>
#include <limits>
#include <memory>

#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_ASSERT(x) ((void)(x))  // broken files give an error, never an abort
#include <stb_image.h>

#define STB_IMAGE_RESIZE_STATIC
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STBIR_ASSERT(x) ((void)(x))
#include <stb_image_resize.h>

namespace tenon::datasets {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 27;  // a small file can claim any size

struct FreeSamples {
  void operator()(uint8_t* samples) const { stbi_image_free(samples); }
};

}  // namespace

Result<Picture> decode(std::string_view bytes, int64_t channels) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return invalid("larger than 2 GiB");
  auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  int size = static_cast<int>(bytes.size());
  int width = 0, height = 0, found = 0;
  if (!stbi_info_from_memory(data, size, &width, &height, &found))
    return invalid(cat("no JPEG, PNG or BMP image: ", stbi_failure_reason()));
  if (int64_t{width} * height > kMaxPixels)
    return invalid(cat("expected at most ", kMaxPixels, " pixels, got ", width, "x", height));
  std::unique_ptr<uint8_t, FreeSamples> samples(
      stbi_load_from_memory(data, size, &width, &height, &found, static_cast<int>(channels)));
  if (!samples) return invalid(cat("broken image: ", stbi_failure_reason()));
  Picture out{height, width, channels, {}};
  out.samples.assign(samples.get(), samples.get() + height * int64_t{width} * channels);
  return out;
}

Result<Picture> resized(const Picture& from, int64_t height, int64_t width) {
  if (from.height == height && from.width == width) return from;
  Picture out{height, width, from.channels, {}};
  out.samples.resize(static_cast<size_t>(height * width * from.channels));
  int done = stbir_resize_uint8_generic(
      from.samples.data(), static_cast<int>(from.width), static_cast<int>(from.height), 0,
      out.samples.data(), static_cast<int>(width), static_cast<int>(height), 0,
      static_cast<int>(from.channels), STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP,
      STBIR_FILTER_TRIANGLE, STBIR_COLORSPACE_LINEAR, nullptr);
  if (!done) return Status(TN_RESOURCE_EXHAUSTED, "no memory to resize an image");
  return out;
}

}  // namespace tenon::datasets
