// SPDX-License-Identifier: Apache-2.0
#include "services/status_object.hpp"

#include <mutex>
#include <new>

#include "tenon/utf8.hpp"

#include "services/session.hpp"

namespace tenon::host {
namespace {

tn_status* out_of_memory() {
  static tn_status status{{},      nullptr, TN_RESOURCE_EXHAUSTED, "host", "out of memory", {},
                          nullptr, {}};
  return &status;
}

std::string any_text(const tn_any& value) {
  switch (value.tag) {
    case TN_ANY_I64:
      return std::to_string(value.v.i);
    case TN_ANY_F64:
      return short_text(value.v.f);
    case TN_ANY_BOOL:
      return value.v.i ? "true" : "false";
    case TN_ANY_TEXT:
      return {static_cast<const char*>(value.v.p), value.len};
    default:
      return "?";
  }
}

tn_status* make(tn_ctx* ctx, int32_t code, tn_str domain, tn_str message, tn_status* cause) {
  std::string_view who = view(domain);
  if (who.empty() && ctx) who = ctx->id;
  return new_status(ctx, code, who, view(message), cause);
}

void detail(tn_status* status, tn_str key, tn_any value) {
  if (!status || status == out_of_memory()) return;
  status->details.emplace_back(valid_utf8(view(key)), valid_utf8(any_text(value)));
}

int32_t code(const tn_status* status) {
  return status ? status->code : TN_OK;
}
tn_str message(const tn_status* status) {
  return status ? str(status->message) : tn_str{};
}
tn_str domain(const tn_status* status) {
  return status ? str(status->domain) : tn_str{};
}
const tn_status* cause(const tn_status* status) {
  return status ? status->cause : nullptr;
}

tn_status* text(const tn_status* status, const tn_sink* sink) {
  std::string line = status_text(status);
  return sink->write(sink->ctx, line.data(), line.size());
}

}  // namespace

tn_status* new_status(tn_ctx* owner,
                      int32_t code,
                      std::string_view domain,
                      std::string_view message,
                      tn_status* cause) noexcept {
  try {
    auto* status = new tn_status{{},
                                 owner,
                                 code == TN_OK ? TN_UNKNOWN : code,
                                 valid_utf8(domain),
                                 valid_utf8(message),
                                 {},
                                 cause,
                                 {}};
    if (owner) owner->add(Held::kStatus, 1);
    return status;
  } catch (const std::bad_alloc&) {
    release_status(cause);
    return out_of_memory();
  }
}

void release_status(tn_status* status) noexcept {
  while (status && status != out_of_memory()) {
    tn_status* cause = status->cause;
    if (status->owner) status->owner->add(Held::kStatus, -1);
    delete status;
    status = cause;
  }
}

tn_status* blame(tn_status* answer,
                 std::string_view plugin,
                 std::string_view function,
                 std::string_view of) noexcept {
  if (!answer || answer->code != TN_INTERNAL) return answer;
  for (const tn_status* at = answer; at; at = at->cause)
    if (at->is_blamed) return answer;
  try {
    answer->message =
        cat("plugin ", plugin, " failed in ", function, " of ", of, ": ", answer->message);
    answer->is_blamed = true;
  } catch (const std::bad_alloc&) {  // it stays as it was
  }
  return answer;
}

std::string status_text(const tn_status* status) {
  std::string line;
  for (; status; status = status->cause) {
    if (!line.empty()) line += ": ";
    if (!status->domain.empty() && status->domain != "host") line += status->domain + ": ";
    line += status->message;
    for (const auto& [key, value] : status->details)
      line += " (" + key + " " + value + ")";
  }
  return line;
}

tn_str whole_text(const tn_status* status) noexcept {
  static std::mutex lock;
  try {
    std::string now = status_text(status);
    std::lock_guard hold(lock);
    for (const std::string& known : status->texts)
      if (known == now) return str(known);
    return str(status->texts.emplace_back(std::move(now)));
  } catch (const std::bad_alloc&) {
    return str(status->message);
  }
}

const tn_host_status* status_service() {
  static const tn_host_status table{sizeof table, 1,      make,  detail, code,
                                    message,      domain, cause, text,   release_status};
  return &table;
}

}  // namespace tenon::host
