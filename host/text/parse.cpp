// SPDX-License-Identifier: Apache-2.0
// Reads the canonical text. What it makes goes through an edit, so a text that parses is a graph
// that passes the verifier.
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"
#include "text/lexer.hpp"
#include "text/text.hpp"
#include "values/dtype.hpp"

namespace tenon::host {
namespace {

constexpr int kMaxDepth = 32;

template <class T>
bool read_number(std::string_view text, T& out) {
  if (!text.empty() && text[0] == '+') return false;
  auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
  return wrong == std::errc() && end == text.data() + text.size();
}

template <class T>
bool store_number(std::string_view text, char* data) {
  T value;
  if (!read_number(text, value)) return false;
  std::memcpy(data, &value, sizeof value);
  return true;
}

struct Store {
  uint32_t dtype;
  bool (*store)(std::string_view, char*);
};
constexpr Store kStores[] = {
    {TN_F32, store_number<float>},    {TN_F64, store_number<double>},
    {TN_I8, store_number<int8_t>},    {TN_I16, store_number<int16_t>},
    {TN_I32, store_number<int32_t>},  {TN_I64, store_number<int64_t>},
    {TN_U8, store_number<uint8_t>},   {TN_U16, store_number<uint16_t>},
    {TN_U32, store_number<uint32_t>}, {TN_U64, store_number<uint64_t>},
};

struct Typed {
  std::string name;
  TypeRef type;
};

class Reader {
 public:
  Reader(tn_ctx* ctx, TextLexer& lexer, int depth) : ctx_(ctx), lex_(lexer), depth_(depth) {}

  Result<Ref<tn_graph>> graph() {
    if (depth_ > kMaxDepth) return lex_.error(cat("at most ", kMaxDepth, " graphs in each other"));
    TN_CHECK(lex_.expect("graph"));
    TN_CHECK(lex_.expect("{"));
    auto out = Ref<tn_graph>::take(new_graph(ctx_, std::make_shared<const Tables>()));
    TN_TRY(begun, begin_edit(out.get()));
    edit_ = std::move(begun);
    while (!lex_.accept("}"))
      TN_CHECK(line());
    TN_CHECK(edit_->commit());
    edit_.reset();
    return out;
  }

 private:
  using Line = Status (Reader::*)();

  Status line() {
    static constexpr std::pair<std::string_view, Line> kLines[] = {
        {"input", &Reader::input},   {"constant", &Reader::constant},
        {"output", &Reader::output}, {"function", &Reader::function},
        {"state", &Reader::state},   {"note", &Reader::note},
    };
    if (lex_.ahead("%") || lex_.ahead("=")) return node();
    for (auto [word, read] : kLines)
      if (lex_.accept(word)) return (this->*read)();
    return lex_.error("input, constant, function, output, state, note, a node or '}'");
  }

  // --- pieces ---

  Result<tn_value_id> value() {
    TN_CHECK(lex_.expect("%"));
    TN_TRY(name, lex_.name());
    tn_value_id id = edit_->tables().find_value(name);
    if (id == 0)
      return lex_.error(cat("a value that is known by now before this (not ", name, ")"));
    return id;
  }

  Result<TypeRef> type() {
    Type type;
    type.kind = lex_.accept("seq")   ? TN_KIND_SEQUENCE
                : lex_.accept("opt") ? TN_KIND_OPTIONAL
                                     : TN_KIND_TENSOR;
    std::string_view word = lex_.accept("?") ? "?" : lex_.word();
    std::optional<uint32_t> dtype = read_dtype(word);
    if (!dtype) return lex_.error("a type as f32[2, 3]");
    type.dtype = *dtype;
    TN_CHECK(lex_.expect("["));
    if (lex_.accept("*")) {
      TN_CHECK(lex_.expect("]"));
      return seal(std::move(type));
    }
    type.rank = 0;
    while (!lex_.accept("]")) {
      if (type.rank > 0) TN_CHECK(lex_.expect(","));
      if (type.rank == static_cast<uint32_t>(kMaxRank)) return lex_.error("at most 64 dimensions");
      TN_CHECK(dimension(type));
    }
    return seal(std::move(type));
  }

  Status dimension(Type& type) {
    ++type.rank;
    type.dims.push_back(TN_DIM_UNKNOWN);
    type.symbols.emplace_back();
    if (lex_.accept("?")) return {};
    if (lex_.ahead("\"")) {
      TN_TRY(symbol, lex_.quoted_text());
      type.symbols.back() = symbol;
      return {};
    }
    std::string_view text = lex_.until(",]\n\"");
    if (plain_symbol(text)) {
      type.symbols.back() = text;
    } else if (!read_number(text, type.dims.back()) || type.dims.back() < 0) {
      return lex_.error(cat("a size, a symbol or ? before this (not '", text.substr(0, 20), "')"));
    }
    return {};
  }

