// SPDX-License-Identifier: Apache-2.0
// "distiller.cached": a data set with the answers of a teacher as further fields, computed once. An
// epoch then costs no pass through the teacher.
#include <cstring>

#include <nlohmann/json.hpp>

#include "tenon/sdk/feed.hpp"
#include "tenon/sdk/role/dataset.hpp"

#include "teacher.hpp"

namespace tenon::distiller {
namespace {

constexpr std::string_view kPrefix = "teacher/";

struct Answer {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  std::vector<int64_t> sample = {};  // shape of one sample
  std::vector<char> data = {};       // of all samples

  uint64_t sample_bytes() const { return bytes_of(dtype, element_count(sample)); }
  // The answers to n samples behind those before, of a batch that was filled up to `filled`.
  Status append(const DLTensor& batch, uint64_t n, uint64_t filled) {
    std::span<const int64_t> shape = shape_of(batch);
    if (shape.empty() || shape[0] != static_cast<int64_t>(filled))
      return invalid(cat("the teacher's output ", name, ": expected the ", filled,
                         " samples of the batch on axis 0, got ",
                         shape.empty() ? "no axes" : cat(shape[0], " entries")));
    std::vector<int64_t> one(shape.begin() + 1, shape.end());
    if (data.empty()) {
      dtype = dtype_of(batch);
      sample = one;
    } else if (one != sample) {
      return invalid(
          cat("the teacher's output ", name, ": expected the same shape for all samples"));
    }
    const char* from = data_of<const char>(batch);
    data.insert(data.end(), from, from + n * sample_bytes());
    return {};
  }
};

class Cached {
 public:
  static Result<Cached> create(tn_ctx* ctx, const Options& options) {
    Cached out;
    TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
    out.data_ = std::move(data);
    TN_TRY(teacher, Teacher::from(options));
    out.size_ = out.table()->size(out.data_.self());
    if (out.size_ == TN_SIZE_UNKNOWN)
      return unsupported(cat(out.data_.id(), " is a stream of unknown length: nothing to keep"));
    FeedPlan plan{.user = "a teacher", .usual = static_cast<uint64_t>(options.integer("batch"))};
    TN_TRY(feed, Feed::make(ctx, out.data_, teacher.view(), plan));
    out.n_fields_ = feed.fields().all.size();
    TN_TRY(chosen, out.choose(teacher, options.texts("outputs")));
    Result<Plan> compiled = Plan::on_first(ctx, teacher.view(), chosen, options.texts("backend"));
    if (!compiled.ok()) return std::move(compiled).status().in("the teacher");
    TN_CHECK(out.fill(ctx, *compiled, feed));
    return Result<Cached>(std::move(out));
  }

  uint64_t size() const { return size_; }
  Status fields(Sink& sink) const {
    StringSink text;
    TN_CHECK(table()->fields(data_.self(), text.get()));
    auto all = nlohmann::ordered_json::parse(text.text);
    for (const Answer& one : answers_)
      all.push_back({{"name", cat(kPrefix, one.name)},
                     {"dtype", dtype_name(one.dtype)},
                     {"shape", one.sample}});
    return sink.write(all.dump());
  }
  Status batch(std::span<const uint64_t> index, uint64_t seed, const Outputs& outputs) const {
    TN_CHECK(Status(table()->batch(data_.self(), index.data(), index.size(), seed, outputs.raw())));
    for (size_t k = 0; k < answers_.size(); ++k) {
      const Answer& one = answers_[k];
      std::vector<int64_t> shape{static_cast<int64_t>(index.size())};
      shape.insert(shape.end(), one.sample.begin(), one.sample.end());
      TN_TRY(out, outputs.get(n_fields_ + k, one.dtype, shape));
      for (size_t i = 0; i < index.size(); ++i)
        std::memcpy(data_of<char>(out) + i * one.sample_bytes(),
                    one.data.data() + index[i] * one.sample_bytes(), one.sample_bytes());
    }
    return {};
  }
  std::string origin(uint64_t index) const { return origin_of(data_, index); }

 private:
  const tn_dataset* table() const { return data_.table<tn_dataset>(); }

  // The values to keep, and their names.
  Result<std::vector<Value>> choose(const Teacher& teacher, std::vector<std::string> names) {
    Graph graph = teacher.view();
    if (names.empty()) names.emplace_back(graph.output_name(0));
    std::vector<Value> chosen;
    for (const std::string& name : names) {
      TN_TRY(output, teacher.output(name));
      chosen.push_back(scores_of(output));
      answers_.push_back({name});
    }
    return Result<std::vector<Value>>(std::move(chosen));
  }

  Status fill(tn_ctx* ctx, Plan& plan, Feed& feed) {
    Progress progress(ctx, "asking the teacher", size_);
    auto keep = [&](const Feed::Batch& batch) -> Status {
      for (size_t k = 0; k < answers_.size(); ++k)
        TN_CHECK(answers_[k].append(plan.tap(k).dl(), batch.samples,
                                    feed.is_fixed() ? feed.batch() : batch.samples));
      return {};
    };
    return run_batches(plan, feed, Cancel{nullptr}, &progress, keep).in("the teacher");
  }

  Component data_;
  uint64_t size_ = 0, n_fields_ = 0;
  std::vector<Answer> answers_;
};

}  // namespace
}  // namespace tenon::distiller

TENON_DATASET(cached,
              tenon::distiller::Cached,
              "distiller.cached",
              "a data set with a teacher's answers as further fields, computed once",
              R"({
  "properties": {
    "data": {"type": "component", "role": "tenon.dataset/1", "description": "the data set, read with seed 0 for the teacher"},
    "teacher": {"type": "graph", "description": "the model whose answers are kept"},
    "outputs": {"type": ["array", "string"], "items": {"type": "string"},
                "description": "which outputs; default: the first. Field teacher/NAME holds output NAME, before a final Softmax"},
    "batch": {"type": "integer", "minimum": 1, "default": 64, "description": "batch size"},
    )" TENON_BACKEND_OPTION("runs the teacher") R"(},
  "required": ["data", "teacher"]})")
