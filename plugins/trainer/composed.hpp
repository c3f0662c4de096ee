// SPDX-License-Identifier: Apache-2.0
#pragma once
// A component that is given a live one, which JSON cannot say, beside its other options.

#include "tenon/sdk/component.hpp"

namespace tenon::trainer {

// options: a JSON object.
inline Result<Component> composed(tn_ctx* ctx,
                                  std::string_view role,
                                  std::string_view id,
                                  std::string_view key,
                                  const Component& live,
                                  std::string_view options) {
  tn_options* given = nullptr;
  TN_CHECK(Status(services.options->create(ctx, &given)));
  tn_any value{TN_ANY_COMPONENT, 0, 1, {.p = live.raw()}};
  Status made(services.options->parse(given, str(options)));
  if (made.ok()) made = Status(services.options->set(given, str(key), value));
  tn_component_ref* raw = nullptr;
  if (made.ok()) made = Status(services.component->create(ctx, str(role), str(id), given, &raw));
  services.options->release(given);
  if (!made.ok()) return made;
  Result<Component> out = Component::share(raw, role);
  services.component->release(raw);
  return out;
}

}  // namespace tenon::trainer
