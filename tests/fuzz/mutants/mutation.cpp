// SPDX-License-Identifier: Apache-2.0
#include "mutation.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include <nlohmann/json.hpp>

#include "tenon/sdk/alike.hpp"

namespace tenon::fuzz {
namespace {

using nlohmann::json;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr uint32_t kTypes[] = {
    TN_F32, TN_F64, TN_F16, TN_BF16, TN_I64, TN_I32,  TN_I16,
    TN_I8,  TN_U64, TN_U32, TN_U16,  TN_U8,  TN_BOOL, TN_DTYPE(kDLFloat8_e4m3fn, 8),
    TN_I4};

std::string text_of(const std::vector<int64_t>& list) {
  std::string out = "[";
  for (int64_t v : list)
    out += cat(out.size() > 1 ? ", " : "", v);
  return out + "]";
}
std::string text_of(const Type& type) {
  return cat(dtype_name(type.dtype), text_of(type.dims));
}

int64_t other_size(int64_t size, Random& random) {
  const int64_t near[] = {size - 1, size + 1, size * 2, 1, 2, 3, 7};
  if (random.one_in(12)) return 0;
  if (random.one_in(24)) return 4000;
  return std::max<int64_t>(0, random.one_of(near));
}
int64_t other_integer(int64_t number, Random& random, bool is_near = false) {
  auto wrapped = [](uint64_t bits) { return static_cast<int64_t>(bits); };
  auto u = static_cast<uint64_t>(number);
  const int64_t near[] = {wrapped(u - 1), wrapped(u + 1), wrapped(-u), 0, 1, 2, -1, 3, wrapped(~u)};
  const int64_t far[] = {kMost, -kMost - 1, int64_t{1} << 31, -(int64_t{1} << 31), 1000, -1000};
  return !is_near && random.one_in(5) ? random.one_of(far) : random.one_of(near);
}
double other_float(Random& random) {
  const double all[] = {0, -1, 1, 0.5, 2, 1e30, -1e30, 1e-30, NAN, HUGE_VAL, -HUGE_VAL};
  return random.one_of(all);
}

// What a node reads: inputs of the graph and constants, each once.
std::vector<Value> operands_of(Node node) {
  std::vector<Value> out;
  for (Value v : node.inputs()) {
    bool is_new = v && std::find(out.begin(), out.end(), v) == out.end();
    if (is_new && v.type().kind == TN_KIND_TENSOR && !v.producer()) out.push_back(v);
  }
  return out;
}

// Gives an operand another type. A constant keeps its numbers as far as they reach.
Status retype(EditView edit, Node node, Value v, const Type& type, Random& random) {
  if (!v.is_constant()) return edit.set_type(v, type);
  if (type.elements() > int64_t{1} << 20) return invalid("too large for a constant");
  TN_TRY(tensor, filled(edit.ctx(), type, random, v.constant()));
  TN_TRY(constant, edit.constant(tensor));
  for (uint64_t i = 0; i < node.n_inputs(); ++i)
    if (node.input(i) == v) TN_CHECK(edit.set_input(node, i, constant));
  return {};
}

struct Change {
  EditView edit;
  Node& node;
  Random& random;

  Result<Value> operand() {
    std::vector<Value> all = operands_of(node);
    if (all.empty()) return invalid("the node reads nothing");
    return random.one_of(all);
  }

  Result<std::string> dimension() {
    TN_TRY(v, operand());
    Type type = v.type();
    if (!type.rank()) return rank();
    size_t axis = random.below(type.rank());
    int64_t before = type.dims[axis];
    type.dims[axis] = other_size(before, random);
    std::string said = cat(v.name(), ": axis ", axis, ": ", before, " -> ", type.dims[axis]);
    int64_t after = type.dims[axis];
    TN_CHECK(retype(edit, node, v, type, random));
    return said + cat(" (", after, ")");
  }

  // All axes of one size get another one: often valid.
  Result<std::string> dimensions() {
    TN_TRY(chosen, operand());
    Type like = chosen.type();
    if (!like.rank()) return rank();
    int64_t before = like.dims[random.below(like.rank())], after = other_size(before, random);
    for (Value v : operands_of(node)) {
      Type type = v.type();
      std::replace(type.dims.begin(), type.dims.end(), before, after);
      TN_CHECK(retype(edit, node, v, type, random));
    }
    return cat("all axes of size ", before, " -> ", after);
  }

