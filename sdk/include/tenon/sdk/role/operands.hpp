// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a row's kernels rely on of their inputs, said in one line and checked before its shape
// column:
//
//   .shape = tenon::shape<conv_shape,
//                         "x: T[n (g c) s..], w: T[(g o) c s'..], bias: T[(g o)]? ; g = group">
//
// The host infers types when a graph is read, changed, verified and compiled for actual sizes, and
// `reference` once more for sizes that only data say: no kernel sees operands that do not fit.
//
//   T U V ...        equal capitals are equal element types
//   any float int number index stored  classes (kTypeClasses), or one element type: bool f32 i64 u8
//   float|i32        one of several
//   [n 3 (g c) s.. ] an axis, one of size 3, one of size g*c, a run of axes; equal names are equal
//                    sizes; s'.. is as long as s.. with sizes of its own, _ is any size
//   [one]            a single element of any rank; no brackets: any shape
//   ?  ...           may be absent; stands for all further inputs
//   ; g = group      g is the integer attribute `group`
//   ; T = float|bool what the capital may be; without it, anything

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/role/op.hpp"

namespace tenon {

// Element types by name. Integers of less than a byte only store quantized values.
struct TypeClass {
  std::string_view name;
  bool (*has)(uint32_t dtype);
};
constexpr bool is_whole_integer(uint32_t dtype) {
  bool is_integer = TN_DTYPE_CODE(dtype) == kDLInt || TN_DTYPE_CODE(dtype) == kDLUInt;
  return is_integer && TN_DTYPE_BITS(dtype) >= 8;
}
inline constexpr TypeClass kTypeClasses[] = {
    {"any", [](uint32_t) { return true; }},
    {"float", [](uint32_t t) { return is_float(t); }},
    {"int", [](uint32_t t) { return is_whole_integer(t); }},
    {"number", [](uint32_t t) { return is_float(t) || is_whole_integer(t); }},
    {"index", [](uint32_t t) { return t == TN_I32 || t == TN_I64; }},
    {"stored", [](uint32_t t) { return !is_float(t) && t != TN_BOOL; }},
    {"bool", [](uint32_t t) { return t == TN_BOOL; }},
    {"f32", [](uint32_t t) { return t == TN_F32; }},
    {"f64", [](uint32_t t) { return t == TN_F64; }},
    {"i64", [](uint32_t t) { return t == TN_I64; }},
    {"i32", [](uint32_t t) { return t == TN_I32; }},
    {"i8", [](uint32_t t) { return t == TN_I8; }},
    {"u8", [](uint32_t t) { return t == TN_U8; }},
};
// Whether `words`, as "float|i32", has the type; a word that is none has nothing.
inline bool has_type(std::string_view words, uint32_t dtype) {
  while (!words.empty()) {
    std::string_view word = words.substr(0, words.find('|'));
    for (const TypeClass& one : kTypeClasses)
      if (one.name == word && one.has(dtype)) return true;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return false;
}

struct AxisItem {
  std::vector<std::string> factors;  // names or numbers
  bool is_run = false, is_free = false;
};
struct OperandForm {
  std::string name, dtype;
  std::vector<AxisItem> axes;
  bool has_axes = false, is_optional = false, is_rest = false;
  std::string text;  // between the brackets
};
struct OperandForms {
  std::vector<OperandForm> operands;
  std::vector<std::pair<std::string, std::string>> binds;  // name, attribute
  std::map<std::string, std::string> capitals;             // which types a capital may be
};

OperandForms parse_operands(std::string_view text);
// Types that are not known yet agree with everything.
Status check_operands(Node node, const OperandForms& forms);
inline Status check_operands(Node node, std::string_view text) {
  return check_operands(node, parse_operands(text));
}

template <size_t kLength>
struct OperandsText {
  char text[kLength];
  constexpr OperandsText(const char (&from)[kLength]) {  // NOLINT: conversions are the point
    std::copy_n(from, kLength, text);
  }
};

template <auto F, OperandsText kText>
tn_status* shape(void* self, tn_edit* edit, tn_node_id id) {
  return guard([&]() -> Status {
    static const OperandForms forms = parse_operands(kText.text);
    EditView view{edit};
    TN_CHECK(check_operands(view.node(id), forms));
    return call_column<F>(self, view, view.node(id));
  });
}

// ---- definitions

class OperandsCheck {
 public:
  OperandsCheck(Node node, const OperandForms& forms) : node_(node), forms_(forms) {}

  Status check() {
    TN_CHECK(count());
    for (const auto& [name, attribute] : forms_.binds) {
      tn_any bound = node_.attr(attribute);
      if (bound.tag == TN_ANY_I64) sizes_[name] = {.size = bound.v.i, .attribute = &attribute};
    }
    std::vector<std::pair<uint64_t, Type>> types;
    for (uint64_t i = 0, n = node_.n_inputs(); i < n; ++i)
      if (Value input = node_.input(i)) types.emplace_back(i, input.type());
    for (int round = 0; round < 3; ++round)  // lengths of runs, then sizes, then their factors
      for (const auto& [i, type] : types)
        TN_CHECK(operand(i, type));
    return {};
  }

 private:
  struct Known {
    int64_t size = 0;
    const std::string* attribute = nullptr;  // that states it; else an axis
    uint64_t input = 0;
    size_t axis = 0;
  };

  const OperandForm& form(uint64_t i) const {
    return forms_.operands[std::min<size_t>(i, forms_.operands.size() - 1)];
  }
  std::string where(uint64_t i) const { return cat("input ", i, " (", form(i).name, "): "); }
  std::string where(uint64_t i, size_t axis) const {
    return cat("input ", i, " (", form(i).name, ") axis ", axis);
  }
  std::string origin(const Known& known) const {
    return known.attribute ? cat("attribute ", *known.attribute) : where(known.input, known.axis);
  }

  Status count() const {
    size_t n = forms_.operands.size();
    if (node_.n_inputs() > n && (n == 0 || !forms_.operands[n - 1].is_rest))
      return invalid(cat("expected at most ", n, " inputs, got ", node_.n_inputs()));
    for (size_t i = 0; i < n; ++i)
      if (!form(i).is_optional && !form(i).is_rest && !node_.input(i))
        return invalid(cat(where(i), "expected a tensor, got none"));
    return {};
  }

  Status operand(uint64_t i, const Type& type) {
    if (type.dtype != TN_DTYPE_NONE) TN_CHECK(dtype(i, type.dtype));
    if (!form(i).has_axes || !type.ranked) return {};
    if (form(i).text == "one") {
      if (!type.is_static() || type.elements() == 1) return {};
      return invalid(cat(where(i), "expected one element, got ", type.elements()));
    }
    TN_TRY(fits, lengths(i, type));
    if (!fits) return {};
    size_t axis = 0;
    for (const AxisItem& item : form(i).axes) {
      size_t n = item.is_run ? runs_[item.factors[0]] : 1;
      for (size_t k = 0; k < n; ++k, ++axis)
        if (!item.is_free && type.dims[axis] >= 0)
          TN_CHECK(size(i, axis, type.dims[axis], item, k));
    }
    return {};
  }

  // Whether the lengths of all runs are known; a rank that cannot be is refused.
  Result<bool> lengths(uint64_t i, const Type& type) {
    size_t known = 0;
    const std::string* open = nullptr;
    bool several = false;
    for (const AxisItem& item : form(i).axes) {
      auto run = item.is_run ? runs_.find(item.factors[0]) : runs_.end();
      if (item.is_run && run == runs_.end()) {
        several = several || (open && *open != item.factors[0]);
        open = &item.factors[0];
      } else {
        known += item.is_run ? run->second : 1;
      }
    }
    if (type.rank() < known || (!open && type.rank() != known))
      return invalid(cat(where(i), "expected ", open ? "at least " : "", known, " axes [",
                         form(i).text, "], got ", type.rank()));
    if (open && several) return false;
    if (open) runs_[*open] = type.rank() - known;
    return true;
  }

  Status size(uint64_t i, size_t axis, int64_t got, const AxisItem& item, size_t k) {
    int64_t product = 1;
    std::string open;
    const Known* last = nullptr;
    for (const std::string& factor : item.factors) {
      std::string name = item.is_run ? cat(factor, k) : factor;
      auto known = sizes_.find(name);
      bool is_number = std::isdigit(static_cast<unsigned char>(factor[0])) != 0;
      if (!is_number && known == sizes_.end()) {
        if (!open.empty()) return {};
        open = name;
        continue;
      }
      int64_t value = is_number ? std::stoll(factor) : known->second.size;
      if (!is_number) last = &known->second;
      if (__builtin_mul_overflow(product, value, &product)) product = -1;
    }
    const bool fits = open.empty() ? got == product
                                   : product >= 0 && (product == 0 ? got == 0 : got % product == 0);
    if (!fits)
      return invalid(cat(where(i, axis), ": expected ", open.empty() ? "" : "a multiple of ",
                         product, last ? cat(" (", origin(*last), ")") : "", ", got ", got));
    if (!open.empty() && product > 0)
      sizes_[open] = {.size = got / product, .input = i, .axis = axis};
    return {};
  }

  Status dtype(uint64_t i, uint32_t got) {
    const std::string& wanted = form(i).dtype;
    if (std::isupper(static_cast<unsigned char>(wanted[0]))) {
      if (auto words = forms_.capitals.find(wanted); words != forms_.capitals.end())
        TN_CHECK(type_in(i, words->second, got));
      auto [known, is_new] = types_.try_emplace(wanted, got, i);
      if (is_new || known->second.first == got) return {};
      return invalid(cat(where(i), "expected ", dtype_name(known->second.first), " as input ",
                         known->second.second, ", got ", dtype_name(got)));
    }
    return type_in(i, wanted, got);
  }

  Status type_in(uint64_t i, const std::string& words, uint32_t got) const {
    if (has_type(words, got)) return {};
    constexpr uint32_t kAll[] = {TN_F16, TN_BF16, TN_F32, TN_F64, TN_I8,  TN_I16, TN_I32,
                                 TN_I64, TN_U8,   TN_U16, TN_U32, TN_U64, TN_BOOL};
    std::string names;
    for (uint32_t one : kAll)
      if (has_type(words, one)) names += cat(names.empty() ? "" : ", ", dtype_name(one));
    return invalid(cat(where(i), "expected ", names, ", got ", dtype_name(got)));
  }

  Node node_;
  const OperandForms& forms_;
  std::map<std::string, Known> sizes_;                          // by name; of a run: name and index
  std::map<std::string, size_t> runs_;                          // lengths
  std::map<std::string, std::pair<uint32_t, uint64_t>> types_;  // by capital: type, input
};

inline Status check_operands(Node node, const OperandForms& forms) {
  return OperandsCheck(node, forms).check();
}

class OperandsParser {
 public:
  explicit OperandsParser(std::string_view text) : text_(text) {}
  OperandForms parse() {
    OperandForms out;
    while (!at_end() && peek() != ';') {
      out.operands.push_back(operand());
      take(',');
    }
    for (take(';'); !at_end(); take(',')) {
      std::string name = word();
      take('=');
      if (std::isupper(static_cast<unsigned char>(name[0])))
        out.capitals[name] = types();
      else
        out.binds.emplace_back(name, word());
    }
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }
  bool at_end() { return skip(), at_ >= text_.size(); }
  char peek() { return at_end() ? '\0' : text_[at_]; }
  bool take(char c) {
    bool is_there = peek() == c;
    at_ += is_there;
    return is_there;
  }
  bool take_dots(size_t n) {
    bool is_there = text_.substr(at_, n) == std::string_view("...").substr(0, n);
    at_ += is_there ? n : 0;
    return is_there;
  }
  std::string word() {
    skip();
    size_t from = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    if (at_ == from) throw std::invalid_argument(cat("operands: column ", at_ + 1));
    return std::string(text_.substr(from, at_ - from));
  }
  std::string types() {
    std::string out = word();
    while (take('|'))
      out.append("|").append(word());
    return out;
  }
  AxisItem item() {
    AxisItem out;
    if (take('(')) {
      while (!take(')'))
        out.factors.push_back(word());
      return out;
    }
    out.factors.push_back(word());
    out.is_free = out.factors[0] == "_" || take('\'');
    out.is_run = take_dots(2);
    return out;
  }
  OperandForm operand() {
    OperandForm out;
    out.name = word();
    if (!take(':')) throw std::invalid_argument(cat("operands: column ", at_ + 1));
    out.dtype = types();
    if (take('[')) {
      out.has_axes = true;
      out.text = text_.substr(at_, text_.find(']', at_) - at_);
      while (!take(']'))
        out.axes.push_back(item());
    }
    out.is_optional = take('?');
    out.is_rest = take_dots(3);
    return out;
  }
  std::string_view text_;
  size_t at_ = 0;
};

inline OperandForms parse_operands(std::string_view text) {
  return OperandsParser(text).parse();
}

}  // namespace tenon
