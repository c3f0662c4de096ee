// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::command {

// Threads of libgomp that wait for others turn in a loop for 4 ms and more before they sleep. On a
// core that other programs want too, a thread which has used up its share then waits for all of
// theirs, at every step of a plan: beside one busy process MobileNetV2 took 30 times as long for
// one run in ten. With waits of some 50 us it takes 3 times as long, and no longer on a machine of
// its own. libgomp reads this from the environment when it is loaded, so the command starts itself
// anew; GOMP_SPINCOUNT and OMP_WAIT_POLICY of the user stand.
void start_with_brief_waits(char** argv);

}  // namespace tenon::command
