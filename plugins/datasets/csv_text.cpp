// SPDX-License-Identifier: Apache-2.0
#include "csv_text.hpp"

namespace tenon::datasets {
namespace {

class Parser {
 public:
  Parser(std::string_view text, char separator, const std::string& who)
      : text_(text), separator_(separator), who_(who) {
    if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;  // byte order mark
  }

  Result<CsvText> run() {
    while (at_ < text_.size()) {
      if (at_line_end()) {  // an empty line is no row
        end_line();
        continue;
      }
      TN_CHECK(row());
    }
    if (out_.rows() == 0) return invalid(who_ + ": empty, expected at least one row");
    return std::move(out_);
  }

 private:
  bool at_line_end() const { return text_[at_] == '\n' || text_[at_] == '\r'; }
  void end_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
  }

  Status row() {
    uint64_t started = line_, cells = 0;
    for (bool more = true; more; ++cells) {
      std::string cell;
      if (at_ < text_.size() && text_[at_] == '"') {
        TN_CHECK(quoted(&cell));
      } else {
        while (at_ < text_.size() && !at_line_end() && text_[at_] != separator_)
          cell += text_[at_++];
      }
      out_.cells.push_back(std::move(cell));
      more = at_ < text_.size() && text_[at_] == separator_;
      if (more) ++at_;
    }
    if (at_ < text_.size() && !at_line_end())
      return invalid(cat(who_, ": line ", line_, ": text after a closing quote"));
    end_line();
    if (out_.lines.empty()) out_.width = cells;
    if (cells != out_.width)
      return invalid(
          cat(who_, ": line ", started, ": expected ", out_.width, " cells, got ", cells));
    out_.lines.push_back(started);
    return {};
  }

  Status quoted(std::string* cell) {
    uint64_t started = line_;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        *cell += text_[at_];
        continue;
      }
      if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
        ++at_;
        return {};
      }
      *cell += '"';
      ++at_;
    }
    return invalid(cat(who_, ": line ", started, ": a quote is never closed"));
  }

  std::string_view text_;
  char separator_;
  const std::string& who_;
  CsvText out_;
  size_t at_ = 0;
  uint64_t line_ = 1;
};

}  // namespace

Result<CsvText> parse_csv(std::string_view text, char separator, const std::string& who) {
  return Parser(text, separator, who).run();
}

}  // namespace tenon::datasets