  Result<Typed> typed() {
    TN_CHECK(lex_.expect("%"));
    TN_TRY(name, lex_.name());
    if (edit_->tables().find_value(name) != 0)
      return lex_.error(cat("a name that is new before this (not ", name, ")"));
    TN_CHECK(lex_.expect(":"));
    TN_TRY(read, type());
    return Typed{name, read};
  }

  Result<Ref<tn_tensor>> data(const Type& type) {
    std::optional<uint64_t> bytes = size_of(type);
    bool sized = bytes && *bytes != TN_SIZE_UNKNOWN && type.kind == TN_KIND_TENSOR;
    if (!sized) return lex_.error("a constant of known type and size before this");
    if (lex_.ahead("hash") || lex_.ahead("elsewhere"))
      return lex_.error("data (this text was printed without: TN_PRINT_DATA prints all of it)");
    bool as_hex = lex_.accept("x'");
    std::string_view digits = as_hex ? lex_.until("'\n") : std::string_view();
    if (as_hex && digits.size() != 2 * *bytes)
      return lex_.error(cat(2 * *bytes, " digits of hexadecimal data before this"));
    // Checked before memory is asked for: a short text must not claim gigabytes.
    if (!as_hex && *bytes > kFewElements * 8) return lex_.error("hexadecimal data");
    TN_TRY(tensor, alloc_tensor(ctx_, type.dtype, type.dims));
    auto* out = static_cast<char*>(tensor->dl.data);
    if (!as_hex) TN_CHECK(numbers(type, out, *bytes));
    if (as_hex) TN_CHECK(hexadecimal(digits, out));
    return tensor;
  }

  Status numbers(const Type& type, char* out, uint64_t bytes) {
    TN_CHECK(lex_.expect("["));
    uint64_t width = TN_DTYPE_BITS(type.dtype) / 8;
    for (uint64_t at = 0; at < bytes; at += width) {
      if (at > 0) TN_CHECK(lex_.expect(","));
      std::string_view text = lex_.number();
      bool stored = false;
      for (const Store& store : kStores)
        if (store.dtype == type.dtype) stored = store.store(text, out + at);
      if (!stored) return lex_.error(cat("a number of type ", dtype_text(type.dtype), " before"));
    }
    return lex_.expect("]");
  }

  Status hexadecimal(std::string_view digits, char* out) {
    auto value = [](char c) {
      if (c >= '0' && c <= '9') return c - '0';
      return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      int high = value(digits[i]);
      int low = value(digits[i + 1]);
      if (high < 0 || low < 0) return lex_.error("digits 0-9 and a-f before this");
      out[i / 2] = static_cast<char>(high << 4 | low);
    }
    return lex_.expect("'");
  }

  // --- attribute values ---

  template <class T, class Read>
  Result<std::vector<T>> list(Read read) {
    std::vector<T> items;
    TN_CHECK(lex_.expect("["));
    while (!lex_.accept("]")) {
      if (!items.empty()) TN_CHECK(lex_.expect(","));
      TN_TRY(item, read());
      items.push_back(std::move(item));
    }
    return items;
  }
  template <class T>
  Result<T> number_item() {
    T out{};
    if (!read_number(lex_.number(), out)) return lex_.error("a number before this");
    return out;
  }

  Result<AnyRef> any() {
    if (lex_.ahead("\"")) {
      TN_TRY(text, lex_.quoted_text());
      return shared(Any::text(text));
    }
    if (lex_.accept("true")) return shared(Any::boolean(true));
    if (lex_.accept("false")) return shared(Any::boolean(false));
    if (lex_.accept("ints")) {
      TN_TRY(items, list<int64_t>([this] { return number_item<int64_t>(); }));
      return shared(Any::i64s(std::move(items)));
    }
    if (lex_.accept("floats")) {
      TN_TRY(items, list<double>([this] { return number_item<double>(); }));
      return shared(Any::f64s(std::move(items)));
    }
    if (lex_.accept("texts")) {
      TN_TRY(items, list<std::string>([this] { return lex_.quoted_text(); }));
      return shared(Any::texts(std::move(items)));
    }
    return object();
  }

  Result<AnyRef> object() {
    if (lex_.accept("dtype")) {
      std::optional<uint32_t> dtype = read_dtype(lex_.accept("?") ? "?" : lex_.word());
      if (!dtype) return lex_.error("a type as f32 before this");
      return own({TN_ANY_DTYPE, 0, 1, {.u = *dtype}}, "dtype");
    }
    if (lex_.accept("tensor")) {
      TN_TRY(read, type());
      TN_CHECK(lex_.expect("="));
      TN_TRY(tensor, data(*read));
      return own({TN_ANY_TENSOR, 0, 1, {.p = tensor.get()}}, "tensor");
    }
    if (lex_.ahead("graph")) {
      TN_TRY(body, Reader(ctx_, lex_, depth_ + 1).graph());
      return own({TN_ANY_GRAPH, 0, 1, {.p = body.get()}}, "graph");
    }
    std::string_view text = lex_.number();
    int64_t integer = 0;
    double real = 0;
    if (read_number(text, integer)) return shared(Any::i64(integer));
    if (read_number(text, real)) return shared(Any::f64(real));
    return lex_.error("a value before this");
  }

