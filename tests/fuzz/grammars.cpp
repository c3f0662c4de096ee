// SPDX-License-Identifier: Apache-2.0
// Bytes as an axis signature and as a scalar expression: parsed or refused with a place.
#include <string_view>

#include "languages/axes.hpp"
#include "languages/expr.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto axes = tenon::host::Axes::parse(text);
  if (axes) {
    auto again = tenon::host::Axes::parse(axes->text());
    if (!again || again->text() != axes->text()) __builtin_trap();
  }
  (void)tenon::host::Expr::parse(text);
  return 0;
}
