// SPDX-License-Identifier: Apache-2.0
#pragma once
// Samples of a data set as the inputs of a model: which field is which input, of what type, how
// many at once, and what else of a sample is wanted. Everything that runs a model on a data set
// uses it: evaluation, comparison, calibration, gradients, teachers, training.
//
//   TN_TRY(feed, Feed::make(ctx, data, graph, {.batch = 8}));
//   TN_CHECK(run_batches(plan, feed, cancel, nullptr, [&](const Feed::Batch& batch) -> Status {
//     return read(plan[0], batch.samples);
//   }));

#include <map>
#include <numeric>
#include <optional>

#include "tenon/sdk/convert.hpp"
#include "tenon/sdk/fields.hpp"
#include "tenon/sdk/plan.hpp"

namespace tenon {

// The samples behind the last full batch, where the model fixes how many it takes at once.
enum class Rest { kPadded, kLeftOut };

struct FeedPlan {
  std::string_view option = "data";    // of the caller, for messages
  std::string_view user = {};          // what a model that has state is refused for
  std::optional<uint64_t> batch = {};  // samples at once; a model that fixes it must agree
  uint64_t usual = 32;                 // the batch where neither says
  uint64_t samples = 0;                // the first so many; 0: all
  Rest rest = Rest::kPadded;
  bool warns_of_nan = true;                        // false: the caller looks for it itself
  std::map<std::string, std::string> fields = {};  // of inputs whose field has another name
  std::vector<std::string> labels = {"label"};     // no input takes these by their shape alone
};

// The options by which a pass is given data to run a model on: TENON_FEED_OPTIONS.
struct FeedOptions {
  Component data;  // falsy where the option is absent
  uint64_t samples = 256, batch = 16;

