// SPDX-License-Identifier: Apache-2.0
// "datasets.csv": a table of numbers; one column may be the label. Text labels become class
// numbers in sorted order.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "tenon/nearest.hpp"

#include "array_table.hpp"
#include "csv_text.hpp"
#include "file.hpp"

namespace tenon::datasets {
namespace {

std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <class T>
std::optional<T> parsed(std::string_view cell) {
  cell = trimmed(cell);
  if (!cell.empty() && cell[0] == '+') cell.remove_prefix(1);
  T out = 0;
  auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
  if (code != std::errc() || end != cell.data() + cell.size()) return {};
  return out;
}

std::optional<double> number_in(std::string_view cell) {
  return parsed<double>(cell);
}

// Digits of up to 64 bits as they are; 3.0 and 1e3 are whole, too, as far as float64 is exact.
std::optional<int64_t> whole_in(std::string_view cell) {
  if (std::optional<int64_t> exact = parsed<int64_t>(cell)) return exact;
  std::optional<double> number = number_in(cell);
  if (!number || *number != std::floor(*number) || std::abs(*number) >= 0x1p53) return {};
  return static_cast<int64_t>(*number);
}

// As float32 holds it; a number beyond that is none.
std::optional<float> float_in(std::string_view cell) {
  std::optional<double> number = number_in(cell);
  constexpr double kMost = std::numeric_limits<float>::max();
  if (!number || (std::isfinite(*number) && std::abs(*number) > kMost)) return {};
  return static_cast<float>(*number);
}

class Reading {
 public:
  Reading(const Options& options, CsvText text, std::string who)
      : options_(options), text_(std::move(text)), who_(std::move(who)) {}

  Status into(ArrayTable* table) {
    first_ = has_header() ? 1 : 0;
    if (text_.rows() == first_) return invalid(who_ + ": a header and no rows");
    TN_TRY(label, label_column());
    if (label && text_.width == 1) return invalid(who_ + ": only a label column, no features");
    TN_TRY(columns, feature_columns(label));
    TN_CHECK(features(table, columns));
    return label ? labels(table, *label) : Status();
  }

 private:
  uint64_t rows() const { return text_.rows() - first_; }

  // A first row with a cell that is no number is a header, but the label's text decides nothing.
  bool has_header() const {
    std::string said = options_.text("header");
    if (said != "auto") return said == "yes";
    std::string label = label_name();
    for (uint64_t c = 0; c < text_.width; ++c) {
      if (!label.empty() && !number_in(label) && trimmed(text_.at(0, c)) == label) return true;
      bool is_label = label == std::to_string(c) || (label == "-1" && c + 1 == text_.width);
      if (!is_label && !number_in(text_.at(0, c))) return true;
    }
    return false;
  }

  // By its name in the header, or its number; -1 is the last.
  Result<uint64_t> column(std::string_view option, const std::string& name) const {
    std::vector<std::string> names;
    for (uint64_t c = 0; first_ && c < text_.width; ++c)
      names.emplace_back(trimmed(text_.at(0, c)));
    if (auto found = std::ranges::find(names, name); found != names.end())
      return static_cast<uint64_t>(found - names.begin());
    std::optional<double> number = number_in(name);
    double width = static_cast<double>(text_.width);
    if (number && *number == std::floor(*number) && *number >= -width && *number < width)
      return static_cast<uint64_t>(*number < 0 ? *number + width : *number);
    return invalid(
        cat(who_, ": option ", option, ": expected a column's name or a number below ", text_.width,
            ", got '", name, "'", did_you_mean(name, names),
            text_.width == 1 ? "; option delimiter says what stands between cells" : ""));
  }

  // As a text or as a number.
  std::string label_name() const {
    const bool is_number = options_.get("label").tag == TN_ANY_I64;
    return is_number ? std::to_string(options_.integer("label")) : options_.text("label");
  }

  Result<std::optional<uint64_t>> label_column() const {
    std::string name = label_name();
    if (name.empty()) return std::optional<uint64_t>();
    TN_TRY(found, column("label", name));
    return std::optional(found);
  }

  Result<std::vector<uint64_t>> feature_columns(std::optional<uint64_t> label) const {
    std::vector<uint64_t> out;
    for (const std::string& name : options_.texts("columns")) {
      TN_TRY(found, column("columns", name));
      out.push_back(found);
    }
    for (uint64_t c = 0; !options_.has("columns") && c < text_.width; ++c)
      if (c != label) out.push_back(c);
    return Result<std::vector<uint64_t>>(std::move(out));
  }

  static std::string shortened(std::string_view cell) {
    static constexpr size_t kShown = 40;
    return cell.size() <= kShown ? std::string(cell) : cat(cell.substr(0, kShown), "...");
  }

