// SPDX-License-Identifier: Apache-2.0
// Views keep the bytes of input 0. Axes are matched in
// segments of equal product. Where one axis is split, or several become one, channels run along one
// of the factors and the others stay: heads of an attention, channels of a flattened image. It is
// the outermost unless that one has to stay (pivots.hpp).
#include <algorithm>

#include "../rules.hpp"
#include "sizes.hpp"

namespace tenon::pruner {
namespace {

struct Range {
  size_t begin = 0, end = 0;
};
struct Segment {
  Range in, out;
};

class Matching {
 public:
  Matching(const Type& in, const Type& out)
      : in_(in), out_(out), rest_{{0, in.rank()}, {0, out.rank()}} {
    while (step(true)) {
    }
    while (step(false)) {
    }
    // What is left on one side alone are ones.
    if (is_ones(in_, rest_.in) && is_ones(out_, rest_.out)) rest_ = {};
  }
  const std::vector<Segment>& segments() const { return segments_; }
  Segment rest() const { return rest_; }  // not matched

 private:
  static bool is_ones(const Type& type, Range range) {
    return std::all_of(type.dims.begin() + static_cast<std::ptrdiff_t>(range.begin),
                       type.dims.begin() + static_cast<std::ptrdiff_t>(range.end),
                       [](int64_t dim) { return dim == 1; });
  }
  bool same(size_t i, size_t j) const {
    if (in_.dims[i] >= 0 || out_.dims[j] >= 0) return in_.dims[i] == out_.dims[j];
    return !in_.symbols.empty() && !out_.symbols.empty() && !in_.symbols[i].empty() &&
           in_.symbols[i] == out_.symbols[j];
  }
  // One segment from the left or from the right end of what is left; false: none.
  bool step(bool left) {
    Range &a = rest_.in, &b = rest_.out;
    if (a.begin == a.end || b.begin == b.end) return false;
    size_t n_in = 1, n_out = 1;
    auto at = [left](Range range, size_t n) { return left ? range.begin + n - 1 : range.end - n; };
    if (!same(at(a, 1), at(b, 1))) {
      int64_t x = in_.dims[at(a, 1)], y = out_.dims[at(b, 1)];
      while (x >= 0 && y >= 0 && x != y) {
        bool more_in = x < y;
        size_t& n = more_in ? n_in : n_out;
        if (n == (more_in ? a.end - a.begin : b.end - b.begin)) return false;
        ++n;
        int64_t dim = more_in ? in_.dims[at(a, n)] : out_.dims[at(b, n)];
        if (dim < 0) return false;
        (more_in ? x : y) *= dim;
      }
      if (x != y || x < 0) return false;
    }
    segments_.push_back({take(a, n_in, left), take(b, n_out, left)});
    return true;
  }
  static Range take(Range& from, size_t n, bool left) {
    Range out = left ? Range{from.begin, from.begin + n} : Range{from.end - n, from.end};
    (left ? from.begin : from.end) = left ? out.end : out.begin;
    return out;
  }

