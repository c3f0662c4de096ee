// SPDX-License-Identifier: Apache-2.0
// "datasets.subset": part of another data set, in its order or shuffled by a seed. Two subsets with
// one seed and touching ranges are a split: nothing is in both, nothing is lost.
#include <cmath>
#include <numeric>

#include "tenon/role/dataset.h"

#include "tenon/sdk/fields.hpp"

#include "array_table.hpp"

namespace tenon::datasets {
namespace {

// Fisher and Yates' shuffle on the host's counter-based generator.
void shuffle(std::vector<uint64_t>* order, uint64_t seed) {
  std::vector<double> draws(order->size());
  services.random->uniform(seed, 0, 0, draws.data(), draws.size());
  for (size_t i = order->size(); i-- > 1;)
    std::swap((*order)[i], (*order)[static_cast<size_t>(draws[i] * static_cast<double>(i + 1))]);
}

class Subset {
 public:
  static Result<Subset> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
    Subset out;
    out.data_ = std::move(data);
    uint64_t size = out.table()->size(out.data_.self());
    if (size == TN_SIZE_UNKNOWN)
      return unsupported(
          cat(out.data_.id(), " is a stream of unknown length: no part of it can be taken"));
    if (options.has("samples")) {
      TN_CHECK(out.take(options, size));
      return Result<Subset>(std::move(out));
    }
    double low = options.number("from"), high = options.number("to", 1);
    if (low > high)
      return invalid(cat("option from: expected at most option to (", high, "), got ", low));
    // llround of the same product on both sides of a cut: parts touch, never overlap.
    auto cut = [&](double at) {
      return static_cast<uint64_t>(std::llround(at * static_cast<double>(size)));
    };
    uint64_t first = cut(low) + static_cast<uint64_t>(options.integer("skip"));
    uint64_t last = cut(high);
    if (options.has("count")) {
      uint64_t count = static_cast<uint64_t>(options.integer("count"));
      if (count > last - std::min(first, last))
        return invalid(cat("option count: expected at most ", last - std::min(first, last),
                           " samples, got ", count));
      last = first + count;
    }
    if (first >= last) return invalid(cat("empty: samples ", first, " to ", last, " of ", size));
    std::vector<uint64_t> order(size);
    std::iota(order.begin(), order.end(), uint64_t{0});
    if (options.has("seed")) shuffle(&order, static_cast<uint64_t>(options.integer("seed")));
    out.order_.assign(order.begin() + static_cast<int64_t>(first),
                      order.begin() + static_cast<int64_t>(last));
    return out;
  }
  uint64_t size() const { return order_.size(); }
  Status fields(Sink& sink) const {
    StringSink text;
    TN_CHECK(table()->fields(data_.self(), text.get()));
    return sink.write(text.text);
  }
  Status batch(std::span<const uint64_t> index, uint64_t seed, const Outputs& outputs) const {
    TN_CHECK(check_index(index, size()));
    std::vector<uint64_t> theirs;
    for (uint64_t i : index)
      theirs.push_back(order_[i]);
    return Status(table()->batch(data_.self(), theirs.data(), theirs.size(), seed, outputs.raw()));
  }
  std::string origin(uint64_t index) const { return origin_of(data_, order_[index]); }

 private:
  // These samples, in this order.
  Status take(const Options& options, uint64_t size) {
    bool is_cut = options.number("from") > 0 || options.number("to", 1) < 1 ||
                  options.integer("skip") > 0 || options.has("count") || options.has("seed");
    if (is_cut)
      return invalid("option samples: expected it without from, to, skip, count and seed");
    for (int64_t at : ints_of(options.get("samples"))) {
      if (at < 0 || static_cast<uint64_t>(at) >= size)
        return invalid(
            cat("option samples: expected numbers of samples below ", size, ", got ", at));
      order_.push_back(static_cast<uint64_t>(at));
    }
    return order_.empty() ? invalid("option samples: expected at least one, got none") : Status();
  }
  const tn_dataset* table() const { return data_.table<tn_dataset>(); }
  Component data_;
  std::vector<uint64_t> order_;
};

}  // namespace
}  // namespace tenon::datasets

TENON_DATASET(subset,
              tenon::datasets::Subset,
              "datasets.subset",
              "part of another data set, shuffled by a seed or in order",
              R"({
  "properties": {
    "data": {"type": "component", "role": "tenon.dataset/1", "description": "the data set"},
    "from": {"type": "number", "minimum": 0, "maximum": 1, "default": 0, "description": "first sample, as a fraction"},
    "to": {"type": "number", "minimum": 0, "maximum": 1, "default": 1, "description": "end, as a fraction"},
    "skip": {"type": "integer", "minimum": 0, "default": 0, "description": "samples to leave out after from"},
    "count": {"type": "integer", "minimum": 1, "description": "samples to keep; default: all to the end"},
    "seed": {"type": "integer", "minimum": 0, "description": "shuffles all samples first; default: their order"},
    "samples": {"type": ["array", "integer"], "items": {"type": "integer", "minimum": 0}, "description": "in place of the others: the numbers of the samples, in the order that they get"}},
  "required": ["data"]})")
