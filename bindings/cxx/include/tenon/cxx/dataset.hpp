// SPDX-License-Identifier: Apache-2.0
#pragma once
// Data sets: samples by index, from any component of role tenon.dataset/1.

#include <numeric>

#include "tenon/role/dataset.h"

#include "tenon/cxx/component.hpp"

namespace tenon::cxx {

class Dataset {
 public:
  struct Field {
    std::string name, dtype;
    std::vector<int64_t> shape;  // of one sample
  };

  Dataset(const SessionPtr& session, const std::string& id, const Options& options)
      : component_(session, "tenon.dataset/1", id, options) {
    table_ = component_.table<tn_dataset>("tenon.dataset/1", &self_);
    TextSink text;
    check(table_->fields(self_, text.get()));
    try {
      for (const Json& field : Json::parse(text.text()))
        fields_.push_back({field.at("name"), field.at("dtype"), field.at("shape")});
    } catch (const Json::exception&) {
      throw Error(TN_INTERNAL,
                  cat(id, ": fields: expected a JSON array of objects with name, dtype ",
                      "and shape, got ", text.text()));
    }
  }
  // By the file's name; the path becomes the option "path".
  static Dataset open(const SessionPtr& session, const std::string& path, Json options = {}) {
    std::string id = component_for_file(*session, "tenon.dataset/1", path);
    options["path"] = path;
    return {session, id, Options(session, options)};
  }
  // `count` samples from `start`, as a data set of its own.
  Dataset part(uint64_t start, uint64_t count) const {
    Options options(session(), {{"skip", start}, {"count", count}});
    options.set("data", component_);
    return {session(), "datasets.subset", options};
  }

  // Samples; a stream, which has no size, is an error.
  uint64_t size() const {
    uint64_t n = table_->size(self_);
    if (n == TN_SIZE_UNKNOWN) invalid(cat(component_.id(), ": expected a size, got a stream"));
    return n;
  }
  const std::vector<Field>& fields() const { return fields_; }
  // Samples begin..end, each field stacked along a new first axis.
  std::vector<Tensor> batch(uint64_t begin, uint64_t end, uint64_t seed = 0) const {
    std::vector<uint64_t> index(end - begin);
    std::iota(index.begin(), index.end(), begin);
    Results results(session(), fields_.size());
    check(table_->batch(self_, index.data(), index.size(), seed, results.get()));
    std::vector<Tensor> taken = results.take();
    for (size_t i = 0; i < taken.size(); ++i) {
      if (!taken[i])
        throw Error(TN_INTERNAL, cat(component_.id(), ": gave nothing for ", fields_[i].name));
      std::span<const int64_t> shape = taken[i].shape();
      if (shape.empty() || static_cast<uint64_t>(shape[0]) != index.size())
        throw Error(TN_INTERNAL, cat(component_.id(), ": field ", fields_[i].name, ": expected ",
                                     index.size(), " samples, got ", taken[i].text()));
    }
    return taken;
  }
  const Component& component() const { return component_; }
  const SessionPtr& session() const { return component_.session(); }

 private:
  Component component_;
  const tn_dataset* table_ = nullptr;
  void* self_ = nullptr;
  std::vector<Field> fields_;
};

}  // namespace tenon::cxx
