// SPDX-License-Identifier: Apache-2.0
// Where values lie: buffers, and whether they hold rows or channels last.
#include <algorithm>

#include "lowering.hpp"

namespace tenon::cuda {

void Lowering::place_boundary() {
  auto boundary = [&](int value, Storage storage, int index) {
    layouts_[static_cast<size_t>(value)].plain = static_cast<int>(plan_.buffers.size());
    plan_.buffers.push_back(
        {this->value(value).name, this->value(value).bytes(), storage, index, 0});
  };
  auto signature = [&](int value) {
    return Signature{this->value(value).name, this->value(value).dtype, this->value(value).dims};
  };
  for (int input : graph_.inputs) {
    boundary(input, Storage::kInput, static_cast<int>(plan_.inputs.size()));
    plan_.inputs.push_back(signature(input));
  }
  for (const auto& state : graph_.states) {
    boundary(state.first, Storage::kState, static_cast<int>(plan_.states.size()));
    plan_.states.push_back(signature(state.first));
  }
  for (int output : graph_.outputs) {
    // A value made here lies in the first output that it is; inputs and the like are copied.
    if (this->value(output).producer != kNone &&
        layouts_[static_cast<size_t>(output)].plain == kNone) {
      boundary(output, Storage::kOutput, static_cast<int>(plan_.outputs.size()));
    }
    plan_.outputs.push_back(signature(output));
  }
}

// One without a place gets one in the arena, or as a constant.
int Lowering::plain_buffer(int index) {
  int& made = layouts_[static_cast<size_t>(index)].plain;
  if (made != kNone) return made;
  const ValueInfo& info = value(index);
  made = info.constant ? constant(info, false) : scratch(info.name, info.bytes());
  return made;
}

int Lowering::constant(const ValueInfo& info, bool channels_last) {
  Buffer buffer{info.name, info.bytes(), Storage::kConstant, 0, 0};
  buffer.index = static_cast<int>(plan_.constants.size());
  plan_.constants.push_back({info.constant, channels_last});
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<int>(plan_.buffers.size()) - 1;
}

int Lowering::buffer(int index) {
  int plain = plain_buffer(index);
  Layouts& at = layouts_[static_cast<size_t>(index)];
  if (lies_channels_last(index)) {
    at.is_plain_made = true;
    add_layout_copy(index, at.last, plain, false);
  }
  return plain;
}

bool Lowering::has_two_layouts(const Dims& dims) {
  if (dims.size() < 3 || dims[1] == 1) return false;
  return element_count(std::span(dims).subspan(2)) > 1;
}

bool Lowering::lies_channels_last(int index) const {
  const Layouts& at = layouts_[static_cast<size_t>(index)];
  return at.last != kNone && !at.is_plain_made;
}

int Lowering::channels_last(int index) {
  const ValueInfo& info = value(index);
  if (!has_two_layouts(info.dims)) return buffer(index);
  Layouts& at = layouts_[static_cast<size_t>(index)];
  if (at.last != kNone) return at.last;
  at.is_plain_made = true;
  if (info.constant) return at.last = constant(info, true);
  int plain = plain_buffer(index);
  at.last = scratch(cat(info.name, " channels last"), info.bytes());
  add_layout_copy(index, plain, at.last, true);
  return at.last;
}

int Lowering::new_channels_last(int index) {
  const ValueInfo& info = value(index);
  if (!has_two_layouts(info.dims)) return buffer(index);
  Layouts& at = layouts_[static_cast<size_t>(index)];
  at.last = scratch(cat(info.name, " channels last"), info.bytes());
  return at.last;
}

Dims channels_last_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  int64_t stride = dims[1];
  for (size_t axis = dims.size(); axis-- > 2; stride *= dims[axis])
    strides[axis] = stride;
  strides[0] = stride;
  return strides;
}

std::vector<unsigned char> channels_last_bytes(const Tensor& tensor) {
  DLTensor view = tensor.dl();
  uint64_t unit = bytes_of(dtype_of(view), 1);
  const auto* from = data_of<const unsigned char>(view);
  int64_t images = view.shape[0], channels = view.shape[1];
  int64_t positions = element_count(view) / std::max<int64_t>(images * channels, 1);
  std::vector<unsigned char> out;
  out.reserve(bytes_of(dtype_of(view), element_count(view)));
  for (int64_t i = 0; i < images * positions; ++i) {
    const unsigned char* at =
        from + static_cast<uint64_t>(i / positions * channels * positions + i % positions) * unit;
    for (int64_t c = 0; c < channels; ++c, at += static_cast<uint64_t>(positions) * unit)
      out.insert(out.end(), at, at + unit);
  }
  return out;
}

