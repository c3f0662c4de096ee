// SPDX-License-Identifier: Apache-2.0
#include "selection.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace tenon::pruner {
namespace {

// Channels by rising score.
std::vector<size_t> ranking(const std::vector<double>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  return order;
}

std::vector<bool> remove_lowest(const Candidate& group, int64_t removed) {
  std::vector<bool> out(group.scores.size());
  std::vector<size_t> order = ranking(group.scores);
  for (int64_t i = 0; i < removed; ++i)
    out[order[static_cast<size_t>(i)]] = true;
  return out;
}

// 0.3 of 10 is 3, though 0.3 * 10 is a little less in binary.
int64_t share(double ratio, int64_t n) {
  return static_cast<int64_t>(std::floor(ratio * static_cast<double>(n) + 1e-9));
}

std::string short_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

int64_t count_of(const Candidate& group) {
  return static_cast<int64_t>(group.scores.size());
}

// Of the channel that would go after so many.
double next_score(const Candidate& group, int64_t gone) {
  return group.scores[ranking(group.scores)[static_cast<size_t>(gone)]];
}

}  // namespace

int64_t kept_count(int64_t wanted, int64_t n, int64_t width, const Limits& limits) {
  int64_t kept = std::max(wanted, limits.min_channels);
  while (kept < n && kept * width % limits.round_to != 0)
    ++kept;
  return std::min(kept, n);
}

namespace {

// How many channels go of each group: its share rounded down, and then, so that all together lose
// their ratio, one more each of those with the largest part of a channel left over (the method of
// largest remainders): 0.3 of six heads are 1.8, and twelve layers lose 21 of 72, not twelve. Where
// parts are equal, the largest group is first, since one channel is the smallest share of it: of
// 1.8 of six and 4.8 of sixteen the fifth of sixteen goes, not the second of six, whatever the
// scores; then the group whose next channel has the least score. Channels count by their width.
std::vector<int64_t> shares(const std::vector<Candidate>& groups, const Limits& limits) {
  std::vector<int64_t> out;
  std::vector<size_t> order;
  std::vector<double> rest;
  double left = 1e-6;
  for (size_t g = 0; g < groups.size(); ++g) {
    const int64_t n = count_of(groups[g]);
    out.push_back(share(groups[g].ratio, n));
    const double part = groups[g].ratio * static_cast<double>(n) - static_cast<double>(out[g]);
    rest.push_back(std::max(std::round(part * 1e6) / 1e6, 0.0));
    left += rest[g] * static_cast<double>(groups[g].width);
    if (rest[g] > 0 && out[g] + 1 <= n - limits.min_channels) order.push_back(g);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (rest[a] != rest[b]) return rest[a] > rest[b];
    if (count_of(groups[a]) != count_of(groups[b]))
      return count_of(groups[a]) > count_of(groups[b]);
    return next_score(groups[a], out[a]) < next_score(groups[b], out[b]);
  });
  for (size_t g : order) {
    const auto width = static_cast<double>(groups[g].width);
    if (left < width) continue;
    ++out[g];
    left -= width;
  }
  return out;
}

}  // namespace

std::vector<std::vector<bool>> select_local(const std::vector<Candidate>& groups,
                                            const Limits& limits) {
  std::vector<int64_t> gone = shares(groups, limits);
  std::vector<std::vector<bool>> out;
  for (size_t g = 0; g < groups.size(); ++g) {
    int64_t n = count_of(groups[g]);
    int64_t kept = kept_count(n - gone[g], n, groups[g].width, limits);
    out.push_back(remove_lowest(groups[g], n - kept));
  }
  return out;
}

Result<std::vector<std::vector<bool>>> select_global(const std::vector<Candidate>& groups,
                                                     double ratio,
                                                     const Limits& limits) {
  struct Entry {
    double score;
    size_t group;
  };
  std::vector<Entry> all;
  for (size_t g = 0; g < groups.size(); ++g)
    for (double score : groups[g].scores)
      all.push_back({score, g});
  std::stable_sort(all.begin(), all.end(),
                   [](const Entry& a, const Entry& b) { return a.score < b.score; });
  std::vector<int64_t> left;
  for (const Candidate& group : groups)
    left.push_back(count_of(group));
  int64_t wanted = share(ratio, static_cast<int64_t>(all.size())), gone = 0;
  for (size_t i = 0; i < all.size() && gone < wanted; ++i) {
    if (left[all[i].group] <= limits.min_channels) continue;
    --left[all[i].group];
    ++gone;
  }
  if (gone < wanted)
    return invalid(cat("ratio ", short_text(ratio), " would empty layers: of ", all.size(),
                       " channels ", gone, " can go when each layer keeps ", limits.min_channels,
                       ", expected ", wanted, "; lower the ratio or min_channels"));
  std::vector<std::vector<bool>> out;
  for (size_t g = 0; g < groups.size(); ++g) {
    int64_t n = count_of(groups[g]);
    out.push_back(remove_lowest(groups[g], n - kept_count(left[g], n, groups[g].width, limits)));
  }
  return out;
}

double cubic_sparsity(double initial, double final, int64_t step, int64_t steps) {
  double left = steps <= 0 ? 0 : 1 - static_cast<double>(step) / static_cast<double>(steps);
  return final + (initial - final) * left * left * left;
}

}  // namespace tenon::pruner
