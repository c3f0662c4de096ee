// SPDX-License-Identifier: Apache-2.0
#pragma once
// What convert may store of a model to train, as a note of its graph: what qat left in float by its
// options stays so. A graph without the note (from a file) says nothing, and all is stored.

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/pattern.hpp"

namespace tenon::quantizer {

Status keep_selected(EditView edit, const Selected& selected);
Selected kept_selected(Graph graph);
Status forget_selected(EditView edit);

}  // namespace tenon::quantizer