  static Result<FeedOptions> read(tn_ctx* ctx, const Options& options) {
    FeedOptions out;
    TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
    out.data = std::move(data);
    out.samples = static_cast<uint64_t>(options.integer("samples", 256));
    out.batch = static_cast<uint64_t>(options.integer("batch", 16));
    return Result<FeedOptions>(std::move(out));
  }
  // Whole batches only: a sample that is seen twice would count twice.
  FeedPlan plan(std::string_view user) const {
    return {.user = user, .usual = batch, .samples = samples, .rest = Rest::kLeftOut};
  }
};

// In a component's schema, JSON without braces. what: the data is; then the defaults, as texts.
#define TENON_FEED_OPTIONS(what, samples, batch)                                      \
  R"("data": {"type": "component", "role": "tenon.dataset/1", "description": ")" what \
  R"(: a data set, an id or a file"},)"                                               \
  R"("samples": {"type": "integer", "minimum": 1, "default": )" samples               \
  R"(, "description": "samples of it, at most"},)"                                    \
  R"("batch": {"type": "integer", "minimum": 1, "default": )" batch                   \
  R"(, "description": "batch size"})"

class Feed {
 public:
  struct Batch {
    std::span<const DLTensor> inputs;  // in the order of the model's, padded to a fixed batch
    std::span<const DLTensor> extras;  // of want(), without padding
    std::span<const DLTensor> all;     // inputs, then extras
    uint64_t samples = 0;
    uint64_t number = 0;  // of load(b)
  };

  // data: outlives the feed. Names and types are checked now, before anything is compiled.
  static Result<Feed> make(tn_ctx* ctx, const Component& data, Graph model, const FeedPlan& plan);
  // The same with memory of its own: one for each thread.
  Feed another() const {
    Feed out;
    out.ctx_ = ctx_;
    out.option_ = option_;
    out.fields_ = fields_;
    out.inputs_ = inputs_;
    out.extras_ = extras_;
    out.notes_ = notes_;
    out.samples_ = samples_;
    out.batch_ = batch_;
    out.is_fixed_ = is_fixed_;
    out.has_warned_ = has_warned_;
    out.raw_ = std::make_unique<Buffers>(ctx_, fields_.all.size());
    return out;
  }
  bool is_fixed() const { return is_fixed_; }  // the batch, by the model
  // A further field of each batch. dtype TN_DTYPE_NONE: as it is.
  Status want(const std::string& name, uint32_t dtype = TN_DTYPE_NONE);

  uint64_t samples() const { return samples_; }
  uint64_t batch() const { return batch_; }
  uint64_t batches() const { return (samples_ + batch_ - 1) / batch_; }
  std::string batch_text(uint64_t b) const {  // "batch 2 (sample 16 to sample 23)"
    return cat("batch ", b, " (", sample_text(b * batch_), " to ", sample_text(end_of(b) - 1), ")");
  }
  // As the user knows it, also where the data set is a part of another one.
  std::string sample_text(uint64_t index) const { return origin_of(*fields_.data, index); }
  const Fields& fields() const { return fields_; }  // all that the data set has
  const std::vector<Fed>& inputs() const { return inputs_; }
  const std::vector<Fed>& extras() const { return extras_; }
  // What was taken by its shape or converted, a line each; the log has them too.
  const std::vector<std::string>& notes() const { return notes_; }

  // What a batch holds lives until the next call. seed: for data sets that change at random.
  Result<Batch> load(std::span<const uint64_t> samples, uint64_t seed = 0);
  Result<Batch> load(uint64_t b) {
    std::vector<uint64_t> index(end_of(b) - b * batch_);
    std::iota(index.begin(), index.end(), b * batch_);
    Result<Batch> loaded = load(index);
    if (!loaded.ok()) return std::move(loaded).status().in(batch_text(b));
    loaded->number = b;
    return loaded;
  }

 private:
  uint64_t end_of(uint64_t b) const { return std::min(samples_, (b + 1) * batch_); }
  Status fault(std::string_view why) const { return invalid(cat("option ", option_, ": ", why)); }
  Status find_axes();
  Status count(const FeedPlan& plan);
  Status fix_batch(const FeedPlan& plan);
  Status move_samples(const Fed& field, DLTensor* given);
  Status hand_on(const Fed& field, Tensor* room, DLTensor* view);
  void warn_of_nan(std::span<const uint64_t> samples);
  void note(std::string text) {
    log_line(ctx_, TN_LOG_INFO, text);
    notes_.push_back(std::move(text));
  }

  tn_ctx* ctx_ = nullptr;
  std::string option_;
  Fields fields_;
  std::vector<Fed> inputs_, extras_;
  std::vector<std::string> notes_;
  uint64_t samples_ = 0, batch_ = 1;
  bool is_fixed_ = false;
  bool has_warned_ = false;                // of NaN
  std::unique_ptr<Buffers> raw_;           // the fields as they are
  std::map<size_t, Tensor> moved_;         // those whose samples are not along axis 0, by field
  std::vector<Tensor> room_;               // of those that are converted: inputs, then extras
  std::vector<DLTensor> views_;            // inputs, then extras
  std::vector<std::vector<int64_t>> cut_;  // the shapes of extras without padding
};

// ---- definitions

inline Result<Feed> Feed::make(tn_ctx* ctx,
                               const Component& data,
                               Graph model,
                               const FeedPlan& plan) {
  std::vector<Value> states = model.list(TN_LIST_STATES);
  if (!states.empty() && !plan.user.empty())
    return unsupported(cat("the model has state of its own, which ", plan.user, " does not carry"));
  Feed feed;
  feed.ctx_ = ctx;
  feed.option_ = plan.option;
  TN_TRY(fields, Fields::of(ctx, data));
  feed.fields_ = std::move(fields);
  std::vector<Value> values = model.inputs();
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::find(states.begin(), states.end(), values[i]) != states.end()) continue;
    Fed input;
    input.input = model.input_name(i);
    auto other = plan.fields.find(input.input);
    input.name = other == plan.fields.end() ? input.input : other->second;
    input.wanted = values[i].type();
    feed.inputs_.push_back(std::move(input));
  }
  TN_CHECK(feed.find_axes());
  std::vector<std::string> notes;
  Status matched = match_fields(feed.fields_, plan.labels, &feed.inputs_, &notes);
  if (!matched.ok()) return feed.fault(matched.text());
  for (std::string& one : notes)
    feed.note(std::move(one));
  feed.has_warned_ = !plan.warns_of_nan;
  TN_CHECK(feed.count(plan));
  TN_CHECK(feed.fix_batch(plan));
  feed.raw_ = std::make_unique<Buffers>(ctx, feed.fields_.all.size());
  return feed;
}

