// SPDX-License-Identifier: Apache-2.0
#include "sizes.hpp"

#include <algorithm>

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/coupling.hpp"

#include "../rules.hpp"

namespace tenon::pruner {

std::optional<Sizes> Sizes::of(Node node) {
  Stated stated(node);
  Sizes out;
  Value given = stated.input("sizes");
  if (given) return out.collect(given) ? std::optional(out) : std::nullopt;
  auto numbers = stated.ints("sizes");
  if (!numbers) return std::nullopt;
  out.parts_.push_back({{}, {numbers->begin(), numbers->end()}});
  return out;
}

bool Sizes::collect(Value value) {
  if (auto numbers = constant_ints(value)) {
    parts_.push_back({value, {numbers->begin(), numbers->end()}});
    return true;
  }
  const Node made = value.producer();
  if (made && Stated(made).family() == TN_COUPLING_CONCAT) {
    joiner_ = made;
    for (Value part : made.inputs())
      if (!collect(part)) return false;
    return true;
  }
  const Type type = value.type();
  if (type.rank() != 1 || !type.is_static()) return false;
  parts_.push_back({value, std::vector<std::optional<int64_t>>(static_cast<size_t>(type.dims[0]))});
  return true;
}

size_t Sizes::count() const {
  size_t out = 0;
  for (const Part& part : parts_)
    out += part.sizes.size();
  return out;
}

std::pair<size_t, size_t> Sizes::place(size_t i) const {
  size_t part = 0;
  for (; i >= parts_[part].sizes.size(); ++part)
    i -= parts_[part].sizes.size();
  return {part, i};
}

std::optional<int64_t> Sizes::operator[](size_t i) const {
  const auto [part, at] = place(i);
  return parts_[part].sizes[at];
}

void Sizes::set(size_t i, int64_t size) {
  const auto [at, number] = place(i);
  Part& part = parts_[at];
  if (!part.sizes[number] || part.sizes[number] == size) return;
  part.sizes[number] = size;
  part.is_changed = true;
}

Status Sizes::write(EditView edit, Node node) const {
  Stated stated(node);
  std::vector<Value> values;
  bool is_changed = false;
  for (const Part& part : parts_) {
    is_changed = is_changed || part.is_changed;
    std::vector<int64_t> numbers;
    for (std::optional<int64_t> size : part.sizes)
      numbers.push_back(size.value_or(0));
    if (part.is_changed && !joiner_) return stated.set(edit, "sizes", numbers);
    Value value = part.value;
    if (part.is_changed) {
      TN_TRY(made, edit.ints(numbers));
      value = made;
    }
    values.push_back(value);
  }
  if (!is_changed) return {};
  Builder b(edit);
  const Node joined = again(b, joiner_, values);
  TN_CHECK(b.status());
  const Value given = stated.input("sizes");
  for (uint64_t i = 0; i < node.n_inputs(); ++i)
    if (node.input(i) == given) return edit.set_input(node, i, joined.output());
  return {};
}

std::optional<std::vector<int64_t>> taken_sizes(Node user, int64_t n_sizes) {
  Stated stated(user);
  if (stated.family() == TN_COUPLING_GATHER) return stated.ints("at");
  if (stated.family() != TN_COUPLING_SLICE) return std::nullopt;
  auto from = stated.ints("starts"), to = stated.ints("ends"), steps = stated.ints("steps");
  bool plain = from && to && from->size() == 1 && (!stated.has("steps") || steps) &&
               (!steps || steps->at(0) == 1);
  if (!plain) return std::nullopt;
  auto counted = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + n_sizes : at, 0, n_sizes);
  };
  std::vector<int64_t> out;
  for (int64_t one = counted(from->at(0)); one < counted(to->at(0)); ++one)
    out.push_back(one);
  return out;
}

namespace {

using Sources = std::vector<std::optional<SizeOf>>;

constexpr int kMostSteps = 8;  // between a Shape and the view

// The axes whose sizes a Shape gives, in order.
Sources axes_of(Node shape) {
  const Stated stated(shape);
  const auto rank = static_cast<int64_t>(shape.input(0).type().rank());
  auto counted = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  Sources out;
  for (int64_t axis = counted(stated.integer("start", 0));
       axis < counted(stated.integer("end", rank)); ++axis)
    out.push_back(SizeOf{shape.input(0), static_cast<size_t>(axis)});
  return out;
}

std::optional<Sources> sources_of(Value sizes, int steps) {
  if (auto numbers = constant_ints(sizes)) return Sources(numbers->size());
  const Node made = sizes.producer();
  if (!made || steps == 0) return std::nullopt;
  const uint32_t family = Stated(made).family();
  if (family == TN_COUPLING_SHAPE) return axes_of(made);
  if (family == TN_COUPLING_CONCAT) {
    Sources out;
    for (Value part : made.inputs()) {
      const auto some = sources_of(part, steps - 1);
      if (!some) return std::nullopt;
      out.insert(out.end(), some->begin(), some->end());
    }
    return out;
  }
  const bool moves = family == TN_COUPLING_GATHER || family == TN_COUPLING_SLICE;
  if (!moves && family != TN_COUPLING_VIEW) return std::nullopt;
  const auto all = sources_of(made.input(0), steps - 1);
  if (!all || !moves) return all;
  const auto count = static_cast<int64_t>(all->size());
  const auto at = taken_sizes(made, count);
  if (!at) return std::nullopt;
  Sources out;
  for (int64_t one : *at) {
    const auto i = axis_in(one, all->size());
    if (!i) return std::nullopt;
    out.push_back((*all)[*i]);
  }
  return out;
}

bool serves_views(Node user, uint64_t input, int steps) {
  const Stated stated(user);
  const Value sizes = user.input(input);
  const bool is_view = stated.family() == TN_COUPLING_VIEW;
  if (is_view && input > 0)
    return stated.input("sizes") == sizes && user.input(0) != sizes && sources_of_sizes(user);
  const bool hands_on =
      is_view || stated.family() == TN_COUPLING_CONCAT ||
      (input == 0 && taken_sizes(user, static_cast<int64_t>(sizes.type().elements())));
  const Value out = user.output();
  if (!hands_on || out.is_output() || steps == 0) return false;
  for (uint64_t i = 0; i < out.consumer_count(); ++i) {
    uint64_t at = 0;
    const Node next = out.consumer(i, &at);
    if (!serves_views(next, at, steps - 1)) return false;
  }
  return true;
}

}  // namespace

std::optional<Sources> sources_of_sizes(Node view) {
  const Value given = Stated(view).input("sizes");
  auto out = given ? sources_of(given, kMostSteps) : std::nullopt;
  return out && out->size() == view.output().type().rank() ? out : std::nullopt;
}

bool serves_views(Node user, uint64_t input) {
  return serves_views(user, input, kMostSteps);
}

}  // namespace tenon::pruner
