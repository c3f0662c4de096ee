// SPDX-License-Identifier: Apache-2.0
#include "selection_note.hpp"

#include <nlohmann/json.hpp>

namespace tenon::quantizer {
namespace {

constexpr std::string_view kSelectedNote = "quantizer.selected";

}  // namespace

Status keep_selected(EditView edit, const Selected& selected) {
  const nlohmann::json note{{"only", selected.only}, {"skip", selected.skip}};
  return edit.set_note(0, kSelectedNote, any_text(note.dump()));
}

Selected kept_selected(Graph graph) {
  tn_any note{};
  Status ignored(services.graph->note(graph.raw, 0, str(kSelectedNote), &note));
  const nlohmann::json kept = nlohmann::json::parse(text_of(note), nullptr, false);
  Selected out;
  if (!kept.is_object()) return out;
  out.only = kept.value("only", out.only);
  out.skip = kept.value("skip", out.skip);
  return out;
}

Status forget_selected(EditView edit) {
  return edit.set_note(0, kSelectedNote, {});
}

}  // namespace tenon::quantizer
