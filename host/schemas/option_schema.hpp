// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options of a component against its schema: a subset of JSON Schema that host/README.md lists.

#include <string_view>

#include "values/options.hpp"

namespace tenon::host {

// What the component gets: every given option of the right type and in range, and defaults for
// the rest. given may be NULL; an empty schema takes no options. who: the component's id, for
// messages. Without a schema error there is one line such as
// "quantizer.static: option sparsity: expected a number in [0, 1], got 1.5".
Result<Ref<tn_options>> validate_options(tn_ctx* owner,
                                         std::string_view schema,
                                         const tn_options* given,
                                         std::string_view who);

// Whether the schema is one that validate_options understands, its defaults included.
Status check_schema(std::string_view schema, std::string_view who);

}  // namespace tenon::host