  static Result<AnyRef> shared(Any value) { return std::make_shared<const Any>(std::move(value)); }

  // --- lines ---

  Status input() {
    TN_TRY(read, typed());
    Result<tn_value_id> id = edit_->add_input(read.name, read.type);
    return id.status();
  }

  Status constant() {
    TN_TRY(read, typed());
    TN_CHECK(lex_.expect("="));
    TN_TRY(tensor, data(*read.type));
    Result<tn_value_id> id = edit_->add_constant(read.name, tensor.get());
    return id.status();
  }

  Status output() {
    TN_TRY(name, lex_.name());
    TN_CHECK(lex_.expect("="));
    TN_TRY(id, value());
    return edit_->add_output(name, id);
  }

  Status state() {
    TN_TRY(in, value());
    TN_CHECK(lex_.expect("->"));
    TN_TRY(out, value());
    return edit_->pair_state(in, out);
  }

  Result<std::pair<std::string, std::string>> operator_name() {
    TN_TRY(first, lex_.name());
    if (!lex_.accept(":")) return std::pair(std::string(), first);
    TN_TRY(second, lex_.name());
    return std::pair(first, second);
  }

  Status function() {
    TN_TRY(op, operator_name());
    TN_CHECK(lex_.expect("="));
    TN_TRY(body, Reader(ctx_, lex_, depth_ + 1).graph());
    Ref<tn_graph> vjp;
    if (lex_.accept("vjp")) {
      TN_TRY(read, Reader(ctx_, lex_, depth_ + 1).graph());
      vjp = read;
    }
    return edit_->add_function(op.first, op.second, body.get(), vjp.get());
  }

  Status note() {
    uint64_t id = 0;
    if (lex_.ahead("%")) {
      TN_TRY(found, value());
      id = found;
    } else if (lex_.accept("@")) {
      TN_TRY(name, lex_.name());
      const tn_node_id at = id_of(*edit_->tables().node_names, name);
      if (at == 0) return lex_.error(cat("a node that is known before this (not ", name, ")"));
      id = at;
    }
    TN_TRY(key, lex_.name());
    TN_CHECK(lex_.expect("="));
    TN_TRY(read, any());
    return edit_->set_note(id, key, read->get());
  }

  Status attributes(NodeSpec& spec) {
    if (!lex_.accept("{")) return {};
    while (!lex_.accept("}")) {
      if (!spec.attrs.empty()) TN_CHECK(lex_.expect(","));
      TN_TRY(name, lex_.name());
      TN_CHECK(lex_.expect("="));
      TN_TRY(read, any());
      TN_TRY(owned, own_attribute(*edit_, spec.domain, spec.type, name, read->get()));
      if (assign(spec.attrs, name, owned)) return lex_.error("each attribute once before this");
    }
    return {};
  }

  Status node() {
    std::vector<Typed> outputs;
    while (!lex_.accept("=")) {
      if (!outputs.empty()) TN_CHECK(lex_.expect(","));
      TN_TRY(read, typed());
      outputs.push_back(read);
    }
    TN_TRY(op, operator_name());
    NodeSpec spec{op.first, op.second, {}, {}, {}, {}, {}};
    TN_CHECK(lex_.expect("("));
    for (bool first = true; !lex_.accept(")"); first = false) {
      if (!first) TN_CHECK(lex_.expect(","));
      if (lex_.accept("_")) {
        spec.inputs.push_back(0);
        continue;
      }
      TN_TRY(id, value());
      spec.inputs.push_back(id);
    }
    TN_CHECK(attributes(spec));
    TN_CHECK(lex_.expect("@"));
    TN_TRY(name, lex_.name());
    if (edit_->tables().node_names->contains(name))
      return lex_.error("a new node name before this");
    std::string scope;
    if (lex_.accept("in")) {
      TN_TRY(text, lex_.quoted_text());
      scope = text;
    }
    spec.name = name;
    spec.scope = scope;
    for (const Typed& output : outputs)
      spec.outputs.push_back(output.name);
    TN_TRY(id, edit_->add_node(spec));
    const std::vector<tn_value_id> made = edit_->tables().nodes.find(id)->outputs;
    for (size_t i = 0; i < made.size(); ++i) {
      if (*edit_->tables().values.find(made[i])->name != outputs[i].name)
        return lex_.error("outputs of different names before this");
      if (outputs[i].type->known()) TN_CHECK(edit_->set_type(made[i], outputs[i].type));
    }
    return {};
  }

  tn_ctx* ctx_;
  TextLexer& lex_;
  int depth_;
  std::unique_ptr<tn_edit> edit_;
};

}  // namespace

Result<tn_graph*> parse_text(tn_ctx* ctx, std::string_view text) {
  TextLexer lexer(text);
  TN_TRY(graph, Reader(ctx, lexer, 0).graph());
  if (!lexer.at_end()) return lexer.error("the end");
  return graph.release();
}

}  // namespace tenon::host
