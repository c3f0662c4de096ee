// SPDX-License-Identifier: Apache-2.0
// Before:  y = SequenceAt(SplitToSequence(x, sizes), i), as PyTorch's exporter writes chunk and
//          split.
// After:   y = output i of a Split of x, one for all of them; without sizes and keepdims,
//          y = Gather(x, i).
// Needs:   constant sizes and i within them. One number for all sizes: that of the axis is known.
#include <algorithm>
#include <optional>

#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

using Sizes = std::vector<int64_t>;

std::optional<int64_t> axis_of(Node node) {
  const Type& type = node.input(0).type();
  if (!type.ranked) return std::nullopt;
  const auto rank = static_cast<int64_t>(type.rank());
  const int64_t axis = positive_axis(node.attr_int("axis", 0), type.rank());
  return axis >= 0 && axis < rank ? std::optional(axis) : std::nullopt;
}

// What each tensor of the sequence has along the axis, `size` or -1 in all.
std::optional<Sizes> sizes_of(Node split, int64_t size) {
  if (!split.input(1)) {
    if (size < 0) return std::nullopt;
    return Sizes(static_cast<size_t>(size), 1);
  }
  std::optional<Sizes> given = constant_ints(split.input(1));
  if (!given || split.input(1).type().rank() > 0) return given;
  const int64_t each = given->at(0);
  if (size < 0 || each < 1) return std::nullopt;
  Sizes out(static_cast<size_t>(size / each), each);
  if (size % each) out.push_back(size % each);
  return out;
}

// The Split that an earlier SequenceAt became.
Node split_before(Value x, int64_t axis, const Sizes& sizes) {
  for (uint64_t i = 0; i < x.consumer_count(); ++i) {
    Node node = x.consumer(i);
    if (node.is("Split") && node.input(0) == x && axis_of(node) == axis && node.input(1) &&
        constant_ints(node.input(1)) == sizes)
      return node;
  }
  return {};
}

Result<bool> rewrite(Rewriter& rewriter, Node at) {
  Node split = made_by(at.input(0), "SplitToSequence");
  std::optional<Sizes> place = constant_ints(at.input(1));
  if (!split || !place) return false;
  Value x = split.input(0);
  std::optional<int64_t> axis = axis_of(split);
  if (!axis) return false;
  std::optional<Sizes> sizes = sizes_of(split, x.type().dims[static_cast<size_t>(*axis)]);
  if (!sizes) return false;
  const int64_t n = std::ssize(*sizes), i = place->at(0) < 0 ? place->at(0) + n : place->at(0);
  if (i < 0 || i >= n) return false;  // who runs it says so
  if (!split.input(1) && split.attr_int("keepdims", 1) == 0) {
    TN_TRY(index, rewriter.edit().constant<int64_t>(TN_I64, {}, {i}));
    TN_TRY(picked, rewriter.op("Gather", {x, index}, {{"axis", *axis}}));
    return rewriter.replace(at, picked);
  }
  Node made = split_before(x, *axis, *sizes);
  if (!made) {
    TN_TRY(each, rewriter.ints(*sizes, "split"));
    TN_TRY(first, rewriter.op("Split", {x, each}, {{"axis", *axis}}, {}, sizes->size()));
    made = first.producer();
  }
  const std::string name(at.output().name());
  const Value with = made.output(static_cast<uint64_t>(i));
  const bool is_read = with.consumer_count() > 0 || with.is_output();  // under an earlier name
  TN_TRY(changed, rewriter.replace(at, with));
  if (changed && !is_read && with.name() != name)
    TN_CHECK(Status(services.edit->set_value_name(rewriter.edit().raw, with.id, str(name))));
  return changed;
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  return walk(graph, settings, {"SequenceAt"}, rewrite);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(sequences,
            "fusion.sequences",
            "a Split in place of a sequence of known length",
            tenon::fusion::run)
