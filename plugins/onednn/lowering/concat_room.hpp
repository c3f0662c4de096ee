// SPDX-License-Identifier: Apache-2.0
#pragma once
// Concats that each begin with all that the one before holds, as the layers of a dense block read
// all layers before them (Huang et al. 2017): they share the memory of the longest, and each adds
// only what is new. Both forms are known: inputs listed anew each time, and the last result as the
// first input. A result is then a view with gaps, so whoever reads one must take it as it lies.

#include "lowering.hpp"

namespace tenon::onednn {

// Where a Concat's inputs from `first` on go: from the index `begin` of its axis on.
struct RoomPart {
  View whole;  // all that the room will hold; no buffer: there is no room
  size_t first = 0;
  int64_t begin = 0;

  explicit operator bool() const { return whole.buffer != kNone; }
};

// A room that holds the first inputs already, or a new one where a later Concat holds this one.
// `result`: how this one's result would be stored by itself, its memory aside.
RoomPart find_concat_room(Lowering& lowering, int node, const View& result);
// Whether the value lies in a room, with gaps perhaps.
bool in_concat_room(const Lowering& lowering, int value);

}  // namespace tenon::onednn
