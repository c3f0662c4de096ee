// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each thread is doing, by the spans that plugins and the host begin (tenon.host.trace/1),
// whether or not a trace is recorded: the report of a crash says where it happened.

#include <string_view>

namespace tenon::host {

void enter(std::string_view category, std::string_view name);
void leave();

// Of the calling thread, else of the one that called follow_this_thread(): a thread of a pool does
// not know whom it works for. "node conv_1", or "". A signal handler may ask.
const char* whereabouts();
void follow_this_thread();

}  // namespace tenon::host
