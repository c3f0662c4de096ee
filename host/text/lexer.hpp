// SPDX-License-Identifier: Apache-2.0
#pragma once
// Characters and words of the graph text, with line and column for messages.

#include <string>
#include <string_view>

#include "services/status.hpp"

namespace tenon::host {

class TextLexer {
 public:
  explicit TextLexer(std::string_view text) : text_(text) {}

  bool at_end() { return skip(), at_ == text_.size(); }
  // Takes the mark when it is next. Marks that are words must end there.
  bool accept(std::string_view mark);
  bool ahead(std::string_view mark);
  Status expect(std::string_view mark);
  Result<std::string> quoted_text();
  Result<std::string> name();  // plain, or quoted
  std::string_view word();     // letters, digits and _; may be empty
  std::string_view number();   // what may belong to a number; may be empty
  std::string_view until(std::string_view stops);
  Status error(std::string_view expected);

 private:
  void skip();
  std::string_view take_while(std::string_view more);  // letters, digits and these
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace tenon::host
