// SPDX-License-Identifier: Apache-2.0
// "datasets.images": a folder of images, or of one folder per class. Images are decoded when a
// batch asks for them, so memory does not grow with the folder.
#include <algorithm>
#include <filesystem>
#include <mutex>

#include "array_table.hpp"
#include "crop.hpp"
#include "file.hpp"

namespace tenon::datasets {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLabel = "label";

struct Item {
  std::string path;
  int64_t label = 0;
};

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png" || ending == ".bmp";
}

// Sorted, so that the order of samples does not depend on the file system. What is hidden is left
// out: a folder of a notebook's checkpoints would be the first class.
Result<std::vector<fs::path>> listing(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> out;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (!at->path().filename().string().starts_with('.')) out.push_back(at->path());
  if (failed)
    return Status(TN_NOT_FOUND, cat(folder.string(), ": expected a folder: ", failed.message()));
  std::sort(out.begin(), out.end());
  return out;
}

Status add_images(const fs::path& folder, int64_t label, std::vector<Item>* out) {
  TN_TRY(paths, listing(folder));
  for (const fs::path& path : paths)
    if (is_image(path)) out->push_back({path.string(), label});
  return {};
}

class Images {
 public:
  static Result<Images> create(tn_ctx* ctx, const Options& options) {
    Images out;
    out.ctx_ = ctx;
    out.field_ = options.text("field");
    TN_TRY(preparation, Preparation::from(options));
    out.preparation_ = preparation;
    fs::path folder = options.text("path");
    std::error_code ignored;
    if (!fs::exists(folder, ignored))
      return invalid(cat(folder.string(), ": expected a folder of images, got no such file"));
    TN_CHECK(add_images(folder, 0, &out.items_));
    if (out.items_.empty()) TN_CHECK(out.add_classes(folder));
    if (out.items_.empty())
      return invalid(cat(folder.string(), ": no .jpg, .png or .bmp in it or in its folders"));
    TN_TRY(first, out.load(0));
    if (!out.classes_.empty() && out.field_ == kLabel)
      return invalid(
          cat("option field: expected another name than ", kLabel, ", the field of the classes"));
    out.height_ = first.height;
    out.width_ = first.width;
    return out;
  }

  uint64_t size() const { return items_.size(); }
  Status fields(Sink& sink) const {
    std::vector<Field> list = {{field_, TN_F32, preparation_.shape(height_, width_), {}}};
    if (!classes_.empty()) list.push_back({kLabel, TN_I64, {}, {}});
    return sink.write(fields_json(list));
  }

  Status batch(std::span<const uint64_t> index, uint64_t, const Outputs& outputs) {
    TN_CHECK(check_index(index, size()));
    std::vector<int64_t> shape = preparation_.shape(height_, width_);
    size_t numbers = static_cast<size_t>(element_count(shape));
    int64_t n = static_cast<int64_t>(index.size());
    shape.insert(shape.begin(), n);
    TN_TRY(out, outputs.get(0, TN_F32, shape));
    if (!classes_.empty()) {
      TN_TRY(labels, outputs.get(1, TN_I64, std::span<const int64_t>(&n, 1)));
      for (size_t i = 0; i < index.size(); ++i)
        data_of<int64_t>(labels)[i] = items_[index[i]].label;
    }
    std::vector<Status> failures(index.size());
    float* to = data_of<float>(out);
    parallel_for(ctx_, index.size(), 1, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i)
        failures[i] = Status(guard([&] { return write(index[i], to + i * numbers); }));
    });
    for (Status& failure : failures)
      if (!failure.ok()) return std::move(failure);
    return {};
  }
  const std::string& origin(uint64_t index) const { return items_[index].path; }

 private:
  Status add_classes(const fs::path& folder) {
    TN_TRY(paths, listing(folder));
    for (const fs::path& path : paths) {
      std::error_code ignored;  // a link that leads nowhere is no folder
      if (!fs::is_directory(path, ignored)) continue;
      TN_CHECK(add_images(path, static_cast<int64_t>(classes_.size()), &items_));
      classes_.push_back(path.filename().string());
    }
    return {};
  }

  Result<Picture> load(uint64_t i) const {
    const std::string& path = items_[i].path;
    TN_TRY(file, File::open(ctx_, path));
    Result<Picture> decoded = decode(file.bytes(), preparation_.channels);
    if (!decoded.ok()) return std::move(decoded).status().in(path);
    Result<Picture> shaped = preparation_.shaped(std::move(*decoded));
    if (!shaped.ok()) return std::move(shaped).status().in(path);
    return shaped;
  }

  Status write(uint64_t i, float* to) const {
    TN_TRY(picture, load(i));
    if (picture.height != height_ || picture.width != width_)
      return invalid(cat(items_[i].path, ": expected ", height_, "x", width_,
                         " (height x width) as the first image, got ", picture.height, "x",
                         picture.width, "; use option crop, or resize with two numbers"));
    preparation_.write(picture, to);
    return {};
  }

  tn_ctx* ctx_ = nullptr;
  std::string field_;
  Preparation preparation_;
  std::vector<Item> items_;
  std::vector<std::string> classes_;
  int64_t height_ = 0, width_ = 0;
};

}  // namespace
}  // namespace tenon::datasets

TENON_DATASET(images,
              tenon::datasets::Images,
              "datasets.images",
              "a folder of images, flat or one folder per class",
              R"({
  "extensions": ["/"],
  "properties": {
    "path": {"type": "path", "description": "the folder"},
    "resize": {"type": ["integer", "array"], "items": {"type": "integer"},
               "description": "shorter side, or [height, width]; bilinear with antialiasing"},
    "crop": {"type": ["integer", "array"], "items": {"type": "integer"},
             "description": "side or [height, width], cut from the centre"},
    "color": {"type": "string", "enum": ["rgb", "bgr", "gray"], "default": "rgb",
              "description": "channels and their order"},
    "scale": {"type": "number", "default": 0.00392156862745098, "description": "times each sample, first"},
    "mean": {"type": ["number", "array"], "items": {"type": "number"}, "description": "subtracted then, per channel"},
    "std": {"type": ["number", "array"], "items": {"type": "number"}, "description": "divided by then, per channel"},
    "layout": {"type": "string", "enum": ["nchw", "nhwc"], "default": "nchw", "description": "order of axes"},
    "field": {"type": "string", "default": "image", "description": "name of the float32 field"}},
  "required": ["path"]})")
