// SPDX-License-Identifier: Apache-2.0
#pragma once
// Augmentations that make a sample of two of a batch: each is mixed with the one before it, and the
// label is shares of both classes. What is mixed is torchvision's MixUp and CutMix: one share for
// the whole batch.

#include "tenon/sdk/role/dataset.hpp"

#include "source.hpp"

namespace tenon::augment {

struct Mixing {
  Source source;
  size_t image_at = 0, label_at = 0;
  std::vector<Field> fields;  // as they come out
  double alpha = 1;
  Image image;  // of the right size

  static Result<Mixing> from(tn_ctx* ctx, const Options& options);
  // Labels of the batch as shares of classes, mixed: share of its own, the rest of the one before.
  Status mix_labels(const Tensor& labels,
                    std::span<const uint64_t> index,
                    double share,
                    const Outputs& outputs) const;
};

// The sample that sample i of n is mixed with.
inline uint64_t partner(uint64_t i, uint64_t n) {
  return (i + n - 1) % n;
}

// T is a class with
//   static Status accepts(const Field&);
//   T(const Mixing&, Draws&);   // draws what is the same for a batch
//   double share() const;       // of a sample's own
//   void mix(Image& own, const Image& other) const;
template <class T>
class Mixed {
 public:
  static Result<Mixed> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(mixing, Mixing::from(ctx, options));
    TN_CHECK(T::accepts(mixing.fields[mixing.image_at]));
    return Mixed(std::move(mixing));
  }
  uint64_t size() const { return of_.source.size(); }
  Status fields(Sink& sink) const { return sink.write(fields_json(of_.fields)); }
  Status batch(std::span<const uint64_t> index, uint64_t seed, const Outputs& outputs) const {
    TN_TRY(loaded, of_.source.load(index, seed));
    Draws draws(of_.source.own_seed(seed), 0);
    T how(of_, draws);
    for (size_t i = 0; i < loaded.size(); ++i)
      if (i != of_.image_at && i != of_.label_at) TN_CHECK(pass_on(loaded[i], i, outputs));
    TN_CHECK(of_.mix_labels(loaded[of_.label_at], index, how.share(), outputs));
    TN_TRY(result, result_for(of_.fields[of_.image_at], index.size(), of_.image_at, outputs));
    Image own = of_.image, other = of_.image;
    for (uint64_t i = 0; i < index.size(); ++i) {
      read(loaded[of_.image_at], i, own);
      read(loaded[of_.image_at], partner(i, index.size()), other);
      how.mix(own, other);
      write(own, i, result);
    }
    return {};
  }

 private:
  explicit Mixed(Mixing&& of) : of_(std::move(of)) {}
  Mixing of_;
};

}  // namespace tenon::augment

#define TENON_MIXING(word, Class, id, summary)                                      \
  TENON_AUGMENTED_(                                                                 \
      word, tenon::augment::Mixed<Class>, id, summary,                              \
      "\"alpha\": {\"type\": \"number\", \"exclusiveMinimum\": 0, \"default\": 1, " \
      "\"description\": \"the share is drawn from Beta(alpha, alpha)\"}, "          \
      "\"label\": {\"type\": \"string\", \"default\": \"label\", "                  \
      "\"description\": \"the field with the classes, or shares of them\"}, "       \
      "\"classes\": {\"type\": \"integer\", \"minimum\": 2, "                       \
      "\"description\": \"how many there are; required where label holds numbers of classes\"},")
