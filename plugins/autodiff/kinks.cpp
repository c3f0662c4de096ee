// SPDX-License-Identifier: Apache-2.0
#include "kinks.hpp"

#include <algorithm>

namespace tenon::autodiff {
namespace {

bool is_kink(uint32_t op) {
  return op == TN_EXPR_ABS || op == TN_EXPR_MIN || op == TN_EXPR_MAX;
}
bool is_in(uint32_t op, std::initializer_list<uint32_t> list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}
// Their slope is 0 wherever it is.
bool is_step(uint32_t op) {
  return op == TN_EXPR_SIGN || (op >= TN_EXPR_FLOOR && op <= TN_EXPR_ISINF) ||
         (op >= TN_EXPR_EQ && op <= TN_EXPR_XOR);
}
bool only_grows(uint32_t op) {
  return is_in(op, {TN_EXPR_EXP, TN_EXPR_EXPM1, TN_EXPR_LOG, TN_EXPR_LOG1P, TN_EXPR_SQRT,
                    TN_EXPR_ERF, TN_EXPR_TANH, TN_EXPR_SIGMOID, TN_EXPR_ASIN, TN_EXPR_ATAN,
                    TN_EXPR_SINH, TN_EXPR_ASINH, TN_EXPR_ACOSH, TN_EXPR_ATANH});
}

// The number that a min or max compares the rest with.
struct Limit {
  double at;
  uint32_t rest;
};
std::optional<Limit> limit_of(const tn_expr_program& program, const tn_expr_node& n) {
  if (n.op != TN_EXPR_MIN && n.op != TN_EXPR_MAX) return {};
  const tn_expr_node &a = program.nodes[n.a], &b = program.nodes[n.b];
  if (a.op == TN_EXPR_CONST) return Limit{a.imm, n.b};
  if (b.op == TN_EXPR_CONST) return Limit{b.imm, n.a};
  return {};
}

// max(0, min(1, x)): two kinks that are never in one place.
bool clips(const tn_expr_program& program,
           const tn_expr_node& n,
           const std::vector<bool>& has_kinks) {
  std::optional<Limit> outer = limit_of(program, n);
  if (!outer) return false;
  std::optional<Limit> inner = limit_of(program, program.nodes[outer->rest]);
  return inner && inner->at != outer->at && !has_kinks[inner->rest];
}

// How a part goes when one input grows.
enum class Course { stays, grows, falls, unknown };

Course opposite(Course c) {
  return c == Course::grows ? Course::falls : c == Course::falls ? Course::grows : c;
}
Course together(Course a, Course b) {
  if (a == Course::stays || a == b) return b;
  return b == Course::stays ? a : Course::unknown;
}
Course scaled(Course c, double by) {
  return by == 0 ? Course::stays : by < 0 ? opposite(c) : c;
}

std::vector<Course> courses_of(const tn_expr_program& program, uint64_t input) {
  std::vector<Course> out(program.count, Course::stays);
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& n = program.nodes[i];
    if (n.op == TN_EXPR_CONST) continue;
    if (n.op == TN_EXPR_INPUT) {
      if (n.a == input) out[i] = Course::grows;
      continue;
    }
    const Course a = out[n.a], b = n.op >= TN_EXPR_ADD ? out[n.b] : Course::stays,
                 c = n.op == TN_EXPR_SELECT ? out[n.c] : Course::stays;
    const tn_expr_node &left = program.nodes[n.a], &right = program.nodes[n.b];
    if (n.op == TN_EXPR_NEG)
      out[i] = opposite(a);
    else if (n.op == TN_EXPR_ADD || n.op == TN_EXPR_MIN || n.op == TN_EXPR_MAX)
      out[i] = together(a, b);
    else if (n.op == TN_EXPR_SUB)
      out[i] = together(a, opposite(b));
    else if (n.op == TN_EXPR_MUL && left.op == TN_EXPR_CONST)
      out[i] = scaled(b, left.imm);
    else if ((n.op == TN_EXPR_MUL || n.op == TN_EXPR_DIV) && right.op == TN_EXPR_CONST)
      out[i] = scaled(a, right.imm);
    else if (only_grows(n.op))
      out[i] = a;
    else if (a != Course::stays || b != Course::stays || c != Course::stays)
      out[i] = Course::unknown;
  }
  return out;
}

// Goes through a program and writes it again with choices for kinks.
class Rewriting {
 public:
  explicit Rewriting(const tn_expr_program& program) : program_(program), at_(program.count) {}

