// SPDX-License-Identifier: Apache-2.0
// Bytes as options for a schema with every type, and as a schema.
#include <string_view>

#include "fuzz_session.hpp"
#include "schemas/option_schema.hpp"

namespace {

constexpr std::string_view kSchema = R"({"type": "object", "properties": {
  "ratio": {"type": "number", "default": 0.5, "minimum": 0, "maximum": 1, "help": "share"},
  "count": {"type": "integer", "default": 4, "minimum": 1, "help": "how many"},
  "mode": {"type": "string", "enum": ["one", "two"], "default": "one", "help": "which"},
  "deep": {"type": "boolean", "default": false, "help": "whether"},
  "names": {"type": "array", "items": {"type": "string"}, "default": [], "help": "list"}}})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::host;
  tn_ctx* ctx = tenon_host(tenon::fuzz::session())->ctx;
  static const auto* options = tenon::fuzz::service<tn_host_options>("tenon.host.options/1");
  std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)check_schema(text, "fuzz");
  tn_options* given = nullptr;
  if (options->create(ctx, &given)) std::abort();
  if (Status parsed = parse_options(given, text); parsed.ok())
    (void)validate_options(ctx, kSchema, given, "fuzz");
  options->release(given);
  return 0;
}
