// SPDX-License-Identifier: Apache-2.0
#include "removal.hpp"

#include <algorithm>
#include <cstring>

#include "tenon/role/op.h"

#include "rules.hpp"

namespace tenon::pruner {
namespace {

// Copies the entries that stay, axis by axis; runs of the last axes are copied whole.
class Cutter {
 public:
  Cutter(const DLTensor& from, const std::vector<const std::vector<int64_t>*>& kept)
      : dims_(shape_of(from).begin(), shape_of(from).end()),
        kept_(kept),
        bytes_(TN_DTYPE_BITS(dtype_of(from)) / 8) {
    depth_ = kept_.size();
    run_ = bytes_;
    while (depth_ > 0 && !kept_[depth_ - 1])
      run_ *= static_cast<size_t>(dims_[--depth_]);
  }
  // visit(offset, bytes) for each run that stays, in order; offsets are in bytes.
  template <class Visit>
  void walk(Visit&& visit, size_t axis = 0, size_t at = 0) const {
    if (axis == depth_) {
      visit(at, run_);
      return;
    }
    size_t stride = bytes_;
    for (size_t i = axis + 1; i < dims_.size(); ++i)
      stride *= static_cast<size_t>(dims_[i]);
    if (kept_[axis]) {
      for (int64_t entry : *kept_[axis])
        walk(visit, axis + 1, at + static_cast<size_t>(entry) * stride);
    } else {
      for (int64_t entry = 0; entry < dims_[axis]; ++entry)
        walk(visit, axis + 1, at + static_cast<size_t>(entry) * stride);
    }
  }

 private:
  std::vector<int64_t> dims_;
  const std::vector<const std::vector<int64_t>*>& kept_;
  size_t bytes_, depth_ = 0, run_ = 0;
};

}  // namespace

Result<Tensor> cut(tn_ctx* ctx,
                   const Tensor& tensor,
                   const std::vector<const std::vector<int64_t>*>& kept) {
  DLTensor from = tensor.dl();
  std::vector<int64_t> shape(shape_of(from).begin(), shape_of(from).end());
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (kept[axis]) shape[axis] = static_cast<int64_t>(kept[axis]->size());
  TN_TRY(out, Tensor::zeros(ctx, dtype_of(from), shape));
  const char* source = data_of<const char>(from);
  char* target = out.data<char>();
  Cutter(from, kept).walk([&](size_t at, size_t bytes) {
    std::memcpy(target, source + at, bytes);
    target += bytes;
  });
  return out;
}

Result<Tensor> masked(tn_ctx* ctx,
                      const Tensor& tensor,
                      const std::vector<const std::vector<int64_t>*>& kept) {
  DLTensor from = tensor.dl();
  TN_TRY(out, Tensor::zeros(ctx, dtype_of(from), shape_of(from)));
  const char* source = data_of<const char>(from);
  char* target = out.data<char>();
  Cutter(from, kept).walk([&](size_t at, size_t bytes) {
    std::memcpy(target + at, source + at, bytes);
  });
  return out;
}

Status replace_constant(EditView edit, Value constant, const Tensor& tensor) {
  std::string name(constant.name());
  TN_CHECK(services.edit->set_value_name(edit.raw, constant.id, str(cat(name, "_before"))));
  TN_TRY(made, edit.constant(tensor, name));
  return edit.replace(constant, made);
}

Removal::Removal(const Groups& groups)
    : groups_(groups), gone_(static_cast<size_t>(groups.couplings().n_atoms())) {}

void Removal::add(const Group& group, const std::vector<bool>& gone) {
  for (size_t c = 0; c < gone.size(); ++c)
    if (gone[c]) gone_[static_cast<size_t>(group.roots[c])] = true;
  decided_ = false;
}

void Removal::decide() const {
  if (decided_) return;
  decided_ = true;
  kept_.clear();
  const Couplings& couplings = groups_.couplings();
  const std::vector<Slot>& slots = couplings.slots();
  for (size_t s = 0; s < slots.size(); ++s) {
    if (!slots[s].value) continue;
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < slots[s].size; ++i)
      if (!gone_[static_cast<size_t>(couplings.find(slots[s].first + i))]) kept.push_back(i);
    if (static_cast<int64_t>(kept.size()) < slots[s].size)
      kept_.emplace(static_cast<int>(s), std::move(kept));
  }
}

const std::vector<int64_t>* Removal::kept(Value value, size_t axis) const {
  decide();
  auto at = kept_.find(groups_.couplings().known_slot(value, axis));
  return at == kept_.end() ? nullptr : &at->second;
}

std::vector<Value> Removal::touched(Graph graph) const {
  std::vector<Value> out;
  for (Value constant : graph.constants()) {
    bool any = false;
    for (size_t axis = 0, rank = constant.type().rank(); axis < rank; ++axis)
      any |= kept(constant, axis) != nullptr;
    if (any) out.push_back(constant);
  }
  return out;
}

std::vector<Value> Removal::shrunk() const {
  decide();
  std::vector<Value> out;
  for (const auto& [slot, kept] : kept_) {
    Value value = groups_.couplings().slots()[static_cast<size_t>(slot)].value;
    if (!value.is_constant() && std::ranges::count(out, value) == 0) out.push_back(value);
  }
  return out;
}

Status Removal::remove(EditView edit) const {
  Kept left = [this](Value value, size_t axis) { return kept(value, axis); };
  std::vector<Value> constants = touched(edit.graph());
  for (Node node : edit.graph().nodes())
    TN_CHECK(rewrite(edit, node, left));
  for (Value constant : constants) {
    std::vector<const std::vector<int64_t>*> axes;
    for (size_t axis = 0; axis < constant.type().rank(); ++axis)
      axes.push_back(kept(constant, axis));
    TN_TRY(smaller, cut(edit.ctx(), constant.constant(), axes));
    TN_CHECK(replace_constant(edit, constant, smaller));
  }
  return {};
}

namespace {

// Whether all that reads a constant divides by it: masked entries are 0 over it already, and zeros
// in it would make them NaN.
bool only_divides(Value constant) {
  for (uint64_t i = 0; i < constant.consumer_count(); ++i) {
    uint64_t input = 0;
    const tn_op* row = constant.consumer(i, &input).row();
    std::string expression(row && (row->traits & TN_OP_POINTWISE) ? view(row->expr) : "");
    std::erase(expression, ' ');
    if (expression != "x/y" || input != 1) return false;
  }
  return true;
}

}  // namespace

// An entry goes with any of its axes, as it does when they are cut.
Status Removal::mask(EditView edit) const {
  Kept left = [this](Value value, size_t axis) { return kept(value, axis); };
  std::vector<Value> constants = touched(edit.graph());
  for (Node node : edit.graph().nodes())
    TN_CHECK(pruner::mask(edit, node, left));
  for (Value constant : constants) {
    if (only_divides(constant)) continue;
    std::vector<const std::vector<int64_t>*> axes;
    for (size_t axis = 0; axis < constant.type().rank(); ++axis)
      axes.push_back(kept(constant, axis));
    TN_TRY(zeroed, masked(edit.ctx(), constant.constant(), axes));
    TN_CHECK(replace_constant(edit, constant, zeroed));
  }
  return {};
}

}  // namespace tenon::pruner
