// SPDX-License-Identifier: Apache-2.0
// Before:  two constants of one type and shape with the same elements, or a matrix that is the
//          transpose of another one, as exporters and folded Transposes leave tied weights.
// After:   the one that is read first; a Transpose of it stands for its transpose.
// Needs:   at least 1 KiB and two axes; elements of whole bytes that are not all the same (an
//          untrained bias is no tie).
#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>

#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

constexpr uint64_t kLeastBytes = 1024;

struct Matrix {
  Value value;
  const char* data;
  size_t size;  // bytes of an element
  std::vector<int64_t> dims;
  bool operator==(const Matrix& other) const { return std::memcmp(data, other.data, bytes()) == 0; }
  size_t bytes() const { return size * static_cast<size_t>(element_count(dims)); }
};

// In tiles, so that both are read along their lines.
bool is_transpose(const Matrix& a, const Matrix& b) {
  constexpr int64_t kTile = 32;
  const int64_t rows = a.dims[0], columns = a.dims[1];
  const size_t size = a.size;
  auto differ = [&](int64_t r, int64_t c) {
    return std::memcmp(a.data + static_cast<size_t>(r * columns + c) * size,
                       b.data + static_cast<size_t>(c * rows + r) * size, size) != 0;
  };
  for (int64_t top = 0; top < rows; top += kTile)
    for (int64_t left = 0; left < columns; left += kTile)
      for (int64_t r = top; r < std::min(rows, top + kTile); ++r)
        for (int64_t c = left; c < std::min(columns, left + kTile); ++c)
          if (differ(r, c)) return false;
  return true;
}

// The constants that count, in the order in which nodes read them.
std::vector<Matrix> matrices(Graph graph, const Settings& settings) {
  std::vector<Matrix> out;
  std::unordered_set<tn_value_id> seen;
  for (Node node : graph.nodes()) {
    if (!settings.covers(node)) continue;
    for (Value value : node.inputs()) {
      if (!value || !value.is_constant() || value.is_output() || !seen.insert(value.id).second)
        continue;
      const DLTensor tensor = value.constant().dl();
      const uint32_t bits = TN_DTYPE_BITS(dtype_of(tensor));
      Matrix one{value, data_of<const char>(tensor), bits / 8, value.type().dims};
      if (tensor.ndim < 2 || bits % 8 != 0 || tensor.device.device_type != kDLCPU ||
          one.bytes() < kLeastBytes)
        continue;
      if (std::memcmp(one.data, one.data + one.size, one.bytes() - one.size) != 0)
        out.push_back(std::move(one));
    }
  }
  return out;
}

Result<Value> transposed(EditView edit, const Matrix& kept, Value instead_of) {
  TN_TRY(node, edit.add({.type = "Transpose",
                         .inputs = {kept.value},
                         .attrs = {{"perm", std::vector<int64_t>{1, 0}}},
                         .name = cat(instead_of.name(), "_tied"),
                         .scope = instead_of.consumer(0).scope()}));
  return node.output();
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  using Key = std::pair<uint32_t, std::vector<int64_t>>;
  std::map<Key, std::vector<Matrix>> kept;
  TN_TRY(edit, Edit::begin(graph));
  int64_t applied = 0;
  for (const Matrix& one : matrices(edit.graph(), settings)) {
    TN_CHECK(Cancel(settings.cancel).check());
    const uint32_t dtype = one.value.dtype();
    std::vector<Matrix>& same = kept[{dtype, one.dims}];
    Value instead;
    if (auto at = std::ranges::find(same, one); at != same.end()) {
      instead = at->value;
    } else if (one.dims.size() == 2) {
      for (const Matrix& other : kept[{dtype, {one.dims[1], one.dims[0]}}]) {
        if (!is_transpose(one, other)) continue;
        TN_TRY(made, transposed(edit, other, one.value));
        instead = made;
        break;
      }
    }
    if (!instead) {
      same.push_back(one);
      continue;
    }
    TN_CHECK(edit.replace(one.value, instead));
    ++applied;
  }
  if (applied > 0) TN_CHECK(edit.commit());
  return applied;
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(ties,
            "fusion.ties",
            "stores once the weights that are there twice, transposed or not",
            tenon::fusion::run)
