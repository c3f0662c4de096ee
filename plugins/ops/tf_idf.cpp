// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer over integers: counts of n-grams of a pool, with skips, weighted.
#include <algorithm>
#include <map>
#include <set>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using Ints = std::vector<int64_t>;

int64_t columns_of(Node node) {
  const Ints columns = node.attr_ints("ngram_indexes");
  const int64_t most = columns.empty() ? -1 : std::max<int64_t>(-1, std::ranges::max(columns));
  return most == INT64_MAX ? most : most + 1;
}

Status tf_idf_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, unranked(TN_F32));
  Dims out{columns_of(node)};
  if (x.rank() == 2) out.insert(out.begin(), dims_of(x)[0]);
  return set_output(edit, node, 0, TN_F32, out);
}

// The pool's n-grams of one length.
struct Grams {
  std::map<Ints, int64_t> columns;
  std::set<int64_t> firsts;  // what they begin with
};
using Pool = std::map<int64_t, Grams>;  // by length, those alone that there are

// ngram_counts: where in the pool those of each length begin.
Result<Pool> pool_of(Node node, int64_t shortest, int64_t longest) {
  Ints pool = node.attr_ints("pool_int64s"), begins = node.attr_ints("ngram_counts");
  Ints columns = node.attr_ints("ngram_indexes");
  if (node.attr("pool_strings").tag != TN_ANY_NONE)
    return unsupported("pool_strings: a tensor of Tenon holds numbers only");
  Pool out;
  size_t next = 0;  // numbers of n-grams run through all lengths
  for (size_t i = 0; i < begins.size(); ++i) {
    int64_t length = static_cast<int64_t>(i) + 1, total = static_cast<int64_t>(pool.size());
    int64_t end = i + 1 < begins.size() ? begins[i + 1] : total;
    if (begins[i] < 0 || begins[i] > end || end > total)
      return invalid(cat("ngram_counts: expected places in a pool of ", total));
    for (int64_t at = begins[i]; at + length <= end; at += length, ++next) {
      if (next >= columns.size() || columns[next] < 0)
        return invalid("ngram_indexes: expected a column for each n-gram of the pool");
      if (length < shortest || length > longest) continue;
      Grams& grams = out[length];
      grams.columns.emplace(Ints(pool.begin() + at, pool.begin() + at + length), columns[next]);
      grams.firsts.insert(pool[static_cast<size_t>(at)]);
    }
  }
  return out;
}

// Adds how often each n-gram stands in the row, also with up to so many numbers left out between
// two of its own.
void count_grams(std::span<const int64_t> row,
                 const Pool& pool,
                 int64_t most_skipped,
                 std::vector<double>* counts) {
  const auto length = static_cast<int64_t>(row.size());
  Ints gram;
  for (const auto& [n, grams] : pool) {
    if (n > length) break;
    // A single one skips nothing, and of others the last has to be in the row.
    const int64_t most_step = n == 1 ? 1 : std::min(most_skipped, (length - 1) / (n - 1) - 1) + 1;
    for (int64_t step = 1; step <= most_step; ++step) {
      for (int64_t first = 0; first + (n - 1) * step < length; ++first) {
        if (!grams.firsts.contains(row[static_cast<size_t>(first)])) continue;
        gram.clear();
        for (int64_t k = 0; k < n; ++k)
          gram.push_back(row[static_cast<size_t>(first + k * step)]);
        if (auto at = grams.columns.find(gram); at != grams.columns.end())
          ++(*counts)[static_cast<size_t>(at->second)];
      }
    }
  }
}

Status tf_idf_ref(const Call& call) {
  Node node = call.node();
  std::span<const int64_t> shape = call.shape(0);
  if (shape.size() > 2 || shape.empty()) return invalid("x: expected rank 1 or 2");
  int64_t shortest = node.attr_int("min_gram_length", 1),
          longest = node.attr_int("max_gram_length", 1);
  int64_t most_skipped = node.attr_int("max_skip_count");
  if (shortest < 1 || longest < shortest || most_skipped < 0)
    return invalid("expected 1 <= min_gram_length <= max_gram_length, and skips from 0");
  std::string_view mode = node.attr_text("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return invalid(cat("mode: expected one of TF, IDF, TFIDF, got '", mode, "'"));
  TN_TRY(pool, pool_of(node, shortest, longest));
  int64_t columns = columns_of(node), length = shape.back(),
          rows = shape.size() == 2 ? shape[0] : 1;
  std::vector<double> weights = floats_of(node.attr("weights"));
  weights.resize(static_cast<size_t>(columns), 1);
  Ints out_shape(shape.begin(), shape.end() - 1), x = read_ints(call.in(0));
  out_shape.push_back(columns);
  TN_TRY(out, call.out(0, TN_F32, out_shape));
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> counts(static_cast<size_t>(columns));
    count_grams(
        std::span(x).subspan(static_cast<size_t>(row * length), static_cast<size_t>(length)), pool,
        most_skipped, &counts);
    for (size_t c = 0; c < counts.size(); ++c) {
      double value = mode == "IDF" ? (counts[c] > 0 ? 1 : 0) : counts[c];
      if (mode != "TF") value *= weights[c];
      data_of<float>(out)[row * columns + static_cast<int64_t>(c)] = static_cast<float>(value);
    }
  }
  return {};
}

Result<Node> tf_idf_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_I32, {random.integer(1, 3), random.integer(1, 8)}));
  Ints begins{0, 2}, pool{1, 2, 0, 1, 2, 2}, columns{0, 1, 2, 3};
  constexpr const char* kModes[] = {"TF", "IDF", "TFIDF"};
  return edit.add({.type = "TfIdfVectorizer",
                   .inputs = {x},
                   .attrs = {{"max_gram_length", 2},
                             {"max_skip_count", random.integer(0, 2)},
                             {"min_gram_length", random.integer(1, 2)},
                             {"mode", kModes[random.integer(0, 2)]},
                             {"ngram_counts", begins},
                             {"ngram_indexes", columns},
                             {"pool_int64s", pool}}});
}

constexpr tn_op kTfIdf = op_row({.type = "TfIdfVectorizer",
                                 .since = 9,
                                 .attributes = R"([{"name": "max_gram_length", "type": "int"},
                                {"name": "max_skip_count", "type": "int"},
                                {"name": "min_gram_length", "type": "int"},
                                {"name": "mode", "type": "string"},
                                {"name": "ngram_counts", "type": "ints"},
                                {"name": "ngram_indexes", "type": "ints"},
                                {"name": "pool_int64s", "type": "ints"},
                                {"name": "pool_strings", "type": "strings"},
                                {"name": "weights", "type": "floats"}])",
                                 .shape = shape<tf_idf_shape, "x: index">,
                                 .cost = cost<move_cost>,
                                 .ref = ref<tf_idf_ref>,
                                 .sample = sample<tf_idf_sample>});

}  // namespace

TENON_OPS(tf_idf, &kTfIdf)

}  // namespace tenon::ops
