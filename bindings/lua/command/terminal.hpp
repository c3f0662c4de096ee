// SPDX-License-Identifier: Apache-2.0
#pragma once
// Standard error: log lines, and progress bars when it is a terminal; and Ctrl-C.

#include "tenon/cxx/session.hpp"

namespace tenon::command {

// Shows the session's log and progress, and lets Ctrl-C stop its work; a second Ctrl-C ends the
// process.
void watch_terminal(const cxx::Session& session, bool verbose);
// A message without the role and function of the ABI in which a component failed, which are for who
// writes plugins: -v shows them. What was asked and why it failed is all there.
std::string for_users(std::string text);
// Whether Ctrl-C has asked the work to stop.
bool was_interrupted();
// Before printing: takes a progress bar off the screen.
void clear_progress();
// Before the session ends.
void leave_terminal();

}  // namespace tenon::command
