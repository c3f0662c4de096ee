// SPDX-License-Identifier: Apache-2.0
#include "sizes.hpp"

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/coupling.hpp"

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

Value sized_as(Node view) {
  const Stated stated(view);
  if (stated.family() != TN_COUPLING_VIEW) return {};
  const Value given = stated.input("sizes");
  const Node shape = given ? given.producer() : Node();
  if (!shape || view.input(0) == given) return {};
  const Stated whole(shape);
  if (whole.family() != TN_COUPLING_SHAPE || whole.integer("start", 0) != 0 || whole.has("end"))
    return {};
  return shape.input(0);
}

}  // namespace tenon::pruner
