// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's axes column laid over the shapes that it has: which labels stand at which axis of which
// value, and how long each label is.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/axes.h"

#include "tenon/sdk/graph.hpp"

namespace tenon::pruner {

struct Factor {
  uint32_t label = TN_AXES_NO_LABEL;
  int64_t position = 0;  // within a run from the left, within a batch from the right
  uint32_t flags = 0;    // TN_AXES_TERM_*
  uint64_t size = 0;     // a literal's

  bool is_same(const Factor& other) const {
    return label == other.label && position == other.position;
  }
};

struct Place {  // one axis of one value
  Value value;
  size_t axis = 0;
  bool is_input = true;
  uint64_t index = 0;  // of the input or output
  std::vector<Factor> factors;
};

class Signature {
 public:
  // Nothing when the shapes do not say how the signature lies over them.
  static std::optional<Signature> lay(Node node, const tn_axes& axes);

  const std::vector<Place>& places() const { return places_; }
  // Entries along a label, -1 where it is not known.
  int64_t size_of(const Factor& factor) const;
  bool is_batch(const Factor& factor) const { return factor.flags & TN_AXES_TERM_BATCH; }
  // The factor by which a grouped axis loses entries: all of a group (depthwise), or the same entry
  // of each group. Nothing: the axis is not grouped.
  const Factor* pivot(const Place& place) const;

 private:
  Signature(Node node, const tn_axes& axes) : node_(node), axes_(axes) {}
  bool place(const std::vector<tn_axes_place>& laid);
  // Sizes of labels: from attributes, from axes with one label, from groups with one open factor.
  void bound_sizes();
  void sizes_of_axes();
  void sizes_of_groups();
  bool is_depthwise() const;
  std::string bind_of(uint32_t label) const;

  Node node_;
  const tn_axes& axes_;
  std::vector<Place> places_;
  std::map<std::pair<uint32_t, int64_t>, int64_t> sizes_;
};

}  // namespace tenon::pruner
