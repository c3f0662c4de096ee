// SPDX-License-Identifier: Apache-2.0
// Products and convolutions with constant weights in f32, on AMX tiles: each number is the sum of
// three bf16 parts (kernels/bf16x6_product.h).

#include "kernels/bf16x6_product.h"

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "conv_site.hpp"
#include "cpu.hpp"
#include "float_step.hpp"
#include "product.hpp"
#include "tile_step.hpp"

namespace tenon::onednn {
namespace {

// Of weights that another plan has looked at nothing is read: their pages may have gone back to the
// file.
std::string why_not_numbers(Lowering& lowering, const View& weights) {
  const auto* numbers = static_cast<const float*>(lowering.constant_data(weights));
  const std::shared_ptr<const void> fact = lowering.weights().made(
      numbers, weights.bytes(), "have bf16 parts", sizeof(bool),
      [&](void* to) { new (to) bool(kernels::have_parts(numbers, weights.count())); });
  lowering.plan().facts.push_back(fact);
  const bool have_parts = *static_cast<const bool*>(fact.get());
  return have_parts ? "" : "weights that are not finite, or almost too large";
}

std::string why_slower(const Lowering& lowering, const FloatStep& made) {
  const auto& args = made.step.args;
  const bool is_fast = is_faster_on_tiles(lowering, args.m, args.n, args.k);
  return is_fast ? "" : "too few rows or columns for what is split, or rows of 32 elements";
}

std::string find_conv_step(const ConvSite& site, FloatStep* found) {
  const Lowering& lowering = site.lowering;
  const Node& node = site.node();
  const View& weights = lowering.view(node.inputs[1]);
  if (std::string why = why_not_floats(lowering, weights); !why.empty()) return why;
  if (std::string why = why_not_one_product(site); !why.empty()) return why;
  found->step = conv_step(lowering, site.index);
  const bool has_whole_steps = weights.dims[1] % kernels::kSplitDepth == 0;
  if (found->step.args.a.has_windows && !has_whole_steps)
    return "windows of channels that are no multiple of 32";
  found->finish = finish_of(lowering, found->step, site.epilogue);
  const bool is_whole = found->finish.epilogue.nodes.size() == site.epilogue.nodes.size();
  return is_whole ? "" : kPartOfEpilogue;
}

// read: the source, and what depends on it, when the step is built.
template <class Site, class Read>
Offer offered(const Site& site, FloatStep made, const Read& read) {
  if (std::string why = why_not_numbers(site.lowering, made.step.weights.view); !why.empty())
    return refused(std::move(why));
  return accepted_unless(why_slower(site.lowering, made), [&site, made, read]() mutable {
    read(site, &made.step);
    build_float_step(site.lowering, std::move(made), FloatKernel::kTiles);
  });
}

}  // namespace

Offer offer_bf16x6_product(const ProductSite& site) {
  if (!computes_in_tiles()) return refused(kNoTiles);
  FloatStep made;
  if (std::string why = find_float_step(site, &made); !why.empty()) return refused(std::move(why));
  return offered(site, made, [](const ProductSite& built, GemmStep* step) {
    step->src = built.lowering.read_row_major(built.product.a, ElementType::kF32);
  });
}

Offer offer_bf16x6_conv(const ConvSite& site) {
  if (!computes_in_tiles()) return refused(kNoTiles);
  FloatStep made;
  if (std::string why = find_conv_step(site, &made); !why.empty()) return refused(std::move(why));
  return offered(site, made, [](const ConvSite& built, GemmStep* step) {
    const int source = built.node().inputs[0];
    step->src =
        built.lowering.read(source, ElementType::kF32, channels_last_strides(built.dims(source)));
    add_weights(built.lowering, built.epilogue, step);
  });
}

}  // namespace tenon::onednn
