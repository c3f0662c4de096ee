// SPDX-License-Identifier: Apache-2.0
#include "mixing.hpp"

#include "tenon/sdk/number.hpp"

namespace tenon::augment {

Result<Mixing> Mixing::from(tn_ctx* ctx, const Options& options) {
  Mixing out;
  TN_TRY(source, Source::open(ctx, options));
  out.source = std::move(source);
  TN_TRY(image_at, out.source.field(options, "field"));
  TN_TRY(label_at, out.source.field(options, "label"));
  out.image_at = image_at;
  out.label_at = label_at;
  out.fields = out.source.fields();
  out.alpha = options.number("alpha", 1);
  if (image_at == label_at)
    return invalid(cat("option field: ", out.fields[image_at].name, " is the label"));
  TN_TRY(image, numbers_of(out.fields[image_at]));
  out.image = std::move(image);
  Field& label = out.fields[label_at];
  int64_t classes = options.integer("classes");
  if (is_float(label.dtype)) {  // shares already
    if (classes && label.sample != std::vector<int64_t>{classes})
      return invalid(cat("option classes: field ", label.name, " has shares of its own classes"));
  } else {
    if (!classes) return invalid("option classes: expected how many classes there are, got none");
    if (!label.sample.empty())
      return invalid(cat("option label: field ", label.name, ": expected one class for a sample"));
    label.sample = {classes};
  }
  label.dtype = TN_F32;
  return out;
}

Status Mixing::mix_labels(const Tensor& labels,
                          std::span<const uint64_t> index,
                          double share,
                          const Outputs& outputs) const {
  const Field& to = fields[label_at];
  auto n = static_cast<uint64_t>(index.size()),
       each = static_cast<uint64_t>(element_count(to.sample));
  std::vector<float> shares(n * each);
  if (is_float(source.fields()[label_at].dtype)) {
    TN_TRY(given, numbers_as<float>(labels.dl()));
    shares = std::move(given);
  } else {
    TN_TRY(classes, numbers_as<int64_t>(labels.dl()));
    for (uint64_t i = 0; i < n; ++i) {
      if (classes[i] < 0 || classes[i] >= static_cast<int64_t>(each))
        return invalid(cat("field ", to.name, ": label ", classes[i], " of sample ", index[i],
                           ": expected 0 to ", each - 1));
      shares[i * each + static_cast<uint64_t>(classes[i])] = 1;
    }
  }
  TN_TRY(result, result_for(to, n, label_at, outputs));
  auto own = static_cast<float>(share), rest = static_cast<float>(1 - share);
  float* out = data_of<float>(result);
  for (uint64_t i = 0; i < n; ++i)
    for (uint64_t c = 0; c < each; ++c)
      out[i * each + c] = shares[partner(i, n) * each + c] * rest + shares[i * each + c] * own;
  return {};
}

}  // namespace tenon::augment
