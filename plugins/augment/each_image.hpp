// SPDX-License-Identifier: Apache-2.0
#pragma once
// An augmentation of one sample at a time. It is a class with
//   static Result<T> create(const Options&, const Field& given);
//   Field made() const;                                  // name, type and shape of what it gives
//   static Result<Image> sample(const Field&);           // image_of, or numbers_of
//   void apply(const Image& in, Image& out, Draws&) const;   // in: as given; out: as made, any
//   numbers
// and it becomes a data set over another one by TENON_AUGMENTATION.

#include "tenon/sdk/role/dataset.hpp"

#include "source.hpp"

namespace tenon::augment {

template <class T>
class EachImage {
 public:
  static Result<EachImage> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(source, Source::open(ctx, options));
    TN_TRY(at, source.field(options, "field"));
    TN_TRY(in, T::sample(source.fields()[at]));
    TN_TRY(stage, T::create(options, source.fields()[at]));
    EachImage out(std::move(source), at, std::move(stage));
    TN_TRY(made, T::sample(out.fields_[at]));
    out.in_ = std::move(in);
    out.made_ = std::move(made);
    return out;
  }
  uint64_t size() const { return source_.size(); }
  Status fields(Sink& sink) const { return sink.write(fields_json(fields_)); }
  Status batch(std::span<const uint64_t> index, uint64_t seed, const Outputs& outputs) const {
    TN_TRY(loaded, source_.load(index, seed));
    for (size_t i = 0; i < loaded.size(); ++i)
      if (i != at_) TN_CHECK(pass_on(loaded[i], i, outputs));
    TN_TRY(result, result_for(fields_[at_], index.size(), at_, outputs));
    Image in = in_, out = made_;
    for (uint64_t i = 0; i < index.size(); ++i) {
      Draws draws(source_.own_seed(seed), i);
      read(loaded[at_], i, in);
      stage_.apply(in, out, draws);
      write(out, i, result);
    }
    return {};
  }
  std::string origin(uint64_t index) const { return source_.origin(index); }

 private:
  EachImage(Source&& source, size_t at, T&& stage)
      : source_(std::move(source)), at_(at), stage_(std::move(stage)), fields_(source_.fields()) {
    fields_[at_] = stage_.made();
  }
  Source source_;
  size_t at_;
  T stage_;
  std::vector<Field> fields_;
  Image in_, made_;  // of the right sizes
};

}  // namespace tenon::augment

// options: properties of its own as JSON, "" or with a comma at the end.
#define TENON_AUGMENTED_(word, Class, id, summary, options)                           \
  TENON_DATASET(word, Class, id, summary,                                             \
                "{\"required\": [\"data\"], \"properties\": {" options                \
                "\"data\": {\"type\": \"component\", \"role\": \"tenon.dataset/1\", " \
                "\"description\": \"the data set\"}, "                                \
                "\"field\": {\"type\": \"string\", \"description\": "                 \
                "\"the field that it changes; default: the first\"}, "                \
                "\"seed\": {\"type\": \"integer\", \"minimum\": 0, \"default\": 0, "  \
                "\"description\": \"for other draws from the same batches\"}}}")
#define TENON_AUGMENTATION(word, Class, id, summary, options) \
  TENON_AUGMENTED_(word, tenon::augment::EachImage<Class>, id, summary, options)