  // A whole line in one cell is parted by something else.
  std::string advice(std::string_view cell) const {
    for (char other : {';', '\t', '|', ' '})
      if (text_.width == 1 && cell.find(other) != std::string_view::npos)
        return cat("; option delimiter says what stands between cells, here perhaps '",
                   other == '\t' ? "tab" : std::string(1, other), "'");
    return "; option columns names the ones to read";
  }

  Status no_number(uint64_t row, uint64_t column) const {
    const std::string& cell = text_.at(row, column);
    const bool is_large = number_in(cell).has_value();
    return invalid(cat(who_, ": line ", text_.lines[row], ", column ", column + 1, ": expected a ",
                       is_large ? "number that float32 holds" : "number", ", got '",
                       shortened(cell), "'", is_large ? "" : advice(cell)));
  }

  Status features(ArrayTable* table, const std::vector<uint64_t>& columns) const {
    auto values = std::make_shared<std::vector<float>>();
    values->reserve(rows() * columns.size());
    for (uint64_t r = first_; r < text_.rows(); ++r) {
      for (uint64_t c : columns) {
        std::optional<float> number = float_in(text_.at(r, c));
        if (!number) return no_number(r, c);
        values->push_back(*number);
      }
    }
    std::string_view bytes(reinterpret_cast<const char*>(values->data()), values->size() * 4);
    return table->add(
        {options_.text("field"), TN_F32, {static_cast<int64_t>(columns.size())}, bytes}, rows(),
        values);
  }

  Status labels(ArrayTable* table, uint64_t column) const {
    auto classes = std::make_shared<std::vector<int64_t>>();
    auto targets = std::make_shared<std::vector<float>>();
    std::optional<uint64_t> too_large;
    bool whole = true, numbers = true;
    for (uint64_t r = first_; r < text_.rows(); ++r) {
      if (trimmed(text_.at(r, column)).empty())
        return invalid(cat(who_, ": line ", text_.lines[r], ", column ", column + 1,
                           ": expected a label, got an empty cell"));
      std::optional<double> number = number_in(text_.at(r, column));
      numbers = numbers && number;
      std::optional<int64_t> class_number = whole_in(text_.at(r, column));
      whole = whole && class_number;
      if (number && !float_in(text_.at(r, column))) too_large = r;
      targets->push_back(float_in(text_.at(r, column)).value_or(0));
      classes->push_back(class_number.value_or(0));
    }
    std::string name = options_.text("label_field");
    if (numbers && !whole && too_large) return no_number(*too_large, column);
    if (numbers && !whole)
      return table->add({name, TN_F32, {}, bytes_in(*targets)}, rows(), targets);
    if (!numbers) *classes = class_numbers(column);
    return table->add({name, TN_I64, {}, bytes_in(*classes)}, rows(), classes);
  }

  std::vector<int64_t> class_numbers(uint64_t column) const {
    std::set<std::string_view> names;
    for (uint64_t r = first_; r < text_.rows(); ++r)
      names.insert(trimmed(text_.at(r, column)));
    std::vector<int64_t> out;
    for (uint64_t r = first_; r < text_.rows(); ++r)
      out.push_back(std::distance(names.begin(), names.find(trimmed(text_.at(r, column)))));
    return out;
  }

  template <class T>
  static std::string_view bytes_in(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }

  const Options& options_;
  CsvText text_;
  std::string who_;
  uint64_t first_ = 0;
};

class Csv : public ArrayTable {
 public:
  static Result<Csv> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(file, File::open(ctx, options.text("path")));
    std::string delimiter = options.text("delimiter");
    if (delimiter == "\\t" || delimiter == "tab") delimiter = "\t";
    if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n")
      return invalid(cat("option delimiter: expected one character, got '", delimiter, "'"));
    TN_TRY(text, parse_csv(file.bytes(), delimiter[0], file.path()));
    Csv out;
    TN_CHECK(Reading(options, std::move(text), file.path()).into(&out));
    return out;
  }
};

}  // namespace
}  // namespace tenon::datasets

TENON_DATASET(csv, tenon::datasets::Csv, "datasets.csv", "a table of numbers in text", R"({
  "extensions": [".csv"],
  "properties": {
    "path": {"type": "path", "description": "the file"},
    "header": {"enum": ["auto", "yes", "no"], "type": "string", "default": "auto",
               "description": "whether row 1 names the columns; auto: when it is not all numbers"},
    "label": {"type": ["string", "integer"], "default": "",
              "description": "the label's column: a name, or a number from 0 (-1 the last); empty: none"},
    "delimiter": {"type": "string", "default": ",", "description": "between cells: one character, or tab"},
    "columns": {"type": ["array", "string"], "items": {"type": "string"},
                "description": "columns of features in this order, by name or number; default: all but the label"},
    "field": {"type": "string", "default": "x", "description": "name of the float32 field of features"},
    "label_field": {"type": "string", "default": "label", "description": "name of the label's field"}},
  "required": ["path"]})")
