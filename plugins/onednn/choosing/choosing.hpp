// SPDX-License-Identifier: Apache-2.0
#pragma once
// The chooser that the backend's options `choose`, `choose_ms`, `choices` and `deterministic` ask
// for.

#include <memory>

#include "tenon/sdk/component.hpp"

#include "lowering/chooser.hpp"

namespace tenon::onednn {

// nullptr: the rules choose.
Result<std::unique_ptr<Chooser>> new_chooser(tn_ctx* ctx, const Options& options);

}  // namespace tenon::onednn
