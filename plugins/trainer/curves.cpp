// SPDX-License-Identifier: Apache-2.0
// "trainer.curves": the losses of a run so far as a picture of text, logged after each so many
// epochs: a column holds the mean of as many steps as fit in it, eight levels a row.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/callback.hpp"

namespace tenon::trainer {
namespace {

constexpr std::array<std::string_view, 9> kLevels = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// Means of neighbours, at most so many.
std::vector<double> columns_of(const std::vector<double>& losses, size_t most) {
  size_t n = std::min(losses.size(), most);
  std::vector<double> out(n);
  for (size_t i = 0; i < n; ++i) {
    size_t begin = losses.size() * i / n, end = losses.size() * (i + 1) / n;
    double sum = 0;
    for (size_t j = begin; j < end; ++j)
      sum += losses[j];
    out[i] = sum / static_cast<double>(end - begin);
  }
  return out;
}

constexpr size_t kLabel = 11;  // characters

std::string label(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%10.4g ", value);
  return text;
}

std::vector<std::string> picture(const std::vector<double>& columns, size_t rows) {
  auto [least, most] = std::minmax_element(columns.begin(), columns.end());
  double low = *least, high = *most, eighths = static_cast<double>(8 * rows);
  std::vector<std::string> out;
  for (size_t row = rows; row-- > 0;) {
    std::string line(kLabel, ' ');
    if (row + 1 == rows)
      line = label(high);
    else if (row == 0)
      line = label(low);
    for (double value : columns) {
      // The least has one eighth, so that each column shows.
      double level = high > low ? 1 + (value - low) / (high - low) * (eighths - 1) : 1;
      double here = std::clamp(std::round(level) - static_cast<double>(8 * row), 0.0, 8.0);
      line += kLevels[static_cast<size_t>(here)];
    }
    out.push_back(std::move(line));
  }
  return out;
}

class Curves {
 public:
  static Result<Curves> create(tn_ctx* ctx, const Options& options) {
    Curves out;
    out.ctx_ = ctx;
    out.every_ = static_cast<uint64_t>(options.integer("every"));
    out.width_ = static_cast<size_t>(options.integer("width"));
    out.rows_ = static_cast<size_t>(options.integer("height"));
    return out;
  }

  Result<bool> step(const tn_progress_point& at) {
    if (std::isfinite(at.loss)) losses_.push_back(at.loss);
    return false;
  }

  Result<bool> epoch(std::string_view, Graph) {
    if (++epochs_ % every_ != 0 || losses_.empty()) return false;
    log_line(ctx_, TN_LOG_INFO, cat("loss of ", losses_.size(), " steps"));
    for (const std::string& line : picture(columns_of(losses_, width_), rows_))
      log_line(ctx_, TN_LOG_INFO, line);
    return false;
  }

 private:
  tn_ctx* ctx_ = nullptr;
  uint64_t every_ = 1, epochs_ = 0;
  size_t width_ = 0, rows_ = 0;
  std::vector<double> losses_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_CALLBACK(curves,
               tenon::trainer::Curves,
               "trainer.curves",
               "the losses so far as a picture of text",
               R"({
  "properties": {
    "every": {"type": "integer", "minimum": 1, "default": 1, "description": "a drawing every this many epochs"},
    "width": {"type": "integer", "minimum": 8, "maximum": 500, "default": 64, "description": "columns"},
    "height": {"type": "integer", "minimum": 1, "maximum": 50, "default": 6, "description": "rows"}}})")