inline Status Feed::want(const std::string& name, uint32_t dtype) {
  const Field* found = fields_.find(name);
  if (!found) return invalid(cat("no field ", name, " (the data set has ", fields_.names(), ")"));
  Fed extra{name, "", found->at, found->dtype, dtype ? dtype : found->dtype, {}};
  if (!is_convertible(extra.given, extra.dtype))
    return invalid(
        cat("field ", name, ": expected ", dtype_name(dtype), ", got ", dtype_name(extra.given)));
  extras_.push_back(std::move(extra));
  return {};
}

inline Status Feed::find_axes() {
  std::vector<Type> types;
  for (const Fed& input : inputs_)
    types.push_back(input.wanted);
  for (Fed& input : inputs_) {
    Result<size_t> axis = sample_axis(input.wanted, types);
    if (!axis.ok()) return fault(cat("input ", input.input, ": ", axis.status().text()));
    input.axis = *axis;
    if (input.axis > 0)
      note(cat("input ", input.input, " takes samples along axis ", input.axis, " of ",
               type_text(input.wanted)));
  }
  return {};
}

inline Status Feed::count(const FeedPlan& plan) {
  const uint64_t size = fields_.table()->size(fields_.data->self());
  if (size == 0) return fault(cat(fields_.data->id(), " is an empty data set"));
  if (size == TN_SIZE_UNKNOWN && plan.samples == 0)
    return fault(cat(fields_.data->id(), ": expected a data set with a size, got a stream"));
  samples_ = plan.samples ? std::min(plan.samples, size) : size;
  return {};
}

// A batch size that is part of the model is kept.
inline Status Feed::fix_batch(const FeedPlan& plan) {
  uint64_t fixed = 0;
  for (const Fed& input : inputs_) {
    const Type& wanted = input.wanted;
    if (!wanted.ranked || wanted.dims.empty() || wanted.dims[0] < 0 || input.axis > 0) continue;
    const auto here = static_cast<uint64_t>(wanted.dims[0]);
    if (is_fixed_ && here != fixed)
      return fault(cat("the model wants ", fixed, " samples of one input at once and ", here,
                       " of ", input.input));
    is_fixed_ = true;
    fixed = here;
  }
  if (!is_fixed_) {
    batch_ = std::min(plan.batch.value_or(plan.usual), samples_);
    return {};
  }
  const uint64_t size = fields_.table()->size(fields_.data->self());
  if (plan.batch && *plan.batch != fixed)
    return invalid(
        cat("option batch: expected ", fixed, ", which the model fixes, got ", *plan.batch));
  const bool is_cut = plan.rest == Rest::kLeftOut;
  if (is_cut && fixed > samples_ && fixed <= size)
    return invalid(cat("option samples: the model wants ", fixed, " samples at once: expected at ",
                       "least ", fixed, ", got ", plan.samples));
  if (fixed == 0 || (is_cut && fixed > size))
    return fault(cat("the model wants ", fixed, " samples at once, the data set has ", size));
  batch_ = fixed;
  if (is_cut) samples_ -= samples_ % fixed;
  return {};
}

// What has samples along axis 0 with samples along another one.
inline Status Feed::move_samples(const Fed& field, DLTensor* given) {
  std::vector<int64_t> shape(given->shape, given->shape + given->ndim);
  if (field.axis >= shape.size()) return {};  // refused where its shape is checked
  const auto end = shape.begin() + static_cast<int64_t>(field.axis) + 1;
  std::rotate(shape.begin(), shape.begin() + 1, end);
  Tensor& room = moved_[field.at];
  if (!room || !std::ranges::equal(shape_of(room.dl()), shape)) {
    TN_TRY(made, Tensor::zeros(ctx_, dtype_of(*given), shape));
    room = made;
  }
  const auto n = static_cast<size_t>(given->shape[0]);
  const std::span<const int64_t> dims(shape);
  const auto before = static_cast<size_t>(element_count(dims.first(field.axis)));
  const size_t bytes = bytes_of(dtype_of(*given), element_count(dims.subspan(field.axis + 1)));
  const auto* from = data_of<const char>(*given);
  auto* to = data_of<char>(room.dl());
  for (size_t sample = 0; sample < n; ++sample)
    for (size_t i = 0; i < before; ++i)
      std::copy_n(from + (sample * before + i) * bytes, bytes, to + (i * n + sample) * bytes);
  *given = room.dl();
  return {};
}

