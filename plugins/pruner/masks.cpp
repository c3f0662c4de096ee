// SPDX-License-Identifier: Apache-2.0
#include "masks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tenon/sdk/match.hpp"
#include "tenon/sdk/number.hpp"

#include "removal.hpp"

namespace tenon::pruner {
namespace {

struct MaskNodes {
  Node multiply, cast;
  Value weight, mask;
};

// The nodes that insert_mask made, when this is the multiplication of them.
MaskNodes mask_nodes(Node node) {
  if (!node.is("Mul") || !node.input(0).is_constant()) return {};
  Node cast = made_by(node.input(1), "Cast");
  if (!cast || !cast.input(0).is_constant() || cast.input(0).dtype() != TN_BOOL) return {};
  if (node.input(0).type().dims != cast.input(0).type().dims) return {};
  return {node, cast, node.input(0), cast.input(0)};
}

}  // namespace

Mask keep_n_of_m(const std::vector<double>& scores,
                 const std::vector<int64_t>& shape,
                 size_t axis,
                 int64_t n,
                 int64_t m) {
  size_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i)
    inner *= static_cast<size_t>(shape[i]);
  auto extent = static_cast<size_t>(shape[axis]), group = static_cast<size_t>(m);
  Mask mask(scores.size(), 0);
  std::vector<size_t> order(group);
  for (size_t block = 0; block < scores.size(); block += extent * inner) {
    for (size_t first = 0; first + group <= extent; first += group) {
      for (size_t i = 0; i < inner; ++i) {
        auto at = [&](size_t k) { return block + (first + k) * inner + i; };
        std::iota(order.begin(), order.end(), size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return scores[at(a)] > scores[at(b)]; });
        for (int64_t k = 0; k < n; ++k) {
          const size_t best = at(order[static_cast<size_t>(k)]);
          mask[best] = !std::isinf(scores[best]) || scores[best] > 0;
        }
      }
    }
  }
  return mask;
}

Mask drop_lowest(const std::vector<double>& scores, uint64_t gone) {
  std::vector<uint64_t> order(scores.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  auto lower = [&](uint64_t a, uint64_t b) {
    return scores[a] != scores[b] ? scores[a] < scores[b] : a < b;
  };
  auto end = order.begin() + static_cast<std::ptrdiff_t>(gone);
  if (end != order.end()) std::nth_element(order.begin(), end, order.end(), lower);
  Mask mask(scores.size(), 1);
  for (auto at = order.begin(); at != end; ++at)
    mask[*at] = 0;
  return mask;
}

Result<Tensor> apply_mask(tn_ctx* ctx, const Tensor& tensor, const Mask& mask) {
  TN_TRY(out, Tensor::copy_of(ctx, tensor.dl()));
  DLTensor t = out.dl();
  size_t bytes = TN_DTYPE_BITS(dtype_of(t)) / 8;
  char* data = data_of<char>(t);
  for (size_t i = 0; i < mask.size(); ++i)
    if (!mask[i]) std::memset(data + i * bytes, 0, bytes);
  return out;
}

Result<Mask> mask_of_zeros(const Tensor& tensor) {
  DLTensor t = tensor.dl();
  Mask mask(static_cast<size_t>(element_count(t)));
  bool known = with_numbers(t, [&](const auto* numbers) {
    for (size_t i = 0; i < mask.size(); ++i)
      mask[i] = numbers[i] != 0;
  });
  if (!known) return unsupported(cat("expected numbers, got ", dtype_name(dtype_of(t))));
  return mask;
}

Status insert_mask(EditView edit, Value constant, const Mask& mask) {
  Type type = constant.type();
  std::string name(constant.name());
  struct Use {
    Node node;
    uint64_t input;
  };
  std::vector<Use> uses;
  for (uint64_t i = 0; i < constant.consumer_count(); ++i) {
    uint64_t input = 0;
    Node node = constant.consumer(i, &input);
    uses.push_back({node, input});
  }
  TN_TRY(flags, edit.constant<uint8_t>(TN_BOOL, type.dims, mask, name + "_mask"));
  TN_TRY(cast, edit.add({.type = "Cast",
                         .inputs = {flags},
                         .attrs = {{"to", any_dtype(type.dtype)}},
                         .name = name + "_mask_cast",
                         .output_names = {std::string_view()}}));
  TN_TRY(product, edit.op("Mul", {constant, cast.output()}));
  for (const Use& use : uses)
    TN_CHECK(edit.set_input(use.node, use.input, product));
  return {};
}

std::vector<NamedMask> masks_of(Graph graph) {
  std::vector<NamedMask> out;
  for (Node node : graph.nodes()) {
    MaskNodes found = mask_nodes(node);
    if (!found.multiply) continue;
    Result<Mask> mask = mask_of_zeros(found.mask.constant());
    if (mask.ok()) out.push_back({std::string(found.weight.name()), std::move(*mask)});
  }
  return out;
}

Status fold_masks(EditView edit) {
  for (Node node : edit.graph().nodes()) {
    MaskNodes found = mask_nodes(node);
    if (!found.multiply) continue;
    TN_TRY(mask, mask_of_zeros(found.mask.constant()));
    TN_TRY(zeroed, apply_mask(edit.ctx(), found.weight.constant(), mask));
    TN_CHECK(edit.replace(node.output(), found.weight));
    TN_CHECK(edit.erase(node));
    if (found.cast.output().consumer_count() == 0) TN_CHECK(edit.erase(found.cast));
    TN_CHECK(replace_constant(edit, found.weight, zeroed));
  }
  return {};
}

Status put_back_masks(EditView edit,
                      const std::vector<NamedMask>& masks,
                      const std::vector<std::string>& chosen) {
  for (const NamedMask& one : masks) {
    if (std::find(chosen.begin(), chosen.end(), one.weight) != chosen.end()) continue;
    TN_CHECK(insert_mask(edit, edit.graph().find(one.weight), one.mask));
  }
  return {};
}

}  // namespace tenon::pruner
