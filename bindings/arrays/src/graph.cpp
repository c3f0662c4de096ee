// SPDX-License-Identifier: Apache-2.0
// Nodes, constants and types: what every function of the table stands on.
#include "tenon/arrays/graph.hpp"

#include <deque>

#include "call.hpp"

namespace tenon::arrays {

using cxx::cat, cxx::Error, cxx::invalid, cxx::str;

int64_t Value::rank() const {
  if (!ranked) invalid(cat(text(), ": expected a value whose number of axes is known"));
  return static_cast<int64_t>(dims.size());
}
int64_t Value::size_of(int64_t axis) const {
  int64_t size = dims[static_cast<size_t>(axis)];
  if (size < 0) invalid(cat("axis ", axis, " of ", text(), ": expected a size that is known"));
  return size;
}
std::string Value::text() const {
  std::string out = cat("traced ", cxx::dtype_name(dtype), "[", ranked ? "" : "any shape");
  for (size_t i = 0; i < dims.size(); ++i) {
    std::string name = symbols[i].empty() ? "?" : symbols[i];
    out += cat(i ? ", " : "", dims[i] < 0 ? name : std::to_string(dims[i]));
  }
  return out + "]";
}

void Graph::check(tn_status* status) const {
  if (!status) return;
  std::string domain(cxx::view(services_->status->domain(status)));
  throw cxx::error_of(status, std::move(domain));
}

Value Graph::value(tn_value_id id, bool weak) {
  tn_type type{};
  type.struct_size = sizeof type;
  check(services_->graph->value_type(services_->edit->graph(edit_), id, &type));
  Value made{this, id, type.dtype, weak, type.rank != TN_RANK_UNKNOWN};
  for (uint32_t i = 0; made.ranked && i < type.rank; ++i) {
    made.dims.push_back(type.dims[i]);
    made.symbols.emplace_back(type.symbols ? cxx::view(type.symbols[i]) : "");
  }
  return made;
}

namespace {

// Attributes of a node from JSON: {"dtype": n} is an element type, a list one of int64.
struct Attributes {
  explicit Attributes(const Json& object) {
    for (const auto& [key, given] : object.items()) {
      names.push_back(str(texts_.emplace_back(key)));
      values.push_back(read(given));
    }
  }
  std::vector<tn_str> names;
  std::vector<tn_any> values;

