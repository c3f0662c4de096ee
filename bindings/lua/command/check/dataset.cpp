// SPDX-License-Identifier: Apache-2.0
// A data set: batches have the fields that it declares, the same index and seed give the same
// bytes on any thread, another index another sample, an index that it does not have is an
// error, and each sample says where it comes from if the data set can.
#include "tenon/role/dataset.h"

#include <cstring>
#include <numeric>

#include "tenon/cxx/dataset.hpp"

#include "check.hpp"
#include "guarded.hpp"

namespace tenon::command::check {
namespace {

using Fields = std::vector<cxx::Dataset::Field>;
using Opened = Made<tn_dataset>;

Fields fields_of(const Opened& set) {
  cxx::TextSink text;
  cxx::check(set.table->fields(set.self, text.get()));
  Json declared = Json::parse(text.text(), nullptr, false);
  require(declared.is_array() && !declared.empty(),
          cat("fields: expected a JSON array, got ", text.text()));
  Fields out;
  for (const Json& one : declared) {
    bool whole = one.is_object() && one.contains("name") && one.contains("dtype") &&
                 one.contains("shape") && one["shape"].is_array();
    require(whole, cat("fields: expected name, dtype and shape, got ", one.dump()));
    out.push_back({one["name"], one["dtype"], one["shape"]});
  }
  return out;
}

std::vector<cxx::Tensor> batch(const Subject& subject,
                               const Opened& set,
                               const std::vector<uint64_t>& index) {
  cxx::Results results(subject.session, fields_of(set).size());
  cxx::check(set.table->batch(set.self, index.data(), index.size(), 7, results.get()));
  return results.take();
}

uint64_t samples_of(const Opened& set) {
  uint64_t n = set.table->size(set.self);
  return n == TN_SIZE_UNKNOWN ? 4 : n;
}

void fits(const std::vector<cxx::Tensor>& got, const Fields& fields, int64_t n) {
  for (size_t i = 0; i < fields.size(); ++i) {
    require(static_cast<bool>(got[i]), cat("field ", fields[i].name, ": nothing was given"));
    std::vector<int64_t> shape = fields[i].shape;
    shape.insert(shape.begin(), n);
    std::string type = cxx::dtype_name(got[i].dtype());
    require(type == fields[i].dtype && std::ranges::equal(got[i].shape(), shape),
            cat("field ", fields[i].name, ": declared ", fields[i].dtype, ", got ", got[i].text()));
  }
}

std::string bytes_of(const std::vector<cxx::Tensor>& batch) {
  std::string all;
  for (const cxx::Tensor& field : batch)
    all.append(static_cast<const char*>(field.data()), field.bytes());
  return all;
}

// The first samples, and the same ones the other way round: the bytes are others, unless all
// samples are alike.
void follows_the_index(const Subject& subject, const Opened& set) {
  std::vector<uint64_t> index(std::min<uint64_t>(samples_of(set), 8));
  std::iota(index.begin(), index.end(), 0);
  std::vector<uint64_t> back(index.rbegin(), index.rend());
  std::vector<cxx::Tensor> there = batch(subject, set, index);
  if (bytes_of(there) != bytes_of(batch(subject, set, back))) return;
  for (const cxx::Tensor& field : there) {
    size_t one = field.bytes() / index.size();
    const char* data = static_cast<const char*>(field.data());
    for (size_t i = 1; i < index.size(); ++i)
      require(
          std::memcmp(data, data + i * one, one) == 0,
          cat("samples 0 to ", index.size() - 1, " and back: expected other bytes, got the same"));
  }
}

void from_many_threads(const Subject& subject, const Opened& set) {
  constexpr size_t kThreads = 4;
  const uint64_t n = samples_of(set);
  std::vector<std::vector<uint64_t>> indices;
  std::vector<std::string> want;
  for (uint64_t i = 0; i < kThreads; ++i) {
    indices.push_back({n - 1 - i % n, i % n});
    want.push_back(bytes_of(batch(subject, set, indices.back())));
  }
  beside_others(kThreads, [&](size_t i) {
    require(bytes_of(batch(subject, set, indices[i])) == want[i],
            "a batch beside others: expected the same bytes, got other ones");
  });
}

}  // namespace

void check_dataset(Subject& subject, Report& report) {
  report.check("path", [&] {
    if (!subject.schema.contains("extensions")) throw Skipped{"it is for no files"};
    Json type = subject.schema.value(Json::json_pointer("/properties/path/type"), Json());
    require(type == "path" || type == "string",
            cat("a schema with extensions: expected the option path of type path, which is the ",
                "file, got ", type.is_null() ? "none" : cxx::dump(type)));
  });
  report.check("fields", [&] {
    Opened set(subject);
    fields_of(set);
  });
  report.check("batches", [&] {
    Opened set(subject);
    if (samples_of(set) == 0) throw Skipped{"it has no samples"};
    uint64_t last = samples_of(set) - 1;
    for (const std::vector<uint64_t>& index : {std::vector<uint64_t>{0}, {last, 0, last}}) {
      std::vector<cxx::Tensor> got = batch(subject, set, index);
      fits(got, fields_of(set), static_cast<int64_t>(index.size()));
      std::vector<cxx::Tensor> again = batch(subject, set, index);
      for (size_t i = 0; i < got.size(); ++i)
        require(std::memcmp(got[i].data(), again[i].data(), got[i].bytes()) == 0,
                "the same index and seed gave other bytes");
    }
  });
  report.check("order", [&] {
    Opened set(subject);
    if (samples_of(set) < 2) throw Skipped{"it has less than two samples"};
    follows_the_index(subject, set);
  });
  report.check("from many threads", [&] {
    Opened set(subject);
    if (samples_of(set) == 0) throw Skipped{"it has no samples"};
    from_many_threads(subject, set);
  });
  report.check("buffers", [&] {
    Opened set(subject);
    if (samples_of(set) == 0) throw Skipped{"it has no samples"};
    GuardedArray<uint64_t> index({samples_of(set) - 1, 0});
    GuardedResults results;
    cxx::check(set.table->batch(set.self, index.data(), 2, 7, results.get()));
    results.require_whole("");
  });
  report.check("an index too far", [&] {
    Opened set(subject);
    if (set.table->size(set.self) == TN_SIZE_UNKNOWN) throw Skipped{"it is a stream"};
    cxx::Results results(subject.session, fields_of(set).size());
    for (uint64_t index : {samples_of(set), UINT64_MAX})
      must_fail(set.table->batch(set.self, &index, 1, 7, results.get()), cat("index ", index));
  });
  report.check("where samples come from", [&] {
    Opened set(subject);
    if (!set.table->origin || samples_of(set) == 0) throw Skipped{"it has no words for it"};
    cxx::TextSink first, beyond;
    cxx::check(set.table->origin(set.self, 0, first.get()));
    require(!first.text().empty(), "origin of sample 0: expected a text, got none");
    if (set.table->size(set.self) != TN_SIZE_UNKNOWN)
      must_fail(set.table->origin(set.self, samples_of(set), beyond.get()),
                "origin beyond the end");
  });
  report.check("outputs that fail", [&] {
    Opened set(subject);
    if (samples_of(set) == 0) throw Skipped{"it has no samples"};
    uint64_t first = 0;
    tn_outputs none{const_cast<SessionPtr*>(&subject.session),
                    [](void* session, uint64_t, const DLTensor*, DLTensor*) {
                      const auto& of = *static_cast<const SessionPtr*>(session);
                      return of->status->make(of->ctx(), TN_RESOURCE_EXHAUSTED, cxx::str("check"),
                                              cxx::str("no memory"), nullptr);
                    }};
    must_fail(set.table->batch(set.self, &first, 1, 7, &none), "outputs without memory");
  });
}

}  // namespace tenon::command::check
