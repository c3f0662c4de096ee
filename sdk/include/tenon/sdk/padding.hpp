// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sequences that are padded to one length: which entries count. In such a batch most rows may be
// padding, and what is fitted to these serves numbers that nothing reads. The option `mask` names
// the input of the model that is 0 at padding, such as attention_mask.

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon {

class PaddingMask {
 public:
  // No name: everything counts.
  static Result<PaddingMask> find(Graph model, const std::string& name);
  explicit operator bool() const { return input_ >= 0; }

  // Of one batch, whose inputs are in the order of the model's, or of its first samples.
  Status read(std::span<const DLTensor> inputs, uint64_t samples = 0);
  // How many of the first axes of a value of this shape are the mask's: as they are, or as one axis
  // of all entries, as products of matrices have them. 0: padding does not show in it.
  size_t leading(std::span<const int64_t> dims) const;
  // Whether padding shows in what a layer reads: it has an axis behind the mask's.
  bool covers(std::span<const int64_t> dims);
  // Those of `outer` positions of a value, over its first axes, that count: all where the mask does
  // not cover it.
  std::vector<int64_t> among(const DLTensor& value, int64_t outer);
  // How many of so many positions count in a value that the mask covers.
  int64_t counted(int64_t outer) const;
  // A value that the mask covers with that many of its first axes, with zeros for padding.
  Result<Value> cleared(EditView edit, Value x, size_t leading) const;
  // Errors where it covered none of the values that were asked for, and where none of the batches
  // that were read had anything that counts. At the end: both.
  Status check_covers() const;
  Status check_counts() const;
  Status check_used() const {
    TN_CHECK(check_covers());
    return check_counts();
  }
  bool has_counted() const { return has_counted_; }

 private:
  friend class Counting;
  int64_t input_ = -1;
  std::string name_;
  std::vector<int64_t> dims_;
  std::vector<char> counts_;
  bool was_asked_ = false, was_used_ = false, was_read_ = false, has_counted_ = false;
};

// A value without its padding: what counts lies one behind the other.
class Counting {
 public:
  Counting(const PaddingMask& mask, const DLTensor& value);
  const DLTensor& dl() const { return view_; }

 private:
  DLTensor view_;
  std::vector<int64_t> dims_;
  std::vector<char> room_;
};

#define TENON_MASK_OPTION \
  R"("mask": {"type": "string", "description": "input of the model that is 0 at padding, such as attention_mask: positions there do not count"})"

// ---- definitions

inline Result<PaddingMask> PaddingMask::find(Graph model, const std::string& name) {
  PaddingMask out;
  out.name_ = name;
  if (name.empty()) return out;
  std::string names;
  for (uint64_t i = 0; i < model.inputs().size(); ++i) {
    if (model.input_name(i) == name) out.input_ = static_cast<int64_t>(i);
    names += cat(names.empty() ? "" : ", ", model.input_name(i));
  }
  if (out.input_ < 0)
    return invalid(
        cat("option mask: expected an input of the model (", names, "), got '", name, "'"));
  return out;
}

inline Status PaddingMask::read(std::span<const DLTensor> inputs, uint64_t samples) {
  if (input_ < 0) return {};
  const DLTensor& mask = inputs[static_cast<size_t>(input_)];
  TN_TRY(numbers, numbers_as<double>(mask));
  dims_.assign(shape_of(mask).begin(), shape_of(mask).end());
  counts_.clear();
  for (double number : numbers)
    counts_.push_back(number != 0);
  was_read_ = true;
  has_counted_ = has_counted_ || std::ranges::count(counts_, 1) > 0;
  if (samples == 0 || dims_.empty() || static_cast<int64_t>(samples) >= dims_[0]) return {};
  counts_.resize(counts_.size() / static_cast<size_t>(dims_[0]) * samples);
  dims_[0] = static_cast<int64_t>(samples);
  return {};
}

inline Status PaddingMask::check_counts() const {
  if (!was_read_ || has_counted_) return {};
  return invalid(cat("option mask: expected numbers other than 0 at what counts, got ", name_,
                     ", which is 0 in all of the data"));
}

inline size_t PaddingMask::leading(std::span<const int64_t> dims) const {
  if (counts_.empty() || dims_.empty() || dims.empty()) return 0;
  if (dims.size() >= dims_.size() && std::ranges::equal(dims_, dims.first(dims_.size())))
    return dims_.size();
  return dims[0] == static_cast<int64_t>(counts_.size()) ? 1 : 0;
}

inline bool PaddingMask::covers(std::span<const int64_t> dims) {
  const size_t axes = leading(dims);
  const bool does = axes > 0 && dims.size() > axes;
  was_asked_ = true;
  was_used_ = was_used_ || does;
  return does;
}

inline std::vector<int64_t> PaddingMask::among(const DLTensor& value, int64_t outer) {
  std::vector<int64_t> out(static_cast<size_t>(outer));
  std::iota(out.begin(), out.end(), int64_t{0});
  const auto count = static_cast<int64_t>(counts_.size());
  if (count == 0 || !covers(shape_of(value)) || outer % count != 0) return out;
  const int64_t each = outer / count;
  std::erase_if(out, [&](int64_t at) { return !counts_[static_cast<size_t>(at / each)]; });
  return out;
}

inline int64_t PaddingMask::counted(int64_t outer) const {
  const auto count = static_cast<int64_t>(counts_.size());
  return outer / count * std::ranges::count(counts_, 1);
}

inline Result<Value> PaddingMask::cleared(EditView edit, Value x, size_t leading) const {
  TN_TRY(counts, edit.op("Cast", {edit.graph().inputs()[static_cast<size_t>(input_)]},
                         {{"to", any_dtype(TN_BOOL)}}));
  Value wide = counts;
  if (leading < dims_.size()) {
    TN_TRY(whole, edit.ints({-1}));
    TN_TRY(flat, edit.op("Reshape", {wide, whole}));
    wide = flat;
  }
  std::vector<int64_t> axes(x.type().rank() - leading);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(leading));
  TN_TRY(late, edit.ints(axes));
  TN_TRY(seen, edit.op("Unsqueeze", {wide, late}));
  TN_TRY(zero, edit.constant<float>(TN_F32, {}, std::vector<float>{0}));
  return edit.op("Where", {seen, x, zero});
}

inline Counting::Counting(const PaddingMask& mask, const DLTensor& value) : view_(value) {
  const size_t axes = mask.leading(shape_of(value));
  if (axes == 0) return;
  const std::vector<char>& counts = mask.counts_;
  const size_t each = bytes_of(dtype_of(value), element_count(value)) / counts.size();
  const auto* from = data_of<const char>(value);
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i]) room_.insert(room_.end(), from + i * each, from + (i + 1) * each);
  dims_ = {std::ranges::count(counts, 1)};
  dims_.insert(dims_.end(), value.shape + axes, value.shape + value.ndim);
  view_.data = room_.data();
  view_.byte_offset = 0;
  view_.ndim = static_cast<int32_t>(dims_.size());
  view_.shape = dims_.data();
  view_.strides = nullptr;
}

inline Status PaddingMask::check_covers() const {
  if (input_ < 0 || !was_asked_ || was_used_) return {};
  return invalid(cat("option mask: expected an input whose axes are the first ones of what layers ",
                     "read, such as [batch, length], got ", name_, " of ",
                     type_text(Type(TN_BOOL, dims_)), ", which covers none of the layers"));
}

}  // namespace tenon
