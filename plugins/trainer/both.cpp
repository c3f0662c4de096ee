// SPDX-License-Identifier: Apache-2.0
#include "both.hpp"

TENON_CALLBACK(both,
               tenon::trainer::Both,
               "trainer.both",
               "two callbacks as one; nest it for more",
               R"({
  "required": ["first", "second"],
  "properties": {
    "first": {"type": "component", "role": "tenon.callback/1", "description": "told first"},
    "second": {"type": "component", "role": "tenon.callback/1", "description": "told also where the first ends the run"}}})")
