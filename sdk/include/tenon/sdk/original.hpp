// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model that a smaller one was made of, as a note of the smaller one's graph: what it learns
// from where no teacher is named. It shares the weights that are still the same, and no file has
// it.

#include "tenon/sdk/edit.hpp"

namespace tenon {

inline constexpr std::string_view kOriginalNote = "original";

// Null where the graph has none.
inline Graph original_of(Graph graph) {
  tn_any note{};
  Status ignored(services.graph->note(graph.raw, 0, str(kOriginalNote), &note));
  return {note.tag == TN_ANY_GRAPH ? static_cast<const tn_graph*>(note.v.p) : nullptr};
}

// Which entries of the original's constants are left where some were taken out, as JSON:
// {"name": {"axis": [entries]}}. Empty where none were.
inline constexpr std::string_view kKeptNote = "kept";
inline std::string kept_note(Graph graph) {
  tn_any note{};
  Status ignored(services.graph->note(graph.raw, 0, str(kKeptNote), &note));
  return std::string(text_of(note));
}

// For a pass: `graph` as it was when the edit began. The original of an original stays.
inline Status keep_original(EditView edit, const tn_graph* graph) {
  if (original_of({graph}).raw) return {};
  return edit.set_note(0, kOriginalNote, {TN_ANY_GRAPH, 0, 1, {.p = graph}});
}

}  // namespace tenon
