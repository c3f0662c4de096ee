// SPDX-License-Identifier: Apache-2.0
#include "both.hpp"

#include "tenon/sdk/recognized.hpp"

// Reentrant: it has no state but its parts, which the host lets take turns, each by itself.
TENON_COMPONENT_(both,
                 tenon::Recognized<tenon::CallbackRole<tenon::trainer::Both>>,
                 "tenon.callback/1",
                 "trainer.both",
                 "two callbacks as one; nest it for more",
                 R"({
  "required": ["first", "second"],
  "properties": {
    "first": {"type": "component", "role": "tenon.callback/1", "description": "called first"},
    "second": {"type": "component", "role": "tenon.callback/1", "description": "called also where the first ends the run"}}})",
                 TN_COMP_REENTRANT)
