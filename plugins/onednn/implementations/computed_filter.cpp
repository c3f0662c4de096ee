// SPDX-License-Identifier: Apache-2.0
// A filter that is computed, over signals of one channel, as `convolve` of two arrays has it: for
// one channel on either side with weights that are not known oneDNN has its reference code only.
// Neighbouring results are summed side by side, a tap after the other.

#include <algorithm>

#include "conv_geometry.hpp"
#include "conv_site.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kBlock = 1024;  // results that stay in the first cache

struct Filter {
  int64_t signals, length, taps, results;  // results of each signal
  int64_t stride, dilation, padding;
};

// Results [first, last) of one signal.
void filter_block(
    const Filter& f, const float* x, const float* w, int64_t first, int64_t last, float* y) {
  std::fill(y + first, y + last, 0.0F);
  for (int64_t k = 0; k < f.taps; ++k) {
    // Those that see an element of the signal here, not the zeros around it.
    const int64_t shift = k * f.dilation - f.padding;
    const int64_t low = shift >= 0 ? 0 : (-shift + f.stride - 1) / f.stride;
    const int64_t high = f.length - 1 < shift ? 0 : (f.length - 1 - shift) / f.stride + 1;
    const int64_t begin = std::max(first, low), end = std::min(last, high);
    const float factor = w[k];
    if (f.stride == 1) {
      for (int64_t i = begin; i < end; ++i)
        y[i] += factor * x[i + shift];
    } else {
      for (int64_t i = begin; i < end; ++i)
        y[i] += factor * x[i * f.stride + shift];
    }
  }
}

void run_filter(
    const Filter& f, const kernels::Context& context, const float* x, const float* w, float* y) {
  const int64_t blocks = (f.results + kBlock - 1) / kBlock;
  const int64_t grain = kernels::grain_rows(std::min(kBlock, f.results) * f.taps);
  kernels::parallel_for(context.parallel, f.signals * blocks, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t piece = lo; piece < hi; ++piece) {
      const int64_t signal = piece / blocks, first = piece % blocks * kBlock;
      filter_block(f, x + signal * f.length, w, first, std::min(f.results, first + kBlock),
                   y + signal * f.results);
    }
  });
}

// Empty: `filter` is what the node computes.
std::string find_filter(const ConvSite& site, Filter* filter) {
  const Node& node = site.node();
  const Dims& src = site.dims(node.inputs[0]);
  const Dims& weights = site.dims(node.inputs[1]);
  const Dims& result = site.dims(node.outputs[0]);
  if (src.size() != 3 || src[1] != 1 || weights[0] != 1) return "no signals of one channel";
  const View& filters = site.lowering.view(node.inputs[1]);
  if (site.lowering.is_constant_view(filters)) return "the filter is known";
  if (node.input(2) != kNone) return "a bias";
  if (site.lowering.real_type() != ElementType::kF32) return "not in f32";
  const Window window = find_window(node, src, result, {weights[2]});
  *filter = {src[0],
             src[2],
             weights[2],
             result[2],
             window.strides[0],
             window.dilates[0] + 1,
             window.pad_begin[0]};
  return {};
}

}  // namespace

Offer offer_computed_filter(const ConvSite& site) {
  Filter filter = {};
  if (std::string why = find_filter(site, &filter); !why.empty()) return refused(std::move(why));
  return accepted([&site, filter] {
    Lowering& lowering = site.lowering;
    const Node& node = site.node();
    const View x = lowering.read_row_major(node.inputs[0], ElementType::kF32);
    const View w = lowering.read_row_major(node.inputs[1], ElementType::kF32);
    const Dims& dims = site.dims(node.outputs[0]);
    const View y = lowering.make(node.outputs[0], ElementType::kF32, row_major_strides(dims));
    Step step{.name = node.name, .kernel = "tenon:computed_filter", .always_succeeds = true};
    step.flops = 2.0 * static_cast<double>(filter.signals * filter.results * filter.taps);
    step.bytes = static_cast<double>(x.bytes() + w.bytes() + y.bytes());
    step.places = {place_of(x), place_of(w), place_of(y)};
    step.kernel_function = [filter](const kernels::Context& context,
                                    void* const* pointers) -> const char* {
      run_filter(filter, context, static_cast<const float*>(pointers[0]),
                 static_cast<const float*>(pointers[1]), static_cast<float*>(pointers[2]));
      return nullptr;
    };
    lowering.add_step(std::move(step));
  });
}

}  // namespace tenon::onednn
