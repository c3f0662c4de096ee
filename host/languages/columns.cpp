// SPDX-License-Identifier: Apache-2.0
#include "languages/columns.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>

#include "languages/cursor.hpp"

namespace tenon::host {
namespace {

struct Word {
  std::string_view word;
  uint32_t value;
};
constexpr std::array kRoles{
    Word{"compute", TN_QUANT_COMPUTE},   Word{"same_scale", TN_QUANT_SAME_SCALE},
    Word{"table", TN_QUANT_TABLE},       Word{"requant", TN_QUANT_REQUANT},
    Word{"quantize", TN_QUANT_QUANTIZE}, Word{"dequantize", TN_QUANT_DEQUANTIZE},
    Word{"integer", TN_QUANT_INTEGER},
};
constexpr std::array kCategories{
    Word{"follow", TN_CAST_FOLLOW},   Word{"low", TN_CAST_LOW},
    Word{"fp32", TN_CAST_FP32},       Word{"fp32_out", TN_CAST_FP32_OUT},
    Word{"promote", TN_CAST_PROMOTE}, Word{"keep", TN_CAST_KEEP},
    Word{"banned", TN_CAST_BANNED},
};
constexpr std::array kRecompute{
    Word{"cheap", TN_RECOMPUTE_CHEAP},
    Word{"fusible", TN_RECOMPUTE_FUSIBLE},
    Word{"expensive", TN_RECOMPUTE_EXPENSIVE},
    Word{"never", TN_RECOMPUTE_NEVER},
};
// Classes of devices, named as DLPack names them; and levels of mixed precision, which have no
// table of operators but what a row says.
constexpr std::array kDevices{
    Word{"O2", 0},      Word{"O3", 0},    Word{"cpu", 0},     Word{"cuda", 0},   Word{"opencl", 0},
    Word{"vulkan", 0},  Word{"metal", 0}, Word{"rocm", 0},    Word{"oneapi", 0}, Word{"webgpu", 0},
    Word{"hexagon", 0}, Word{"maia", 0},  Word{"ext_dev", 0}, Word{"trn", 0},
};

struct Family {
  std::string_view word;
  uint32_t value;
  std::array<std::string_view, 8> keys;
};
constexpr std::array kFamilies{
    Family{"same", TN_COUPLING_SAME, {"sizes", "value", "statistics", "groups"}},
    Family{"concat", TN_COUPLING_CONCAT, {"axis"}},
    Family{"split", TN_COUPLING_SPLIT, {"axis", "sizes", "count"}},
    Family{"slice", TN_COUPLING_SLICE, {"starts", "ends", "axes", "steps"}},
    Family{"permute", TN_COUPLING_PERMUTE, {"perm"}},
    Family{"pad", TN_COUPLING_PAD, {"pads", "axes"}},
    Family{"scale", TN_COUPLING_SCALE, {"scales", "axes", "region"}},
    Family{"gather", TN_COUPLING_GATHER, {"at", "axis"}},
    Family{"reduce", TN_COUPLING_REDUCE, {"axes", "keepdims", "noop"}},
    Family{"shape", TN_COUPLING_SHAPE, {"start", "end"}},
    Family{"matrices", TN_COUPLING_MATRICES, {"a", "b", "c", "transpose_a", "transpose_b"}},
    Family{"view", TN_COUPLING_VIEW, {"sizes", "zero", "axes"}},
    Family{"attention",
           TN_COUPLING_ATTENTION,
           {"q", "k", "v", "mask", "past_key", "past_value", "q_heads", "kv_heads"}},
    Family{"recurrent", TN_COUPLING_RECURRENT, {"w", "r", "bias", "h", "c", "peepholes", "hidden"}},
    Family{"equation", TN_COUPLING_EQUATION, {"equation"}},
};

template <class Rows>
std::string one_of(const Rows& rows) {
  std::string text;
  for (const auto& row : rows)
    text.append(text.empty() ? "one of " : ", ").append(row.word);
  return text;
}

tn_str str_of(std::string_view text) {
  return {text.data(), text.size()};
}

// Reads words; the first mistake ends it, and is kept.
class ColumnParser {
 public:
  ColumnParser(std::string_view text, const ColumnScope& scope) : cursor_(text), scope_(scope) {}

  bool at_end() { return failed_ || cursor_.at_end(); }
  bool take(std::string_view token) { return !failed_ && cursor_.take(token); }
  bool failed() const { return failed_; }
  const ParseError& error() const { return error_; }

  void fail(std::string expected) {
    fail_at(cursor_.column(), std::move(expected), cursor_.describe());
  }
  void fail_at(uint32_t column, std::string expected, std::string got) {
    if (!failed_) error_ = {column, std::move(expected), std::move(got)};
    failed_ = true;
  }

  // One word of a closed list.
  template <class Rows>
  const typename Rows::value_type* word(const Rows& rows) {
    std::string_view name = cursor_.peek_name();
    auto at = std::find_if(rows.begin(), rows.end(), [&](auto& row) { return row.word == name; });
    if (failed_ || at == rows.end()) {
      fail(one_of(rows));
      return nullptr;
    }
    cursor_.take_name();
    return &*at;
  }

  int64_t number(std::string_view what) {
    std::string_view digits = failed_ ? std::string_view() : cursor_.take_digits();
    int64_t value = 0;
    auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || read.ec != std::errc{}) fail(std::string(what));
    return value;
  }

  // An input of the node; at most 62, so that a set of them is a mask.
  int64_t input() {
    uint32_t column = cursor_.column();
    int64_t value = number("the number of an input");
    int64_t n_inputs = scope_.n_inputs.value_or(63);
    if (value >= n_inputs)
      fail_at(column, std::string("an input from 0 to ").append(std::to_string(n_inputs - 1)),
              std::to_string(value));
    return value;
  }