  const Type &in_, &out_;
  Segment rest_;
  std::vector<Segment> segments_;
};

// Slots of the axes with more than one entry.
std::vector<int> wide_slots(Value value, Range range, Couplings& couplings) {
  std::vector<int> out;
  for (size_t axis = range.begin; axis < range.end; ++axis) {
    int slot = couplings.slot(value, axis);
    if (slot == kNoSlot || couplings.size(slot) != 1) out.push_back(slot);
  }
  return out;
}

void couple_segment(Node node, size_t number, const Segment& segment, Couplings& couplings) {
  std::vector<int> in = wide_slots(node.input(0), segment.in, couplings);
  std::vector<int> out = wide_slots(node.output(), segment.out, couplings);
  if (in.size() == 1 && out.size() == 1) {
    couplings.join(in[0], out[0], node);
  } else if (in.size() == 1 && !out.empty()) {
    couplings.fold(node, number, in[0], out);
  } else if (out.size() == 1 && !in.empty()) {
    couplings.fold(node, number, out[0], in);
  } else {
    for (const std::vector<int>& slots : {in, out})
      for (int slot : slots)
        couplings.protect(slot, cat(node_text(node), " mixes it with another axis"));
  }
}

// Whether the node may copy this size from its input: it is not known, but it is the same.
bool is_copied(const Type& in, const Type& out, size_t axis) {
  return out.dims[axis] < 0 && axis < in.rank() && !in.symbols.empty() && !out.symbols.empty() &&
         !out.symbols[axis].empty() && in.symbols[axis] == out.symbols[axis];
}

// More than one size is stated neither by -1 nor by copying: sizes stay computed.
bool keeps_computed(const Type& in, const Type& out) {
  size_t open = 0;
  for (size_t axis = 0; axis < out.rank(); ++axis)
    open += out.dims[axis] < 0 && !is_copied(in, out, axis);
  return open > 1;
}

bool has_size(const SizeOf& from, int64_t size) {
  return size >= 0 || from.value.type().dims[from.axis] >= 0;
}

bool is_touched(Value value, const Kept& kept) {
  for (size_t axis = 0; axis < value.type().rank(); ++axis)
    if (kept(value, axis)) return true;
  return false;
}

}  // namespace

Refusal couple_view(Node node, Couplings& couplings) {
  Type in = node.input(0).type(), out = node.output().type();
  Matching matching(in, out);
  size_t number = 0;
  for (const Segment& segment : matching.segments())
    couple_segment(node, number++, segment, couplings);
  couple_segment(node, number, matching.rest(), couplings);
  if (!Stated(node).has("sizes")) return std::nullopt;
  const auto sources = sources_of_sizes(node);
  for (size_t axis = 0; sources && axis < out.rank(); ++axis)  // both lose the same
    if (const auto& from = (*sources)[axis]; from && has_size(*from, out.dims[axis]))
      couplings.join(couplings.slot(from->value, from->axis), couplings.slot(node.output(), axis),
                     node);
  if (!keeps_computed(in, out)) return std::nullopt;
  const std::optional<Sizes> sizes = Sizes::of(node);
  if (!sizes || sizes->count() != out.rank())
    return "more than one size of its result is not known";
  for (size_t axis = 0; axis < out.rank(); ++axis)
    if (!(*sizes)[axis] && !sources)
      couplings.protect(couplings.slot(node.output(), axis),
                        cat(node_text(node), " computes its size"));
  return std::nullopt;
}

namespace {

Status rewrite_view(EditView edit, Node node, const Kept& kept) {
  Stated stated(node);
  if (stated.names("axes") && !stated.has("axes") && is_touched(node.input(0), kept)) {
    std::vector<int64_t> axes;
    Type from = node.input(0).type();
    for (size_t axis = 0; axis < from.rank(); ++axis)
      if (from.dims[axis] == 1) axes.push_back(static_cast<int64_t>(axis));
    return stated.set(edit, "axes", axes);
  }
  if (!stated.has("sizes") || !is_touched(node.output(), kept)) return {};
  Type in = node.input(0).type(), out = node.output().type();
  if (keeps_computed(in, out)) {
    std::optional<Sizes> sizes = Sizes::of(node);
    for (size_t axis = 0; axis < out.rank(); ++axis)
      if (kept(node.output(), axis)) sizes->set(axis, size_after(node.output(), axis, kept));
    return sizes->write(edit, node);
  }
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < out.rank(); ++axis) {
    if (out.dims[axis] >= 0) {
      shape.push_back(size_after(node.output(), axis, kept));
    } else {
      shape.push_back(is_copied(in, out, axis) ? 0 : -1);
    }
  }
  TN_CHECK(stated.drop(edit, "zero"));
  return stated.set(edit, "sizes", shape);
}

constexpr Rule kRules[] = {{TN_COUPLING_VIEW, couple_view, rewrite_view}};

}  // namespace

std::span<const Rule> view_rules() {
  return kRules;
}

}  // namespace tenon::pruner