  Result<std::string> rank() {
    TN_TRY(v, operand());
    Type type = v.type();
    std::string before = text_of(type);
    auto place = [&](size_t n) {
      return type.dims.begin() + static_cast<ptrdiff_t>(random.below(n));
    };
    const int64_t sizes[] = {1, 1, 2};
    if (!type.dims.empty() && random.one_in(2)) {
      type.dims.erase(place(type.rank()));
    } else {
      type.dims.insert(place(type.rank() + 1), random.one_of(sizes));
    }
    std::string said = cat(v.name(), ": ", before, " -> ", text_of(type));
    TN_CHECK(retype(edit, node, v, type, random));
    return said;
  }

  Result<std::string> dtype() {
    TN_TRY(v, operand());
    Type type = v.type();
    std::string before = text_of(type);
    type.dtype = random.one_of(kTypes);
    std::string said = cat(v.name(), ": ", before, " -> ", text_of(type));
    TN_CHECK(retype(edit, node, v, type, random));
    return said;
  }

  // All operands of one element type get another one.
  Result<std::string> dtypes() {
    TN_TRY(chosen, operand());
    uint32_t before = chosen.dtype(), after = random.one_of(kTypes);
    for (Value v : operands_of(node)) {
      Type type = v.type();
      if (type.dtype != before) continue;
      type.dtype = after;
      TN_CHECK(retype(edit, node, v, type, random));
    }
    return cat("all ", dtype_name(before), " -> ", dtype_name(after));
  }

  Result<std::string> attribute();

  Result<std::string> constant() {
    std::vector<Value> constants = operands_of(node);
    std::erase_if(constants, [](Value v) {
      return !v.is_constant() || !v.type().elements() || TN_DTYPE_BITS(v.dtype()) < 8;
    });
    if (constants.empty()) return attribute();
    Value v = random.one_of(constants);
    Type type = v.type();
    TN_TRY(tensor, Tensor::copy_of(edit.ctx(), v.constant().dl()));
    auto at = random.below(static_cast<size_t>(type.elements()));
    size_t bytes = TN_DTYPE_BITS(type.dtype) / 8;
    char* element = tensor.data<char>() + at * bytes;
    std::string said = cat("constant ", v.name(), "[", at, "] ");
    if (is_float(type.dtype) && bytes >= 4) {
      double number = other_float(random);
      auto narrow = static_cast<float>(number);
      std::memcpy(element, bytes == 8 ? static_cast<void*>(&number) : &narrow, bytes);
      said += cat("-> ", number);
    } else {
      int64_t number = 0;
      std::memcpy(&number, element, bytes);
      if (bytes == 4) number = static_cast<int32_t>(number);
      // A Loop of 2^31 steps is slow, not wrong.
      number = other_integer(number, random, (node.row()->traits & TN_OP_CONTROL) != 0);
      std::memcpy(element, &number, bytes);
      said += cat("-> ", number);
    }
    TN_TRY(changed, edit.constant(tensor));
    for (uint64_t i = 0; i < node.n_inputs(); ++i)
      if (node.input(i) == v) TN_CHECK(edit.set_input(node, i, changed));
    return said;
  }

  // As many outputs as another operator has: the node is replaced.
  Result<std::string> outputs() {
    uint64_t before = node.n_outputs(), after = random.below(before + 3);
    TN_TRY(made, edit.add({.type = node.type(),
                           .inputs = node.inputs(),
                           .attrs = attributes_of(node),
                           .n_outputs = after,
                           .domain = node.domain()}));
    node = made;
    return cat("outputs: ", before, " -> ", after);
  }

