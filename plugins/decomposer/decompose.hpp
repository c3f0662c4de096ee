// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pass of this plugin, whatever the method: judge each layer, replace those that pass, report.

#include "tenon/sdk/run.hpp"

#include "choice.hpp"

namespace tenon::decomposer {

Status decompose(tn_ctx* ctx,
                 tn_graph* graph,
                 const Method& method,
                 const Choice& choice,
                 const Cancel& cancel,
                 Sink& sink);

}  // namespace tenon::decomposer
