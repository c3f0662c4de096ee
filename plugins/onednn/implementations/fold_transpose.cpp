// SPDX-License-Identifier: Apache-2.0
// A ConvTranspose to few channels, which would fill little of oneDNN's vectors, or to channels that
// do not fill the last one: one product makes the window of each pixel, with the pixels along its
// columns, and kernels/fold.h adds the windows where they overlap.

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "kernels/fold.h"
#include "lowering/matrix_descriptor.hpp"
#include "primitive.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
// Channels that fill a vector, and so many that little of the last one is lost.
constexpr int64_t kLanes = 16, kMany = 64;
// Beyond as many channels, patches of pixels are as fast where channels lie side by side.
constexpr int64_t kFew = 4;
constexpr int64_t kMostColumnBytes = int64_t{64} << 20;

class FoldBuilder {
 public:
  explicit FoldBuilder(const ConvSite& site)
      : site_(site),
        lowering_(site.lowering),
        node_(site.node()),
        src_(site.dims(node_.inputs[0])),
        kernel_(site.dims(node_.inputs[1])),
        result_(site.dims(node_.outputs[0])) {}

  // Why it is no such product; empty: `describe` may be asked.
  std::string why_not() {
    if (lowering_.real_type() != ElementType::kF32) return "bf16";
    if (node_.integer("group", 1) != 1) return "several groups";
    if (site_.int8.is_exact) return "the operands are quantized to 8 bits";
    if (kernel_[1] % kLanes == 0 || kernel_[1] >= kMany) return "channels enough to fill vectors";
    fill_geometry();
    if (fold_.strides[kernels::kFoldAxes - 1] > kernels::kMostFoldStride)
      return "a stride of more than " + std::to_string(kernels::kMostFoldStride);
    if (column_bytes() > kMostColumnBytes) return "columns that take more than 64 MiB";
    const bool are_rows = is_row_major(lowering_.view(node_.inputs[0]));
    return !are_rows && are_apart() && kernel_[1] > kFew ? "patches of channels side by side" : "";
  }

  // Why oneDNN has no kernel for it; empty: `build` may be called.
  std::string describe() {
    View weights{.dims = {1, window(), n_channels()}, .strides = {1, 1, window()}};
    View columns{.dims = {n_images(), window(), n_pixels()}};
    columns.strides = row_major_strides(columns.dims);
    pd_ =
        dnnl::matmul::primitive_desc(lowering_.engine(), matrix(weights), matrix(planned_source()),
                                     matrix(columns), new_attr(), kMayFail);
    return why_no_kernel(pd_);
  }

  void build() {
    const View src = is_read_in_place()
                         ? lowering_.view(node_.inputs[0])
                         : lowering_.read_row_major(node_.inputs[0], ElementType::kF32);
    const View weights = lowering_.read_row_major(node_.inputs[1], ElementType::kF32);
    const Place columns{lowering_.scratch(column_bytes()), 0};
    const double n_products = static_cast<double>(element_count(src_) * window());
    lowering_.add_primitive<dnnl::matmul>(node_.name, pd_,
                                          {{DNNL_ARG_SRC, place_of(weights), pd_.src_desc()},
                                           {DNNL_ARG_WEIGHTS, place_of(src), pd_.weights_desc()},
                                           {DNNL_ARG_DST, columns, pd_.dst_desc()}},
                                          2.0 * n_products,
                                          std::string("columns by ") + pd_.impl_info_str());
    add_fold(columns);
  }

 private:
  int64_t n_images() const { return src_[0]; }
  int64_t n_channels() const { return src_[1]; }
  int64_t window() const { return element_count(kernel_) / kernel_[0]; }  // of all filters
  int64_t column_bytes() const {
    return n_images() * window() * n_pixels() * int64_t{sizeof(float)};
  }
  // Whether no windows overlap.
  bool are_apart() const {
    for (size_t i = 0; i < kernels::kFoldAxes; ++i)
      if (fold_.window[i] > fold_.strides[i]) return false;
    return true;
  }
  int64_t n_pixels() const { return element_count(src_) / (src_[0] * src_[1]); }

  Desc matrix(View view) const {
    if (n_images() == 1) {  // a plain matrix
      view.dims.erase(view.dims.begin());
      view.strides.erase(view.strides.begin());
    }
    return matrix_descriptor(view);
  }

  bool is_read_in_place() const {
    const View& found = lowering_.view(node_.inputs[0]);
    return found.type == ElementType::kF32 && !found.is_quantized() &&
           (is_row_major(found) || is_channels_last(found));
  }

  // [images, channels, pixels]
  View planned_source() const {
    const bool is_last = is_read_in_place() && !is_row_major(lowering_.view(node_.inputs[0]));
    const int64_t channels = n_channels(), pixels = n_pixels();
    View source{.dims = {n_images(), channels, pixels}, .strides = {channels * pixels, pixels, 1}};
    if (is_last) source.strides = {channels * pixels, 1, channels};
    return source;
  }

  void fill_geometry() {
    const Window found =
        find_window(node_, result_, src_, Dims(kernel_.begin() + 2, kernel_.end()));
    fold_.images = n_images();
    fold_.channels = kernel_[1];
    const size_t n_spatial = found.kernel.size();
    for (size_t i = 0; i < n_spatial; ++i) {
      const size_t axis = kernels::kFoldAxes - n_spatial + i;
      fold_.window[axis] = found.kernel[i];
      fold_.from[axis] = src_[i + 2];
      fold_.to[axis] = result_[i + 2];
      fold_.strides[axis] = found.strides[i];
      fold_.dilations[axis] = found.dilates[i] + 1;
      fold_.padding[axis] = found.pad_begin[i];
    }
  }

  void add_fold(const Place& columns) {
    const int value = node_.outputs[0];
    Step step{.name = node_.name, .kernel = "tenon:fold", .always_succeeds = true};
    step.places = {columns, {}};
    if (const int bias = site_.bias(site_.alone); bias != kNone)
      step.places[1] = place_of(lowering_.read_row_major(bias, ElementType::kF32));
    const View dst = lowering_.make(value, ElementType::kF32, row_major_strides(result_));
    step.places.push_back(place_of(dst));
    step.bytes = static_cast<double>(dst.bytes() + column_bytes());
    step.kernel_function = [fold = fold_](const kernels::Context& context,
                                          void* const* pointers) -> const char* {
      kernels::FoldArgs now = fold;
      now.columns = static_cast<const float*>(pointers[0]);
      now.bias = static_cast<const float*>(pointers[1]);
      now.dst = static_cast<float*>(pointers[2]);
      kernels::fold(context, now);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
  }

  const ConvSite& site_;
  Lowering& lowering_;
  const Node& node_;
  const Dims src_;     // [images, channels, spatial]
  const Dims kernel_;  // [channels of the source, channels, spatial]
  const Dims result_;
  kernels::FoldArgs fold_ = {};
  dnnl::matmul::primitive_desc pd_;
};

}  // namespace

Offer offer_fold_transpose(const ConvSite& site) {
  auto builder = std::make_shared<FoldBuilder>(site);
  std::string why = builder->why_not();
  if (why.empty()) why = builder->describe();
  if (!why.empty()) return refused(std::move(why));
  return accepted([builder] { builder->build(); });
}

}  // namespace tenon::onednn