  void keep(uint64_t i) {
    tn_expr_node n = program_.nodes[i];
    if (n.op >= TN_EXPR_NEG) {
      n.a = at_[n.a];
      if (n.op >= TN_EXPR_ADD) n.b = at_[n.b];
      if (n.op == TN_EXPR_SELECT) n.c = at_[n.c];
    }
    at_[i] = add(n);
  }
  // Of equal operands that one is taken which is right when a - b grows, or falls.
  void choose(uint64_t i, bool grows) {
    const tn_expr_node& n = program_.nodes[i];
    uint32_t a = at_[n.a], b = n.op == TN_EXPR_ABS ? add(TN_EXPR_CONST, 0) : at_[n.b];
    uint32_t compare =
        n.op == TN_EXPR_MIN ? (grows ? TN_EXPR_LT : TN_EXPR_LE) : (grows ? TN_EXPR_GE : TN_EXPR_GT);
    uint32_t is_first = add(compare, a, b);
    uint32_t other = n.op == TN_EXPR_ABS ? add(TN_EXPR_NEG, a) : b;
    at_[i] = add(TN_EXPR_SELECT, is_first, a, other);
  }
  ExprNodes take() { return std::move(nodes_); }

 private:
  uint32_t add(uint32_t op, uint32_t a, uint32_t b = 0, uint32_t c = 0) {
    return add(tn_expr_node{op, a, b, c, 0});
  }
  uint32_t add(const tn_expr_node& n) {
    nodes_.push_back(n);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  const tn_expr_program& program_;
  std::vector<uint32_t> at_;
  ExprNodes nodes_;
};

}  // namespace

bool bends_at_kinks(const tn_expr_program& program) {
  std::vector<bool> has_kinks(program.count, false);
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& n = program.nodes[i];
    if (n.op < TN_EXPR_NEG || is_step(n.op)) continue;
    bool a = has_kinks[n.a], b = n.op >= TN_EXPR_ADD && has_kinks[n.b];
    bool c = n.op == TN_EXPR_SELECT && has_kinks[n.c];
    if (is_kink(n.op)) {
      if ((a || b) && !clips(program, n, has_kinks)) return true;
      has_kinks[i] = true;
    } else if (n.op == TN_EXPR_SELECT) {
      has_kinks[i] = b || c;
    } else if (is_in(n.op, {TN_EXPR_NEG, TN_EXPR_ADD, TN_EXPR_SUB})) {
      has_kinks[i] = a || b;
    } else if (n.op == TN_EXPR_MUL) {
      if (a && b) return true;
      has_kinks[i] = a || b;
    } else if (is_in(n.op, {TN_EXPR_DIV, TN_EXPR_MOD, TN_EXPR_FMOD})) {
      if (b) return true;
      has_kinks[i] = a;
    } else if (a || b) {
      return true;
    }
  }
  return false;
}

std::optional<std::array<ExprNodes, 2>> beside_kinks(const tn_expr_program& program,
                                                     uint64_t input) {
  const std::vector<Course> courses = courses_of(program, input);
  std::array<Rewriting, 2> sides = {Rewriting(program), Rewriting(program)};
  bool is_any = false;
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& n = program.nodes[i];
    Course course = Course::stays;
    if (n.op == TN_EXPR_ABS) course = courses[n.a];
    if (n.op == TN_EXPR_MIN || n.op == TN_EXPR_MAX)
      course = together(courses[n.a], opposite(courses[n.b]));
    bool is_known = course == Course::grows || course == Course::falls;
    is_any |= is_known;
    for (size_t side = 0; side < 2; ++side)
      if (is_known)
        sides[side].choose(i, (course == Course::grows) == (side == 0));
      else
        sides[side].keep(i);
  }
  if (!is_any) return {};
  return std::array{sides[0].take(), sides[1].take()};
}

}  // namespace tenon::autodiff
