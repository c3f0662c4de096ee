// SPDX-License-Identifier: Apache-2.0
// "distiller.cached": a data set with the answers of a teacher as further fields, computed once. An
// epoch then costs no pass through the teacher.
#include <cstring>
#include <numeric>

#include <nlohmann/json.hpp>

#include "tenon/role/dataset.h"

#include "tenon/sdk/collected.hpp"
#include "tenon/sdk/component.hpp"
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
  // The answers to one batch behind those before.
  Status append(const DLTensor& batch, uint64_t n) {
    std::span<const int64_t> shape = shape_of(batch);
    if (shape.empty() || shape[0] != static_cast<int64_t>(n))
      return invalid(cat("the teacher's output ", name, ": expected the ", n,
                         " samples of the batch on axis 0"));
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

class Run {  // the compiled teacher
 public:
  Run() = default;
  Run(const Run&) = delete;
  ~Run() {
    if (raw_) services.eval->release(raw_);
  }
  Status compile(tn_ctx* ctx,
                 Graph graph,
                 const std::vector<Value>& kept,
                 std::vector<std::string> backends) {
    std::vector<tn_value_id> taps;
    for (Value v : kept)
      taps.push_back(v.id);
    if (backends.empty()) backends = {"onednn", "reference"};
    Status last;
    for (const std::string& id : backends) {
      std::string options = nlohmann::json{{"backend", id}}.dump();
      last = Status(
          services.eval->compile(ctx, graph.raw, taps.data(), taps.size(), str(options), &raw_));
      if (last.code() != TN_NOT_FOUND && last.code() != TN_UNAVAILABLE) break;
    }
    return std::move(last).in("the teacher");
  }
  tn_plan* get() const { return raw_; }

 private:
  tn_plan* raw_ = nullptr;
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
    TN_CHECK(out.read_fields());
    TN_TRY(places, out.match(teacher.view()));
    TN_TRY(chosen, out.choose(teacher, options.texts("outputs")));
    Run run;
    TN_CHECK(run.compile(ctx, teacher.view(), chosen, options.texts("backend")));
    TN_CHECK(out.fill(ctx, run.get(), places, static_cast<uint64_t>(options.integer("batch"))));
    return Result<Cached>(std::move(out));
  }

  uint64_t size() const { return size_; }
  Status fields(Sink& sink) const {
    nlohmann::ordered_json all = fields_;
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
      TN_TRY(out, outputs.get(fields_.size() + k, one.dtype, shape));
      for (size_t i = 0; i < index.size(); ++i)
        std::memcpy(data_of<char>(out) + i * one.sample_bytes(),
                    one.data.data() + index[i] * one.sample_bytes(), one.sample_bytes());
    }
    return {};
  }

 private:
  const tn_dataset* table() const { return data_.table<tn_dataset>(); }

  Status read_fields() {
    StringSink text;
    TN_CHECK(Status(table()->fields(data_.self(), text.get())));
    fields_ = nlohmann::ordered_json::parse(text.text, nullptr, false);
    if (!fields_.is_array())
      return {TN_INTERNAL, cat(data_.id(), ": its list of fields is no list")};
    return {};
  }

  // Which field feeds each input of the teacher.
  Result<std::vector<size_t>> match(Graph teacher) const {
    std::vector<size_t> out;
    for (uint64_t i = 0; i < teacher.inputs().size(); ++i) {
      std::string_view name = teacher.input_name(i);
      std::string known;
      size_t at = 0;
      while (at < fields_.size() && fields_[at].value("name", "") != name) {
        known += cat(at ? ", " : "", fields_[at].value("name", ""));
        ++at;
      }
      if (at == fields_.size())
        return invalid(cat("option data: no field for the teacher's input ", name,
                           " (the data set has ", known, ")"));
      out.push_back(at);
    }
    return out;
  }

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
    n_outputs_ = graph.outputs().size();
    return Result<std::vector<Value>>(std::move(chosen));
  }

  Status fill(tn_ctx* ctx, tn_plan* plan, const std::vector<size_t>& places, uint64_t batch) {
    Progress progress(ctx, "asking the teacher", size_);
    for (uint64_t first = 0; first < size_; first += batch) {
      std::vector<uint64_t> index(std::min(batch, size_ - first));
      std::iota(index.begin(), index.end(), first);
      std::string where = cat("samples ", first, " to ", first + index.size() - 1);
      Collected fields(ctx, fields_.size()), results(ctx, n_outputs_ + answers_.size());
      TN_CHECK(Status(table()->batch(data_.self(), index.data(), index.size(), 0, fields.outputs()))
                   .in(where));
      std::vector<DLTensor> views;
      for (size_t place : places)
        views.push_back(fields[place].dl());
      std::vector<const DLTensor*> in;
      for (const DLTensor& view : views)
        in.push_back(&view);
      TN_CHECK(Status(services.eval->run(plan, in.data(), in.size(), results.outputs(), nullptr))
                   .in(cat("the teacher on ", where)));
      for (size_t k = 0; k < answers_.size(); ++k)
        TN_CHECK(answers_[k].append(results[n_outputs_ + k].dl(), index.size()));
      progress.update(first + index.size());
    }
    return {};
  }

  Component data_;
  uint64_t size_ = 0, n_outputs_ = 0;
  nlohmann::ordered_json fields_;
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
    "batch": {"type": "integer", "minimum": 1, "default": 64, "description": "samples at once"},
    "backend": {"type": ["array", "string"], "items": {"type": "string"},
                "description": "runs the teacher; the first that is there of: onednn, reference"}},
  "required": ["data", "teacher"]})")
