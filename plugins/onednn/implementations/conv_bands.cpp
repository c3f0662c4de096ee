// SPDX-License-Identifier: Apache-2.0
#include "conv_bands.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <utility>

#include "primitive.hpp"
#include "team/team.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
using PrimitiveDesc = dnnl::convolution_forward::primitive_desc;
constexpr size_t kMostArguments = 16;

// Rows of the result, and those of the source that they see.
struct Rows {
  int64_t begin = 0, end = 0;
  int64_t source = 0, n_source = 0;
  int64_t pad_begin = 0, pad_end = 0;
};

struct Band {
  dnnl::primitive primitive;
  std::vector<std::pair<int, Desc>> arguments = {};
  size_t first_place = 0;
};

// What all runs share.
struct Bands {
  std::vector<Band> bands;
  dnnl::engine engine;
  dnnl::stream stream;
};

Rows rows_of(const Window& window, int64_t begin, int64_t end, int64_t height) {
  const int64_t reach = (window.kernel[0] - 1) * (window.dilates[0] + 1);
  const int64_t first = begin * window.strides[0] - window.pad_begin[0];
  const int64_t last = (end - 1) * window.strides[0] - window.pad_begin[0] + reach;
  Rows rows{.begin = begin, .end = end};
  rows.source = std::max<int64_t>(first, 0);
  rows.n_source = std::min(last, height - 1) - rows.source + 1;
  rows.pad_begin = rows.source - first;
  rows.pad_end = std::max<int64_t>(last - (height - 1), 0);
  return rows;
}

// The same layout of fewer rows; an image's rows lie one behind the other.
Desc with_rows(const Desc& whole, int64_t rows) {
  Dims dims = whole.get_dims();
  dims[2] = rows;
  return {dims, whole.get_data_type(), channels_last_strides(dims)};
}

bool is_plain_image(const Desc& desc) {
  return desc.get_ndims() == 4 && desc.get_dims()[0] == 1 && desc.get_inner_nblks() == 0 &&
         same_strides(desc.get_dims(), desc.get_strides(), channels_last_strides(desc.get_dims()));
}

int64_t row_bytes(const Desc& desc) {
  return desc.get_strides()[2] *
         static_cast<int64_t>(dnnl::memory::data_type_size(desc.get_data_type()));
}

PrimitiveDesc describe(Lowering& lowering, const BandedConv& conv, const Rows& rows) {
  const Window& window = conv.window;
  return {lowering.engine(),
          dnnl::prop_kind::forward_inference,
          dnnl::algorithm::convolution_auto,
          with_rows(conv.whole.src_desc(), rows.n_source),
          conv.whole.weights_desc(),
          conv.whole.bias_desc(),
          with_rows(conv.whole.dst_desc(), rows.end - rows.begin),
          window.strides,
          window.dilates,
          {rows.pad_begin, window.pad_begin[1]},
          {rows.pad_end, window.pad_end[1]},
          conv.attr,
          kMayFail};
}

const char* run(const Bands& made, const kernels::Context& context, void* const* pointers) {
  std::atomic<bool> has_failed = false;
  kernels::parallel_for(
      context.parallel, static_cast<int64_t>(made.bands.size()), 1, [&](int64_t lo, int64_t hi) {
        for (int64_t b = lo; b < hi; ++b) {
          const Band& band = made.bands[static_cast<size_t>(b)];
          std::array<dnnl_exec_arg_t, kMostArguments> arguments{};
          const size_t count = band.arguments.size();
          bool is_fine = true;
          for (size_t i = 0; i < count; ++i) {
            arguments[i].arg = band.arguments[i].first;
            is_fine &= dnnl_memory_create(&arguments[i].memory, band.arguments[i].second.get(),
                                          made.engine.get(),
                                          pointers[band.first_place + i]) == dnnl_success;
          }
          is_fine = is_fine && dnnl_primitive_execute(band.primitive.get(), made.stream.get(),
                                                      static_cast<int>(count),
                                                      arguments.data()) == dnnl_success;
          for (size_t i = 0; i < count; ++i)
            if (arguments[i].memory != nullptr) dnnl_memory_destroy(arguments[i].memory);
          if (!is_fine) has_failed = true;
        }
      });
  return has_failed ? "a oneDNN primitive failed" : nullptr;
}

// The whole's arguments with those that a band has of its own.
void add_band(Lowering& lowering,
              const BandedConv& conv,
              const Rows& rows,
              const PrimitiveDesc& pd,
              Bands* made,
              Step* step) {
  Band band{.primitive = made_from<dnnl::convolution_forward>(pd),
            .first_place = step->places.size()};
  for (const Argument& argument : conv.arguments) {
    Place place = argument.place;
    Desc desc = argument.desc;
    if (argument.id == DNNL_ARG_SRC) {
      place.offset += rows.source * row_bytes(desc);
      desc = pd.src_desc();
    } else if (argument.id == DNNL_ARG_DST) {
      place.offset += rows.begin * row_bytes(desc);
      desc = pd.dst_desc();
    }
    step->places.push_back(place);
    band.arguments.emplace_back(argument.id, desc);
  }
  if (const Desc scratch = pd.scratchpad_desc(); scratch.get_size() > 0) {
    step->places.push_back({lowering.scratch(static_cast<int64_t>(scratch.get_size())), 0});
    band.arguments.emplace_back(DNNL_ARG_SCRATCHPAD, scratch);
  }
  made->bands.push_back(std::move(band));
}

}  // namespace

bool add_bands(Lowering& lowering, const BandedConv& conv) {
  const int64_t n_bands = lowering.options().threads;
  const Desc src = conv.whole.src_desc(), dst = conv.whole.dst_desc();
  if (n_bands < 2 || !is_plain_image(src) || !is_plain_image(dst) ||
      conv.arguments.size() >= kMostArguments)
    return false;
  const int64_t height = dst.get_dims()[2];
  if (height < 2 * n_bands) return false;
  const team::Hold one(1);  // each band is one thread's, so oneDNN need not cut it
  std::vector<std::pair<Rows, PrimitiveDesc>> described;
  for (int64_t b = 0; b < n_bands; ++b) {
    const Rows rows =
        rows_of(conv.window, height * b / n_bands, height * (b + 1) / n_bands, src.get_dims()[2]);
    if (rows.n_source < 1) return false;
    PrimitiveDesc pd = describe(lowering, conv, rows);
    if (!pd || std::string_view(pd.impl_info_str()) != conv.whole.impl_info_str()) return false;
    described.emplace_back(rows, std::move(pd));
  }
  auto made = std::make_shared<Bands>();
  made->engine = lowering.engine();
  made->stream = dnnl::stream(made->engine);
  Step step{.name = conv.name,
            .kernel = std::string("bands by ") + conv.whole.impl_info_str(),
            .flops = conv.flops,
            .always_succeeds = true};
  for (const Argument& argument : conv.arguments)
    step.bytes += static_cast<double>(argument.desc.get_size());
  for (const auto& [rows, pd] : described)
    add_band(lowering, conv, rows, pd, made.get(), &step);
  step.kernel_function = [made](const kernels::Context& context, void* const* pointers) {
    return run(*made, context, pointers);
  };
  lowering.add_step(std::move(step));
  return true;
}

}  // namespace tenon::onednn