  std::string_view attribute() {
    uint32_t column = cursor_.column();
    std::string_view name = cursor_.take_name();
    if (!scope_.has_attribute || !scope_.has_attribute(name))
      fail_at(column, "an attribute of the row", std::string("'").append(name).append("'"));
    return name;
  }

  // "1", or "transB?0:1": the first when the attribute is not 0.
  tn_quant_number axis() {
    if (failed_ || cursor_.peek_name().empty()) {
      int64_t value = number("an axis, or ATTRIBUTE?AXIS:AXIS");
      return {{}, value, value};
    }
    std::string_view name = attribute();
    if (!take("?")) fail("'?'");
    int64_t value = number("an axis");
    if (!take(":")) fail("':'");
    return {str_of(name), value, number("an axis")};
  }

  tn_coupling_key source(std::string_view key) {
    if (cursor_.starts_with_digit()) return {str_of(key), {}, input()};
    return {str_of(key), str_of(attribute()), -1};
  }
  std::string_view peek_name() { return cursor_.peek_name(); }

 private:
  TextCursor cursor_;
  const ColumnScope& scope_;
  bool failed_ = false;
  ParseError error_;
};

tn_quant_product product(ColumnParser& p) {
  tn_quant_product out{0, 0, -1, {}};
  if (!p.take("act=")) p.fail("act=INPUT");
  out.act = p.input();
  if (!p.take("weight=")) p.fail("weight=INPUT");
  out.weight = p.input();
  if (p.take("bias=")) out.bias = p.input();
  if (p.take("axis=")) out.axis = p.axis();
  return out;
}

}  // namespace

Parsed<QuantColumn> parse_quant(std::string_view text, const ColumnScope& scope) {
  ColumnParser p(text, scope);
  QuantColumn out;
  bool is_float = p.at_end() || p.peek_name() == "stored" || p.peek_name() == "rows";
  if (const Word* role = is_float ? nullptr : p.word(kRoles)) out.kind = role->value;
  if (out.kind == TN_QUANT_COMPUTE) {
    do
      out.products.push_back(product(p));
    while (p.take(","));
    if (p.take("fused")) out.flags |= TN_QUANT_FUSED;
    bool several = out.products.size() > 1;
    if (several && !out.flags) p.fail("fused: several products are more than one sum");
  }
  while (!p.at_end()) {
    if (out.rows < 0 && p.take("rows=")) {
      out.rows = p.input();
    } else if (out.stored.empty() && p.take("stored=")) {
      do {
        int64_t input = p.input();
        if (!p.take(":")) p.fail("':' and an axis");
        out.stored.push_back({input, p.axis()});
      } while (p.take(","));
    } else {
      p.fail(out.kind == TN_QUANT_COMPUTE ? "bias=, axis=, ',', fused, rows= or stored= (once each)"
                                          : "rows= or stored= (once each)");
    }
  }
  if (p.failed()) return p.error();
  return out;
}

Parsed<CastColumn> parse_cast(std::string_view text, const ColumnScope& scope) {
  ColumnParser p(text, scope);
  CastColumn out;
  while (!p.at_end()) {
    if (out.own_inputs == 0 && p.take("own=")) {
      do
        out.own_inputs |= uint64_t{1} << p.input();
      while (p.take(","));
      continue;
    }
    std::string_view name = p.peek_name();
    for (const tn_cast_rule& rule : out.rules)
      if (std::string_view(rule.device.data, rule.device.len) == name) p.fail("each device once");
    if (!p.word(kDevices)) break;
    if (!p.take("=")) p.fail("'='");
    const Word* category = p.word(kCategories);
    if (category) out.rules.push_back({str_of(name), category->value, 0});
  }
  if (p.failed()) return p.error();
  return out;
}

Parsed<uint32_t> parse_recompute(std::string_view text, bool is_cheap) {
  ColumnScope none;
  ColumnParser p(text, none);
  if (p.at_end()) return is_cheap ? TN_RECOMPUTE_CHEAP : TN_RECOMPUTE_EXPENSIVE;
  const Word* word = p.word(kRecompute);
  if (!p.at_end()) p.fail("end of text");
  if (p.failed()) return p.error();
  return word->value;
}

Parsed<CouplingColumn> parse_coupling(std::string_view text, const ColumnScope& scope) {
  ColumnParser p(text, scope);
  CouplingColumn out;
  const Family* family = p.at_end() ? nullptr : p.word(kFamilies);
  if (family) out.family = family->value;
  while (!p.at_end()) {
    std::vector<Word> left;  // keys that have not been given
    for (std::string_view key : family->keys) {
      bool given = std::any_of(out.keys.begin(), out.keys.end(), [&](const tn_coupling_key& k) {
        return std::string_view(k.key.data, k.key.len) == key;
      });
      if (!key.empty() && !given) left.push_back({key, 0});
    }
    const Word* key = left.empty() ? nullptr : p.word(left);
    if (!key) p.fail("end of text");
    if (!p.take("=")) p.fail("'='");
    if (!p.failed()) out.keys.push_back(p.source(key->word));
  }
  if (p.failed()) return p.error();
  return out;
}

tn_op_columns Columns::view() const {
  return {sizeof(tn_op_columns),
          quant.kind,
          recompute,
          coupling.family,
          quant.products.data(),
          quant.products.size(),
          quant.stored.data(),
          quant.stored.size(),
          quant.rows,
          cast.rules.data(),
          cast.rules.size(),
          cast.own_inputs,
          coupling.keys.data(),
          coupling.keys.size(),
          quant.flags};
}

}  // namespace tenon::host
