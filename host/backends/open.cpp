// SPDX-License-Identifier: Apache-2.0
// Which backends a plan has, and how they are opened.
#include <algorithm>
#include <functional>
#include <map>

#include "backends/backend_use.hpp"
#include "schemas/kept.hpp"
#include "schemas/option_schema.hpp"
#include "services/boundary.hpp"

namespace tenon::host {
namespace {

using nlohmann::json;

// The options of the plan that this backend's schema knows.
Result<Ref<tn_options>> options_for(tn_ctx* ctx,
                                    std::string_view id,
                                    std::string_view schema_text,
                                    const json& rest,
                                    json* unknown) {
  const Json& properties = schema_properties(schema_text);
  json known = json::object();
  for (auto& [key, value] : rest.items()) {
    if (!properties.contains(key)) continue;
    known[key] = value;
    unknown->erase(key);
  }
  Ref<tn_options> given = new_options(ctx);
  TN_CHECK(parse_options(given.get(), known.dump()));
  return validate_options(ctx, schema_text, given.get(), id);
}

// The first device that can be used; the reasons of those that cannot, when there is none.
Result<json> choose_device(const std::string& id, const json& devices) {
  std::string why;
  for (const json& device : devices) {
    if (device.is_object() && !device.contains("why")) return device;
    if (device.is_object()) why += cat(why.empty() ? ": " : "; ", device.value("why", ""));
  }
  return Status(TN_UNAVAILABLE,
                cat("backend ", id, ": no device", why, "; see `tenon plugin doctor`"));
}

Status open_backend(
    tn_ctx* ctx, const std::string& id, const json& rest, json* unknown, BackendUse* use) {
  use->id = id;
  TN_TRY(found, ctx->session->registry->find("tenon.backend/1", id));
  TN_TRY(options, options_for(ctx, id, view(found.component->options_schema), rest, unknown));
  use->options = std::move(options);
  TN_TRY(component, create_component(ctx, "tenon.backend/1", id, use->options.get()));
  use->component = std::move(component);
  TN_TRY(interface, use->component->interface("tenon.backend/1"));
  use->self = interface.self;
  use->table = static_cast<const tn_backend*>(interface.table);
  std::string text;
  tn_sink sink = sink_into(&text);
  TN_CHECK(use->called("devices", use->table->devices(use->self, &sink)));
  json devices = json::parse(text, nullptr, false);
  if (!devices.is_array())
    return {TN_INTERNAL, cat("backend ", id, ": devices() is no JSON array")};
  TN_TRY(chosen, choose_device(id, devices));
  use->device = chosen.value("id", 0);
  use->dl = {chosen.value("type", kDLCPU), use->device};
  use->about = chosen;
  use->own_memory = use->dl.device_type != kDLCPU;
  return {};
}

// The backends of one plan, as they are added; the options that none of them has yet.
struct Opening {
  tn_ctx* ctx;
  const json& rest;
  json unknown;
  BackendUses uses;

  Status add(const std::string& id) {
    auto use = std::make_unique<BackendUse>();
    TN_CHECK(open_backend(ctx, id, rest, &unknown, use.get()));
    use->last_resort = id == "reference" && !uses.empty();
    uses.push_back(std::move(use));
    return {};
  }
};

std::vector<const ComponentText*> described_backends(const Opening& opening) {
  return opening.ctx->session->registry->described("tenon.backend/1");
}

// Backends whose schema names an option of the plan in "joined_by" stand before all others.
Status add_joined(Opening& opening) {
  for (const ComponentText* one : described_backends(opening)) {
    const Json& schema = schema_json(one->schema);
    std::string option = schema.is_object() ? schema.value("joined_by", "") : "";
    if (option.empty() || !opening.rest.contains(option)) continue;
    const std::string& id = one->id;
    if (std::ranges::any_of(opening.uses, [&](const auto& use) { return use->id == id; })) continue;
    TN_CHECK(opening.add(id));
    opening.uses.back()->is_joined = true;
    std::ranges::rotate(opening.uses, opening.uses.end() - 1);
  }
  return {};
}

// Where no backend is named: the preferred one ("preference" in its schema, above
// 0) of those that find a device here. Nothing else decides it.
Status add_default(Opening& opening) {
  std::multimap<int64_t, std::string, std::greater<>> wanted;
  for (const ComponentText* one : described_backends(opening)) {
    const Json& schema = schema_json(one->schema);
    int64_t preference = schema.is_object() ? schema.value("preference", int64_t{0}) : 0;
    if (preference > 0) wanted.emplace(preference, one->id);
  }
  for (const auto& [preference, id] : wanted) {
    json before = opening.unknown;
    Status added = opening.add(id);
    if (added.code() != TN_NOT_FOUND && added.code() != TN_UNAVAILABLE) return added;
    opening.unknown = std::move(before);
  }
  return {};
}

Status unknown_option(const Opening& opening, const std::string& name) {
  const std::string& backend = preferred_of(opening.uses).id;
  TN_TRY(found, opening.ctx->session->registry->find("tenon.backend/1", backend));
  const Json& known = schema_properties(view(found.component->options_schema));
  std::vector<std::string> names;
  for (const auto& option : known.items())
    names.push_back(option.key());
  return invalid(cat("plan options: no backend of this plan (", backend, ") has an option ", name,
                     did_you_mean(name, names)));
}

}  // namespace

Result<PlanOptions> read_options(std::string_view text) {
  PlanOptions out;
  TN_TRY(ordered, parse_object(text, "plan options"));
  const json given = ordered;
  for (auto& [key, value] : given.items()) {
    if (key == "backend") {
      json list = value.is_array() ? value : json::array({value});
      for (const json& id : list) {
        if (!id.is_string()) return invalid("option backend: expected an id or a list of ids");
        out.backends.push_back(id);
      }
    } else if (key == "plan_cache") {
      if (!value.is_number_integer() || value.get<int64_t>() < 1) {
        return invalid("option plan_cache: expected an integer of at least 1");
      }
      out.cache_limit = value;
    } else if (key == "deterministic" && !value.is_boolean()) {
      return invalid("option deterministic: expected true or false");
    } else {
      out.rest[key] = value;
    }
  }
  return out;
}

Result<BackendUses> open_backends(tn_ctx* ctx, const PlanOptions& options) {
  Opening opening{ctx, options.rest, options.rest, {}};
  opening.unknown.erase("deterministic");  // a backend without this option is so anyway
  for (const std::string& id : options.backends)
    if (Status added = opening.add(id); !added.ok())
      return added.code() == TN_NOT_FOUND ? std::move(added).in("option backend")
                                          : std::move(added);
  if (options.backends.empty()) TN_CHECK(add_default(opening));
  if (std::ranges::count(options.backends, "reference") == 0) TN_CHECK(opening.add("reference"));
  TN_CHECK(add_joined(opening));
  // A backend without threads of its own runs the same with any number.
  constexpr auto kThreads = R"({"properties": {"threads": {"type": "integer", "minimum": 0}}})";
  TN_CHECK(options_for(ctx, "plan options", kThreads, options.rest, &opening.unknown).status());
  if (!opening.unknown.empty()) return unknown_option(opening, opening.unknown.begin().key());
  return std::move(opening.uses);
}

}  // namespace tenon::host