// A field of the batch at hand, in the type that is wanted.
inline Status Feed::hand_on(const Fed& field, Tensor* room, DLTensor* view) {
  if (!raw_->is_given(field.at))
    return {TN_INTERNAL, cat(fields_.data->id(), ": gave nothing for ", field.name)};
  DLTensor given = (*raw_)[field.at].dl();
  if (field.given != TN_DTYPE_NONE && dtype_of(given) != field.given)
    return fault(cat("field ", field.name, ": said to be ", dtype_name(field.given),
                     ", a batch of it is ", dtype_name(dtype_of(given))));
  if (field.axis > 0) TN_CHECK(move_samples(field, &given));
  bool fits = !field.wanted.ranked || field.wanted.rank() == static_cast<size_t>(given.ndim);
  for (size_t i = 0; fits && i < field.wanted.rank(); ++i)
    fits = field.wanted.dims[i] < 0 || field.wanted.dims[i] == given.shape[i];
  if (!fits)
    return fault(cat("field ", field.name, ": a batch of it is ",
                     type_text(Type(field.given, {given.shape, given.shape + given.ndim})),
                     ", which the model does not take: expected ", type_text(field.wanted),
                     fields_.options_text()));
  *view = given;
  if (field.dtype == field.given) return {};
  if (!*room || !std::ranges::equal(shape_of(room->dl()), shape_of(given))) {
    TN_TRY(made, Tensor::zeros(ctx_, field.dtype, shape_of(given)));
    *room = made;
  }
  *view = room->dl();
  return convert(given, *view).in(cat("option ", option_, ": field ", field.name));
}

// Once. A Relu in the model makes 0 of NaN, so that nothing behind it shows that there was one.
inline void Feed::warn_of_nan(std::span<const uint64_t> samples) {
  for (size_t i = 0; i < inputs_.size() && !has_warned_; ++i) {
    const DLTensor given = inputs_[i].axis > 0 ? (*raw_)[inputs_[i].at].dl() : views_[i];
    if (dtype_of(given) != TN_F32) continue;
    const int64_t sample = first_along_axis_0(given, [](auto x) { return x != x; });
    if (sample < 0) continue;
    has_warned_ = true;
    log_line(ctx_, TN_LOG_WARNING,
             cat("option ", option_, ": field ", inputs_[i].name, " has NaN in ",
                 sample_text(samples[static_cast<uint64_t>(sample) % samples.size()])));
  }
}

inline Result<Feed::Batch> Feed::load(std::span<const uint64_t> samples, uint64_t seed) {
  std::vector<uint64_t> index(samples.begin(), samples.end());
  while (is_fixed_ && index.size() < batch_)  // the same samples again until it is full
    index.push_back(samples[index.size() % samples.size()]);
  TN_CHECK(Status(fields_.table()->batch(fields_.data->self(), index.data(), index.size(), seed,
                                         raw_->outputs()))
               .in(cat("option ", option_)));
  const size_t n = inputs_.size();
  room_.resize(n + extras_.size());
  views_.resize(n + extras_.size());
  cut_.resize(extras_.size());
  for (size_t i = 0; i < views_.size(); ++i)
    TN_CHECK(hand_on(i < n ? inputs_[i] : extras_[i - n], &room_[i], &views_[i]));
  warn_of_nan(samples);
  for (size_t i = 0; i < extras_.size() && index.size() > samples.size(); ++i) {
    DLTensor& view = views_[n + i];
    cut_[i].assign(view.shape, view.shape + view.ndim);
    if (!cut_[i].empty()) cut_[i][0] = static_cast<int64_t>(samples.size());
    view.shape = cut_[i].data();
  }
  std::span<const DLTensor> all(views_);
  return Batch{all.first(n), all.subspan(n), all, samples.size()};
}

// Runs the plan on each batch; each(batch) reads what came out. progress: of samples, or nullptr.
template <class Each>
Status run_batches(Plan& plan, Feed& feed, const Cancel& cancel, Progress* progress, Each&& each) {
  uint64_t done = 0;
  for (uint64_t b = 0; b < feed.batches(); ++b) {
    TN_CHECK(cancel.check());
    TN_TRY(batch, feed.load(b));
    TN_CHECK(plan.run(batch.inputs, cancel.raw()).in(feed.batch_text(b)));
    TN_CHECK(each(batch));
    done += batch.samples;
    if (progress) progress->update(done);
  }
  return {};
}

}  // namespace tenon
