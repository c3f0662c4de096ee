// SPDX-License-Identifier: Apache-2.0
#include "own_batch_norm.hpp"

#include "kernels/batch_norm.h"

namespace tenon::onednn {
namespace {

constexpr int64_t kWholeRegister = 16;  // channels

kernels::BatchNorm norm_of(const Node& node, bool with_relu, const View& x) {
  const int64_t channels = x.dims[1];
  return {x.count() / channels, channels, x.type, static_cast<float>(node.real("epsilon", 1e-5)),
          with_relu};
}

template <class T>
T* at(void* pointer) {
  return static_cast<T*>(pointer);
}

}  // namespace

bool takes_own_batch_norm(const View& x) {
  return x.dims[1] % kWholeRegister != 0;
}

void add_own_batch_norm(Lowering& lowering,
                        const Node& node,
                        bool with_relu,
                        const View& x,
                        const View& y,
                        const BatchNormRows& rows) {
  const kernels::BatchNorm norm = norm_of(node, with_relu, x);
  Step step{.name = node.name, .kernel = "tenon:batch_norm", .always_succeeds = true};
  step.flops = 6.0 * static_cast<double>(x.count());
  step.bytes = static_cast<double>(2 * x.bytes() + y.bytes());
  step.places = {
      place_of(x), rows.scale,    rows.shift,  place_of(y),
      rows.mean,   rows.variance, rows.affine, {lowering.scratch(norm.scratch_bytes()), 0}};
  step.kernel_function = [norm](const kernels::Context& context, void* const* p) -> const char* {
    kernels::batch_norm(context, norm,
                        {p[0], at<float>(p[1]), at<float>(p[2]), p[3], at<float>(p[4]),
                         at<float>(p[5]), at<float>(p[6])},
                        p[7]);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

void add_own_batch_norm_grad(Lowering& lowering,
                             const Node& node,
                             bool with_relu,
                             const BatchNormGradPlaces& of) {
  const kernels::BatchNorm norm = norm_of(node, with_relu, of.x);
  Step step{.name = node.name, .kernel = "tenon:batch_norm_grad", .always_succeeds = true};
  step.flops = 11.0 * static_cast<double>(of.x.count());
  step.bytes = static_cast<double>(2 * (of.x.bytes() + of.dy.bytes()) + of.dx.bytes());
  step.places = {place_of(of.x),   place_of(of.dy),
                 of.rows.scale,    of.rows.mean,
                 of.rows.variance, of.rows.affine,
                 place_of(of.dx),  of.dscale,
                 of.dshift,        {lowering.scratch(norm.scratch_bytes()), 0}};
  step.kernel_function = [norm, has_statistics = of.has_statistics](const kernels::Context& context,
                                                                    void* const* p) -> const char* {
    if (!has_statistics)
      kernels::batch_statistics(context, norm, p[0], at<float>(p[3]), at<float>(p[4]), p[9]);
    kernels::batch_norm_grad(context, norm,
                             {p[0], p[1], at<float>(p[2]), at<float>(p[3]), at<float>(p[4]),
                              at<float>(p[5]), p[6], at<float>(p[7]), at<float>(p[8])},
                             p[9]);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn
