// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finding small subgraphs by patterns, whose form is that of abi/pattern.md:
//
//   Mul(x, Div(Clip(Add(x, 3), 0, 6), 6))

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/graph.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon {

// The elements of a constant as doubles (exact but for large 64-bit integers). Nothing where it is
// no constant, not on the CPU, not dense, or of a type without plain numbers.
inline std::optional<std::vector<double>> numbers_of(Value value) {
  if (!value || !value.is_constant()) return std::nullopt;
  Tensor tensor = value.constant();
  DLTensor t = tensor.dl();
  if (t.device.device_type != kDLCPU || !is_dense(t)) return std::nullopt;
  Result<std::vector<double>> numbers = numbers_as<double>(t);
  return numbers.ok() ? std::optional(std::move(*numbers)) : std::nullopt;
}

// The one element of a constant.
inline std::optional<double> scalar_of(Value value) {
  if (!value || !value.is_constant() || value.type().elements() != 1) return std::nullopt;
  std::optional<std::vector<double>> all = numbers_of(value);
  return all ? std::optional(all->front()) : std::nullopt;
}

// The elements of an integer constant.
inline std::optional<std::vector<int64_t>> constant_ints(Value value) {
  if (!value || (value.dtype() != TN_I64 && value.dtype() != TN_I32)) return std::nullopt;
  std::optional<std::vector<double>> all = numbers_of(value);
  if (!all) return std::nullopt;
  return std::vector<int64_t>(all->begin(), all->end());
}

// Equal up to how a value of this type rounds.
inline bool is_about(double value, double wanted, uint32_t dtype) {
  bool short_type = dtype == TN_F16 || dtype == TN_BF16;
  return std::abs(value - wanted) <= std::abs(wanted) * (short_type ? 4e-3 : 2e-6);
}

// Used once, by a node, and by nothing else.
inline bool is_private(Value value) {
  return value.consumer_count() == 1 && !value.is_output();
}

// The node that makes this value as its first output, when it is of this type of ONNX.
inline Node made_by(Value value, std::string_view type) {
  if (!value) return {};
  uint64_t output = 0;
  Node node = value.producer(&output);
  return node && output == 0 && node.is(type) ? node : Node{};
}

struct Match {
  std::map<std::string, Value, std::less<>> values;
  std::map<std::string, Node, std::less<>> named;
  std::vector<Node> nodes;  // all of it, the root first
  Value operator[](std::string_view name) const {
    auto found = values.find(name);
    return found == values.end() ? Value{} : found->second;
  }
  Node node(std::string_view name) const {
    auto found = named.find(name);
    return found == named.end() ? Node{} : found->second;
  }
};

class Pattern {
 public:
  static Result<Pattern> parse(std::string_view text) {
    Pattern out;
    Parser parser{text, 0, out.terms_};
    if (parser.term() >= 0 && parser.skip() == text.size() && out.terms_[0].kind == kOp) return out;
    return invalid(cat("pattern ", text, ": expected Op(...), got '", text.substr(parser.at), "'"));
  }

  std::optional<Match> match(Node root) const {
    Match found;
    if (!root || !solve({{0, root.output()}}, found)) return std::nullopt;
    return found;
  }
  // Of values, in the order of the text, each once.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Term& term : terms_)
      if ((term.kind == kAny || term.kind == kConstant) && std::ranges::count(out, term.name) == 0)
        out.push_back(term.name);
    return out;
  }
  // Whether a node of this type can be the root.
  bool may_start(std::string_view type) const { return names_type(terms_[0], type); }

 private:
  enum Kind { kOp, kAny, kConstant, kNumber, kAbsent };
  struct Term {
    Kind kind = kAny;
    std::vector<std::string> types;  // kOp
    std::string name;
    double number = 0;
    std::vector<int> inputs;
    bool open = false;
  };
  struct Goal {
    int term;
    Value value;
  };

  struct Parser {
    std::string_view text;
    size_t at;
    std::vector<Term>& terms;

    size_t skip() {
      while (at < text.size() && text[at] == ' ')
        ++at;
      return at;
    }
    bool accept(std::string_view token) {
      skip();
      if (text.substr(at, token.size()) != token) return false;
      at += token.size();
      return true;
    }
    std::string word() {
      size_t from = at;
      while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0))
        ++at;
      return std::string(text.substr(from, at - from));
    }
    // The term's index, or -1.
    int term() {
      skip();
      auto index = static_cast<int>(terms.size());
      terms.emplace_back();
      Term made;
      char first = at < text.size() ? text[at] : '\0';
      if (first == '_') {
        ++at;
        made.kind = kAbsent;
      } else if (first == '-' || (std::isdigit(static_cast<unsigned char>(first)) != 0)) {
        made.kind = kNumber;
        auto [end, wrong] =
            std::from_chars(text.data() + at, text.data() + text.size(), made.number);
        if (wrong != std::errc()) return -1;
        at = static_cast<size_t>(end - text.data());
      } else if (std::isupper(static_cast<unsigned char>(first)) != 0) {
        if (!op(made)) return -1;
      } else {
        made.kind = accept("#") ? kConstant : kAny;
        made.name = word();
        if (made.name.empty()) return -1;
      }
      terms[static_cast<size_t>(index)] = std::move(made);
      return index;
    }
    bool op(Term& made) {
      made.kind = kOp;
      do {
        made.types.push_back(word());
      } while (accept("|"));
      if (accept(":")) made.name = word();
      if (!accept("(")) return false;
      while (!accept(")")) {
        if (!made.inputs.empty() && !accept(",")) return false;
        if (accept("...")) {
          made.open = true;
          return accept(")");
        }
        int input = term();
        if (input < 0) return false;
        made.inputs.push_back(input);
      }
      return true;
    }
  };

  static bool names_type(const Term& term, std::string_view type) {
    return std::find(term.types.begin(), term.types.end(), type) != term.types.end();
  }

  static bool closed(const Match& found) {
    for (size_t i = 1; i < found.nodes.size(); ++i) {
      for (Value output : found.nodes[i].outputs()) {
        if (output.is_output()) return false;
        for (uint64_t use = 0, n = output.consumer_count(); use < n; ++use) {
          Node user = output.consumer(use);
          if (std::find(found.nodes.begin(), found.nodes.end(), user) == found.nodes.end())
            return false;
        }
      }
    }
    return true;
  }

  // Takes goals from the end; a choice is tried with all that comes after it.
  bool solve(std::vector<Goal> goals, Match& found) const {
    while (!goals.empty()) {
      Goal goal = goals.back();
      goals.pop_back();
      const Term& term = terms_[static_cast<size_t>(goal.term)];
      if (term.kind == kOp) return solve_op(term, goal.value, std::move(goals), found);
      if (!leaf(term, goal.value, found)) return false;
    }
    return closed(found);
  }

  static bool leaf(const Term& term, Value value, Match& found) {
    if (term.kind == kAbsent || !value) return term.kind == kAbsent && !value;
    if (term.kind == kNumber) {
      std::optional<double> number = scalar_of(value);
      return number && is_about(*number, term.number, value.dtype());
    }
    if (term.kind == kConstant && !value.is_constant()) return false;
    auto [bound, fresh] = found.values.emplace(term.name, value);
    return fresh || bound->second == value;
  }

  bool solve_op(const Term& term, Value value, std::vector<Goal> goals, Match& found) const {
    if (!value) return false;
    uint64_t output = 0;
    Node node = value.producer(&output);
    if (!node || output != 0 || !node.domain().empty() || !names_type(term, node.type()))
      return false;
    uint64_t given = node.n_inputs(), wanted = term.inputs.size();
    for (uint64_t i = wanted; i < given && !term.open; ++i) {
      if (node.input(i)) return false;
    }
    if (std::find(found.nodes.begin(), found.nodes.end(), node) == found.nodes.end())
      found.nodes.push_back(node);
    if (!term.name.empty()) found.named[term.name] = node;
    const tn_op* row = node.row();
    bool either = wanted == 2 && row && (row->traits & TN_OP_COMMUTATIVE) != 0;
    for (int swapped = 0; swapped <= (either ? 1 : 0); ++swapped) {
      std::vector<Goal> more = goals;
      for (uint64_t i = wanted; i-- > 0;)
        more.push_back({term.inputs[i], node.input(swapped ? 1 - i : i)});
      Match attempt = found;
      if (!solve(std::move(more), attempt)) continue;
      found = std::move(attempt);
      return true;
    }
    return false;
  }

  std::vector<Term> terms_;
};

}  // namespace tenon