  Result<std::string> absent() {
    // A Loop without a count and a condition never ends, which is what it says.
    if (!node.n_inputs() || (node.row()->traits & TN_OP_CONTROL) != 0) return attribute();
    uint64_t i = random.below(node.n_inputs());
    TN_CHECK(edit.set_input(node, i, Value{}));
    return cat("input ", i, " is absent");
  }
};

Result<std::string> Change::attribute() {
  json rows = json::parse(view(node.row()->attributes), nullptr, false);
  if (!rows.is_array() || rows.empty()) return dimension();
  const json& row = rows[random.below(rows.size())];
  std::string name = row.value("name", ""), type = row.value("type", "");
  tn_any now = node.attr(name);
  std::vector<int64_t> ints = ints_of(now);
  std::vector<double> floats = floats_of(now);
  std::vector<std::string> words{"",       "NOTSET",  "SAME_UPPER",    "VALID",
                                 "linear", "reflect", "sum",           "tanh",
                                 "LEFT",   "reverse", "bidirectional", "no such word"};
  std::string word = random.one_of(words), said = cat("attribute ", name, ": ");
  auto set = [&](const tn_any& value, std::string_view text) -> Result<std::string> {
    TN_CHECK(edit.set_attr(node, Attr(name, value)));
    return cat(said, text);
  };
  if (random.one_in(12)) return set(tn_any{}, "left out");
  if (type == "int" || type == "bool") {
    int64_t number = other_integer(int_of(now, 1), random);
    return set(type == "int" ? any_int(number) : any_bool(number != 0), std::to_string(number));
  }
  if (type == "float") {
    double number = other_float(random);
    return set(any_float(number), std::to_string(number));
  }
  if (type == "string") return set(any_text(word), word);
  if (type == "dtype") {
    uint32_t dtype = random.one_of(kTypes);
    return set(any_dtype(dtype), dtype_name(dtype));
  }
  if (type == "ints") {
    size_t n = ints.size();
    if (n && random.one_in(4)) {
      ints.pop_back();
    } else if (!n || random.one_in(4)) {
      ints.push_back(static_cast<int64_t>(random.below(3)));
    } else {
      int64_t& element = ints[random.below(n)];
      element = other_integer(element, random);
    }
    return set(any_ints(ints), text_of(ints));
  }
  if (type == "floats") {
    if (!floats.empty() && random.one_in(3)) {
      floats.pop_back();
    } else {
      floats.insert(floats.begin() + static_cast<ptrdiff_t>(random.below(floats.size() + 1)),
                    other_float(random));
    }
    return set(any_floats(floats), cat(floats.size(), " numbers"));
  }
  return dimension();
}

// One integer that a node states.
struct Place {
  std::string attribute = {};  // or of a constant
  bool is_list = false;
  Value constant = {};
  size_t element = 0;
};

std::vector<Place> places_of(Node node) {
  constexpr int64_t kMostElements = 8;
  std::vector<Place> out;
  json rows = json::parse(view(node.row()->attributes), nullptr, false);
  for (const json& row : rows.is_array() ? rows : json::array()) {
    std::string name = row.value("name", ""), type = row.value("type", "");
    if (type == "int") out.push_back({.attribute = name});
    const size_t n = type == "ints" ? std::max<size_t>(node.attr_ints(name).size(), 1) : 0;
    for (size_t i = 0; i < n; ++i)
      out.push_back({.attribute = name, .is_list = true, .element = i});
  }
  for (Value v : operands_of(node)) {
    const bool has_integers = v.is_constant() && (v.dtype() == TN_I64 || v.dtype() == TN_I32);
    const int64_t n = has_integers ? v.type().elements() : 0;
    for (int64_t i = 0; i < n && n <= kMostElements; ++i)
      out.push_back({.constant = v, .element = static_cast<size_t>(i)});
  }
  return out;
}

Status put(EditView edit, Node node, const Place& place, int64_t number) {
  if (!place.constant) {
    if (!place.is_list) return edit.set_attr(node, Attr(place.attribute, any_int(number)));
    std::vector<int64_t> list = node.attr_ints(place.attribute);
    list.resize(std::max(list.size(), place.element + 1));
    list[place.element] = number;
    return edit.set_attr(node, Attr(place.attribute, any_ints(list)));
  }
  TN_TRY(tensor, Tensor::copy_of(edit.ctx(), place.constant.constant().dl()));
  if (place.constant.dtype() == TN_I64)
    tensor.data<int64_t>()[place.element] = number;
  else
    tensor.data<int32_t>()[place.element] = static_cast<int32_t>(number);
  TN_TRY(changed, edit.constant(tensor));
  for (uint64_t i = 0; i < node.n_inputs(); ++i)
    if (node.input(i) == place.constant) TN_CHECK(edit.set_input(node, i, changed));
  return {};
}

}  // namespace

Result<std::string> set_extreme(EditView edit, Node node, uint64_t which) {
  constexpr int64_t kEnds[] = {kMost,           -kMost - 1,       int64_t{1} << 62,
                               INT32_MAX,       INT32_MIN,        int64_t{1} << 32,
                               kMost / 2 - 100, -(kMost / 2) - 7, -1};
  std::vector<Place> places = places_of(node);
  // A Loop of 2^31 steps is slow, not wrong.
  if (places.empty() || (node.row()->traits & TN_OP_CONTROL) != 0)
    return invalid("the node states no integer");
  const Place place = places[which / std::size(kEnds) % places.size()];
  const int64_t number = kEnds[which % std::size(kEnds)];
  std::string name =
      place.constant ? cat("constant ", place.constant.name()) : cat("attribute ", place.attribute);
  TN_CHECK(put(edit, node, place, number));
  return cat(name, "[", place.element, "] -> ", number);
}

Result<Tensor> filled(tn_ctx* ctx, const Type& type, Random& random, const Tensor& repeat) {
  TN_TRY(tensor, Tensor::zeros(ctx, type.dtype, type.dims));
  size_t bits = TN_DTYPE_BITS(type.dtype), n = static_cast<size_t>(type.elements());
  char* to = tensor.data<char>();
  if (repeat && dtype_of(repeat.dl()) == type.dtype && bits >= 8 && element_count(repeat.dl())) {
    auto m = static_cast<size_t>(element_count(repeat.dl()));
    for (size_t i = 0; i < n; ++i)
      std::memcpy(to + i * (bits / 8), repeat.data<char>() + i % m * (bits / 8), bits / 8);
    return Result<Tensor>(std::move(tensor));
  }
  for (size_t i = 0; i < n && bits >= 8; ++i) {
    double x = static_cast<double>(random.below(4001)) / 1000 - 2;
    int64_t integer = std::lround(bits == 64 ? x : std::fabs(x));
    auto narrow = static_cast<float>(x);
    uint32_t half = 0;
    std::memcpy(&half, &narrow, 4);
    half >>= 16;  // bfloat16; some number of float16
    char* element = to + i * (bits / 8);
    if (type.dtype == TN_F64) std::memcpy(element, &x, 8);
    if (type.dtype == TN_F32) std::memcpy(element, &narrow, 4);
    if (is_float(type.dtype) && bits == 16) std::memcpy(element, &half, 2);
    if (type.dtype == TN_BOOL) *element = x > 0;
    uint32_t code = TN_DTYPE_CODE(type.dtype);
    if (code == kDLInt || code == kDLUInt) std::memcpy(element, &integer, bits / 8);
  }
  return Result<Tensor>(std::move(tensor));
}

void make_wild(Tensor& tensor, Random& random) {
  uint32_t dtype = dtype_of(tensor.dl());
  size_t bytes = TN_DTYPE_BITS(dtype) / 8, n = static_cast<size_t>(element_count(tensor.dl()));
  // A truth value of other bits than 0 and 1 is no tensor that anybody may make.
  if (bytes == 0 || bytes > 8 || dtype == TN_BOOL) return;
  uint64_t sign = uint64_t{1} << (8 * bytes - 1);
  uint64_t infinity = dtype == TN_F16 ? 0x7c00 : dtype == TN_BF16 ? 0x7f80 : 0x7f800000;
  if (bytes == 8) infinity = 0x7ff0000000000000;
  for (size_t i = 0; i < n; ++i) {
    if (!random.one_in(6)) continue;
    const uint64_t all[] = {0, sign, ~sign, ~uint64_t{0}, infinity, infinity | sign, random.next()};
    uint64_t bits = random.one_of(all);
    std::memcpy(tensor.data<char>() + i * bytes, &bits, bytes);
  }
}

Result<std::string> mutate(EditView edit, Node& node, Random& random) {
  Change change{edit, node, random};
  using Kind = Result<std::string> (Change::*)();
  constexpr Kind kinds[] = {&Change::dimension, &Change::dimension, &Change::dimensions,
                            &Change::rank,      &Change::dtype,     &Change::dtypes,
                            &Change::attribute, &Change::attribute, &Change::constant,
                            &Change::constant,  &Change::absent,    &Change::outputs};
  return (change.*random.one_of(kinds))();
}

}  // namespace tenon::fuzz
