// SPDX-License-Identifier: Apache-2.0
#include "values/options.hpp"

#include "services/boundary.hpp"
#include "services/session.hpp"
#include "values/json_any.hpp"

using namespace tenon::host;

void tn_options::set(std::string_view key, Any value) {
  for (auto& [known, held] : entries) {
    if (known != key) continue;
    held = std::move(value);
    return;
  }
  entries.emplace_back(key, std::move(value));
}

const Any* tn_options::find(std::string_view key) const {
  for (const auto& [known, held] : entries)
    if (known == key) return &held;
  return nullptr;
}

namespace tenon::host {

Ref<tn_options> new_options(tn_ctx* owner) {
  return Ref<tn_options>::take(new tn_options(owner));
}

Status parse_options(tn_options* options, std::string_view json) {
  TN_TRY(parsed, parse_object(json, "options"));
  for (const auto& [key, value] : parsed.items())
    options->set(key, any_of_json(value));
  return {};
}

namespace {

tn_status* create(tn_ctx* ctx, tn_options** out) {
  return guarded_out(out, [&]() -> Result<Ref<tn_options>> { return new_options(ctx); });
}

tn_status* set(tn_options* options, tn_str key, tn_any value) {
  return guarded([&]() -> Status {
    if (key.len == 0) return invalid("options: expected a key");
    Result<Any> copied = Any::copy_of(value);
    if (!copied.ok())
      return Status(TN_INVALID_ARGUMENT, cat("option ", view(key)), "host", copied.status());
    options->set(view(key), std::move(*copied));
    return {};
  });
}

tn_status* parse(tn_options* options, tn_str json) {
  return guarded([&] { return parse_options(options, view(json)); });
}

tn_status* get(const tn_options* options, tn_str key, tn_any* out) {
  const Any* value = options->find(view(key));
  *out = value ? value->get() : tn_any{};
  return nullptr;
}

uint64_t count(const tn_options* options) {
  return options->entries.size();
}
tn_str key_at(const tn_options* options, uint64_t i) {
  return i < count(options) ? str(options->entries[i].first) : tn_str{};
}
}  // namespace

const tn_host_options* options_service() {
  static const tn_host_options table{sizeof table, 1,     create, set,           parse,
                                     get,          count, key_at, retain_object, release_object};
  return &table;
}

}  // namespace tenon::host