Lowering::Placed Lowering::placed(int index) {
  const Dims& dims = value(index).dims;
  if (lies_channels_last(index)) {
    return {layouts_[static_cast<size_t>(index)].last, channels_last_strides(dims)};
  }
  return {buffer(index), backend::row_major_strides(dims)};
}

void Lowering::add_layout_copy(int index, int from, int to, bool to_channels_last) {
  const ValueInfo& info = value(index);
  NodeInfo node;
  node.op = "layout";
  node.name = info.name;
  Dims dims = info.dims, rows = backend::row_major_strides(dims),
       last = channels_last_strides(dims);
  // Neighbours in the target are written by neighbouring threads.
  if (to_channels_last) {
    for (Dims* list : {&dims, &rows, &last})
      std::rotate(list->begin() + 1, list->begin() + 2, list->end());
  }
  Strided plain{to_channels_last ? from : to, rows}, other{to_channels_last ? to : from, last};
  if (to_channels_last) {
    add_strided_copy(node, info.dtype, dims, plain, other);
  } else {
    add_strided_copy(node, info.dtype, dims, other, plain);
  }
}

Step Lowering::move_step(
    const std::string& name, const std::string& op, int from, int to, uint64_t bytes) {
  double moved = 2 * static_cast<double>(bytes);
  return {name, op, "memcpy", Move{from, to, bytes}, {from}, {to}, 0, moved};
}

void Lowering::add_move(
    const std::string& name, const std::string& op, int from, int to, uint64_t bytes) {
  add(move_step(name, op, from, to, bytes));
}

void Lowering::alias(int index, int of) {
  Layouts& to = layouts_[static_cast<size_t>(index)];
  if (lies_channels_last(of) && value(index).dims == value(of).dims) {
    to.last = layouts_[static_cast<size_t>(of)].last;
    return;
  }
  int source = buffer(of);
  int& target = to.plain;
  if (target == kNone) {
    target = source;
    return;
  }
  // It has a place of its own, an output's: there is no way round a copy.
  add_move(value(index).name, "copy", source, target, value(index).bytes());
}

bool Lowering::is_spare(int index) const {
  const ValueInfo& info = value(index);
  const Layouts& at = layouts_[static_cast<size_t>(index)];
  if (info.users.size() != 1 || info.n_outputs > 0 || info.producer == kNone) return false;
  bool is_own = graph_.nodes[static_cast<size_t>(info.producer)].op == "Expand";
  return is_own && at.plain != kNone &&
         plan_.buffers[static_cast<size_t>(at.plain)].storage == Storage::kArena;
}

int Lowering::scratch(std::string name, uint64_t bytes) {
  plan_.buffers.push_back({std::move(name), bytes, Storage::kArena, 0, 0});
  return static_cast<int>(plan_.buffers.size()) - 1;
}

// Outputs that are inputs, constants or another output.
void Lowering::finish_outputs() {
  int position = 0;
  for (int output : graph_.outputs) {
    int source = buffer(output);
    const Buffer& at = plan_.buffers[static_cast<size_t>(source)];
    if (at.storage != Storage::kOutput || at.index != position) {
      uint64_t bytes = at.bytes;
      int target = static_cast<int>(plan_.buffers.size());
      plan_.buffers.push_back({at.name, bytes, Storage::kOutput, position, 0});
      add_move(value(output).name, "copy", source, target, bytes);
    }
    ++position;
  }
}

// New values that cannot be written over the old ones replace them when all have been computed. One
// that lies in another state is set aside first.
void Lowering::keep_states() {
  for (const auto& [before, after] : graph_.states) {
    int from = buffer(after), to = buffer(before);
    if (updates_in_place(from, to)) rename_buffer(from, to);
  }
  std::vector<Step> last;
  for (const auto& [before, after] : graph_.states) {
    int from = buffer(after), to = buffer(before);
    uint64_t bytes = value(before).bytes();
    const std::string& name = value(before).name;
    if (from == to) continue;
    if (plan_.buffers[static_cast<size_t>(from)].storage == Storage::kState) {
      int aside = scratch(cat(name, " set aside"), bytes);
      add_move(name, "state", from, aside, bytes);
      from = aside;
    }
    last.push_back(move_step(name, "state", from, to, bytes));
  }
  for (Step& step : last)
    add(std::move(step));
}

}  // namespace tenon::cuda