 private:
  tn_any read(const Json& given) {
    if (given.is_object()) return {TN_ANY_DTYPE, 0, 1, {.u = given["dtype"].get<uint32_t>()}};
    if (is_whole(given)) return {TN_ANY_I64, 0, 1, {.i = given.get<int64_t>()}};
    if (given.is_number()) return {TN_ANY_F64, 0, 1, {.f = given.get<double>()}};
    if (given.is_string()) {
      const std::string& text = texts_.emplace_back(given.get<std::string>());
      return {TN_ANY_TEXT, 0, text.size(), {.p = text.data()}};
    }
    const auto& list = ints_.emplace_back(given.get<std::vector<int64_t>>());
    return {TN_ANY_I64S, 0, list.size(), {.p = list.data()}};
  }
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> ints_;
};

// JSON's integers as they are: a double does not hold all of 64 bits. What needs more than 63 of
// them is unsigned there.
void store_whole(void* data, bool is_unsigned, int64_t i, const Json& number) {
  const bool fits =
      is_unsigned ? !is_whole(number) || number.get<int64_t>() >= 0 : is_whole(number);
  if (!fits) invalid(cat("expected a number that the element type can hold, got ", number.dump()));
  static_cast<uint64_t*>(data)[i] = number.get<uint64_t>();
}

void store(void* data, uint32_t dtype, int64_t i, const Json& number) {
  double real = number.is_boolean() ? number.get<bool>() : number.get<double>();
  if ((dtype == TN_I64 || dtype == TN_U64) && number.is_number_integer()) {
    store_whole(data, dtype == TN_U64, i, number);
  } else {
    cxx::store_number(data, dtype, i, real);
  }
}

}  // namespace

std::vector<Value> Graph::nodes(std::string_view op,
                                std::span<const Value> inputs,
                                const Json& attributes,
                                uint64_t outputs,
                                std::string_view domain) {
  Attributes given(attributes);
  std::vector<tn_value_id> ids;
  for (const Value& input : inputs)
    ids.push_back(input.id);
  tn_node_desc desc{sizeof desc,
                    0,
                    str(domain),
                    str(op),
                    str(""),
                    str(""),
                    ids.data(),
                    ids.size(),
                    outputs,
                    given.names.data(),
                    given.values.data(),
                    given.names.size(),
                    nullptr};
  std::vector<tn_value_id> made(outputs);
  tn_node_id id = 0;
  check(services_->edit->add_node(edit_, &desc, &id, made.data()));
  std::vector<Value> values;
  for (tn_value_id one : made)
    values.push_back(value(one));
  return values;
}

Value Graph::constant(uint32_t dtype,
                      const std::vector<int64_t>& shape,
                      std::span<const Json> elements) {
  DLTensor proto{};
  proto.device = {kDLCPU, 0};
  proto.ndim = static_cast<int32_t>(shape.size());
  proto.dtype = cxx::dl_dtype(dtype);
  proto.shape = const_cast<int64_t*>(shape.data());
  tn_tensor* raw = nullptr;
  check(services_->tensor->alloc(services_->ctx(), &proto, &raw));
  auto release = [this](tn_tensor* held) { services_->tensor->release(held); };
  std::unique_ptr<tn_tensor, decltype(release)> kept(raw, release);
  DLTensor view{};
  check(services_->tensor->view(raw, &view));
  for (size_t i = 0; i < elements.size(); ++i)
    store(static_cast<char*>(view.data) + view.byte_offset, dtype, static_cast<int64_t>(i),
          elements[i]);
  tn_value_id made = 0;
  check(services_->edit->add_constant(edit_, str("constant"), raw, &made));
  return value(made);
}

Value Graph::number(const Json& number, uint32_t dtype) {
  std::string key = cat(cxx::dtype_name(dtype), " ", number.dump());
  if (number.is_number_float() && !std::isfinite(number.get<double>()))  // JSON has no such text
    key += std::to_string(number.get<double>());
  auto [at, is_new] = constants_.try_emplace(key, 0);
  if (is_new) {
    try {
      at->second = constant(dtype, {}, {&number, 1}).id;
    } catch (...) {
      constants_.erase(at);
      throw;
    }
  }
  numbers_[at->second] = number;
  return value(at->second);
}

bool is_whole(const Json& number) {
  return number.is_number_integer() &&
         !(number.is_number_unsigned() && number.get<uint64_t>() > uint64_t{INT64_MAX});
}

Value Graph::typed(const Value& x, uint32_t dtype) {
  auto given = numbers_.find(x.id);
  return x.weak && given != numbers_.end() ? number(given->second, dtype) : cast(x, dtype);
}

Value Graph::numbers(const std::vector<int64_t>& shape, const std::vector<double>& elements) {
  std::vector<Json> all(elements.begin(), elements.end());
  Value made = constant(TN_F32, shape, all);
  lists_[made.id] = std::move(all);
  return made;
}

std::optional<Value> Graph::in_double(const Value& x) {
  if (auto one = numbers_.find(x.id); one != numbers_.end()) return number(one->second, TN_F64);
  if (auto list = lists_.find(x.id); list != lists_.end())
    return constant(TN_F64, x.dims, list->second);
  return std::nullopt;
}

Value Graph::integers(std::span<const int64_t> list) {
  auto [at, is_new] = constants_.try_emplace(cxx::shape_text(list), 0);
  std::vector<Json> elements(list.begin(), list.end());
  if (is_new) at->second = constant(TN_I64, {static_cast<int64_t>(list.size())}, elements).id;
  return value(at->second);
}

uint32_t together(uint32_t a, uint32_t b) {
  if (a == b || a == TN_DTYPE_NONE) return b;
  uint32_t bits_a = TN_DTYPE_BITS(a);
  uint32_t bits_b = TN_DTYPE_BITS(b);
  if (cxx::is_float(a) && cxx::is_float(b)) {
    if (bits_a == bits_b) return TN_F32;  // float16 with bfloat16
    return bits_a > bits_b ? a : b;
  }
  if (cxx::is_float(a) || cxx::is_float(b)) return cxx::is_float(a) ? a : b;
  if (a == TN_BOOL || b == TN_BOOL) return a == TN_BOOL ? b : a;
  if (TN_DTYPE_CODE(a) == TN_DTYPE_CODE(b)) return bits_a > bits_b ? a : b;
  bool a_signed = TN_DTYPE_CODE(a) == kDLInt;
  uint32_t signed_bits = a_signed ? bits_a : bits_b;
  uint32_t unsigned_bits = a_signed ? bits_b : bits_a;
  if (unsigned_bits < signed_bits) return TN_DTYPE(kDLInt, signed_bits);
  // NumPy's float64 where no integer holds both.
  return unsigned_bits < 64 ? TN_DTYPE(kDLInt, 2 * unsigned_bits) : TN_F64;
}

uint32_t with_number(uint32_t dtype, const Json& number) {
  const uint32_t whole = is_whole(number) ? TN_I64 : TN_U64;
  uint32_t own = number.is_boolean() ? TN_BOOL : number.is_number_integer() ? whole : TN_F32;
  if (dtype == TN_DTYPE_NONE || dtype == own) return own;
  if (number.is_boolean() || cxx::is_float(dtype)) return dtype;
  return number.is_number_integer() && dtype != TN_BOOL ? dtype : own;
}

}  // namespace tenon::arrays
