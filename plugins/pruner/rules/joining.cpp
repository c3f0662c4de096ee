// SPDX-License-Identifier: Apache-2.0
// concat, split and slice: offsets along one axis, entry by entry along the others.
#include <algorithm>

#include "../rules.hpp"

namespace tenon::pruner {
namespace {

// All axes but one are the same axis of both.
void couple_others(Node node, Value in, Value out, size_t axis, Couplings& couplings) {
  for (size_t other = 0; other < couplings.rank(out); ++other)
    if (other != axis) couplings.join(couplings.slot(in, other), couplings.slot(out, other), node);
}

void couple_part(int whole, int64_t offset, int part, Couplings& couplings) {
  for (int64_t i = 0; i < couplings.size(part); ++i)
    couplings.join(whole, offset + i, part, i);
}

Refusal couple_concat(Node node, Couplings& couplings) {
  Value out = node.output();
  std::optional<size_t> axis = axis_in(Stated(node).integer("axis", 0), couplings.rank(out));
  if (!axis) return "its axis is out of range";
  int whole = couplings.slot(out, *axis);
  int64_t offset = 0;
  bool known = whole != kNoSlot;
  for (Value in : node.inputs())
    known = known && couplings.slot(in, *axis) != kNoSlot;
  uint64_t index = 0;
  for (Value in : node.inputs()) {
    couple_others(node, in, out, *axis, couplings);
    int part = couplings.slot(in, *axis);
    if (known) {
      couple_part(whole, offset, part, couplings);
      couplings.mark(part, Kind::kVector, node, index);
      offset += couplings.size(part);
    } else {
      couplings.protect(part, cat(node_text(node), " joins parts of sizes that are not known"));
    }
    ++index;
  }
  if (!known)
    couplings.protect(whole, cat(node_text(node), " joins parts of sizes that are not known"));
  return std::nullopt;
}

Refusal couple_split(Node node, Couplings& couplings) {
  Value in = node.input(0);
  std::optional<size_t> axis = axis_in(Stated(node).integer("axis", 0), couplings.rank(in));
  if (!axis) return "its axis is out of range";
  int whole = couplings.slot(in, *axis);
  if (whole == kNoSlot) return "the size of its axis is not known";
  int64_t offset = 0;
  for (Value out : node.outputs()) {
    if (!out) return "a part is not used";
    couple_others(node, in, out, *axis, couplings);
    int part = couplings.slot(out, *axis);
    if (part == kNoSlot || offset + couplings.size(part) > couplings.size(whole))
      return "the size of a part is not known";
    couple_part(whole, offset, part, couplings);
    offset += couplings.size(part);
  }
  return std::nullopt;
}

Status rewrite_split(EditView edit, Node node, const Kept& kept) {
  Stated stated(node);
  std::optional<size_t> axis = axis_in(stated.integer("axis", 0), node.input(0).type().rank());
  if (!axis || !kept(node.input(0), *axis)) return {};
  std::vector<int64_t> sizes;
  for (Value out : node.outputs())
    sizes.push_back(size_after(out, *axis, kept));
  TN_CHECK(stated.drop(edit, "count"));
  return stated.set(edit, "sizes", sizes);
}

struct Cut {
  size_t axis = 0;
  int64_t start = 0, end = 0, step = 1;
};

// What constant numbers cut out; nothing when that is not known.
std::optional<std::vector<Cut>> cuts_of(Node node) {
  Stated stated(node);
  auto starts = stated.ints("starts"), ends = stated.ints("ends");
  if (!starts || !ends || starts->size() != ends->size()) return std::nullopt;
  auto axes = stated.ints("axes"), steps = stated.ints("steps");
  if ((stated.has("axes") && !axes) || (stated.has("steps") && !steps)) return std::nullopt;
  Type type = node.input(0).type();
  std::vector<Cut> out;
  for (size_t i = 0; i < starts->size(); ++i) {
    auto axis = axis_in(axes ? axes->at(i) : static_cast<int64_t>(i), type.rank());
    if (!axis) return std::nullopt;
    int64_t size = type.dims[*axis], step = steps ? steps->at(i) : 1;
    auto counted = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    };
    Cut cut{*axis, starts->at(i), ends->at(i), step};
    if (size >= 0 && step == 1) {
      cut.start = counted(cut.start);
      cut.end = std::max(counted(cut.end), cut.start);
    }
    out.push_back(cut);
  }
  return out;
}

Refusal couple_slice(Node node, Couplings& couplings) {
  std::optional<std::vector<Cut>> cuts = cuts_of(node);
  if (!cuts) return "where it cuts is not known";
  Value in = node.input(0), out = node.output();
  std::vector<bool> is_cut(couplings.rank(in));
  for (const Cut& cut : *cuts) {
    is_cut[cut.axis] = true;
    int whole = couplings.slot(in, cut.axis), part = couplings.slot(out, cut.axis);
    bool plain = cut.step == 1 && whole != kNoSlot && part != kNoSlot &&
                 couplings.size(part) == cut.end - cut.start;
    if (plain) {
      couple_part(whole, cut.start, part, couplings);
      continue;
    }
    for (int slot : {whole, part})
      couplings.protect(slot, cat(node_text(node), " takes steps through it"));
  }
  for (size_t axis = 0; axis < couplings.rank(in); ++axis)
    if (!is_cut[axis]) couplings.join(couplings.slot(in, axis), couplings.slot(out, axis), node);
  return std::nullopt;
}

Status rewrite_slice(EditView edit, Node node, const Kept& kept) {
  std::optional<std::vector<Cut>> cuts = cuts_of(node);
  bool touched = false;
  for (size_t i = 0; cuts && i < cuts->size(); ++i) {
    Cut& cut = (*cuts)[i];
    const std::vector<int64_t>* left = kept(node.input(0), cut.axis);
    if (!left) continue;
    touched = true;
    auto before = [&](int64_t at) {
      return std::lower_bound(left->begin(), left->end(), at) - left->begin();
    };
    cut.start = before(cut.start);
    cut.end = before(cut.end);
  }
  if (!touched) return {};
  std::vector<int64_t> starts, ends;
  for (const Cut& cut : *cuts) {
    starts.push_back(cut.start);
    ends.push_back(cut.end);
  }
  Stated stated(node);
  // Axes and steps must have the type of starts and ends.
  for (std::string_view key : {"axes", "steps"}) {
    Value value = stated.input(key);
    if (value && value.dtype() != TN_I64) TN_CHECK(stated.set(edit, key, *stated.ints(key)));
  }
  TN_CHECK(stated.set(edit, "starts", starts));
  return stated.set(edit, "ends", ends);
}

constexpr Rule kRules[] = {{TN_COUPLING_CONCAT, couple_concat, nullptr},
                           {TN_COUPLING_SPLIT, couple_split, rewrite_split},
                           {TN_COUPLING_SLICE, couple_slice, rewrite_slice}};

}  // namespace

std::span<const Rule> joining_rules() {
  return kRules;
}

}  // namespace tenon::pruner
