// SPDX-License-Identifier: Apache-2.0
#pragma once
// --input NAME=FILE.npy: arrays of files as what a model's inputs want.

#include "command.hpp"

namespace tenon::command {

// NAME=FILE of --input. Names of inputs may hold "=" themselves.
std::pair<std::string, std::string> split_input(const cxx::Model& model, const std::string& text);

// The array of a file for the input of this name: as its type where that holds floats or wider
// integers, with a note. A name that no input has stays as it was read.
cxx::Tensor read_input(const cxx::Model& model, const std::string& name, const std::string& file);

// Each of texts is NAME=FILE.npy, or FILE.npz with arrays by the inputs' names; others in it are
// left alone, and an input without one takes the only one that fits its type and shape, with a
// note.
cxx::NamedInputs read_inputs(const cxx::Model& model, const std::vector<std::string>& texts);

}  // namespace tenon::command
