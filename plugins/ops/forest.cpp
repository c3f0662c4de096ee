// SPDX-License-Identifier: Apache-2.0
#include "forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "numbers.hpp"

namespace tenon::ops::forest {
namespace {

// The comparison of a level of splits, all of one mode. x, limit: as large as one another.
Value compared(Builder& b, Mode mode, Value x, Value limit) {
  constexpr const char* kOperators[] = {"LessOrEqual", "Less", "GreaterOrEqual", "Greater",
                                        "Equal"};
  if (mode == kNotEqual) return b.op("Not", {b.op("Equal", {x, limit})});
  return b.op(kOperators[mode], {x, limit});
}

// Tables over nodes, and the steps through them. Leaves lead to themselves.
class Walk {
 public:
  Walk(Builder& b, Value x, const Forest& forest) : b_(b), x_(x), forest_(forest) {
    Ints features, yes, no, modes;
    Numbers limits;
    std::vector<uint8_t> missing;
    const auto n = forest.n_leaves + std::ssize(forest.splits);
    for (int64_t node = 0; node < n; ++node) {
      const Split one = forest.is_leaf(node) ? Split{.yes = node, .no = node} : forest.split(node);
      features.push_back(one.feature);
      yes.push_back(one.yes);
      no.push_back(one.no);
      modes.push_back(one.mode);
      limits.push_back(one.limit);
      missing.push_back(one.missing_is_yes);
    }
    for (const Split& split : forest.splits) {
      modes_in_use_.insert(split.mode);
      has_missing_ = has_missing_ || split.missing_is_yes;
    }
    features_ = b.ints(features), yes_ = b.ints(yes), no_ = b.ints(no), modes_ = b.ints(modes);
    limits_ = numbers(limits, x.dtype());
    missing_ = b.take(b.edit().constant<uint8_t>(TN_BOOL, {n}, missing));
  }

  // The leaves of all trees for each row, [rows, trees].
  Value leaves(int64_t depth) {
    Value rows = b_.op("Shape", {x_}, {{"start", 0}, {"end", 1}});
    Value trees = b_.ints({std::ssize(forest_.roots)});
    Value shape = b_.op("Concat", {rows, trees}, {{"axis", 0}});
    Value node = b_.op("Expand", {b_.ints(forest_.roots), shape});
    for (int64_t level = 0; level < depth; ++level)
      node = b_.op("Where", {is_yes(node), pick(yes_, node), pick(no_, node)});
    return node;
  }
  Value numbers(const Numbers& values, uint32_t dtype) {
    const std::vector<int64_t> dims{std::ssize(values)};
    if (dtype == TN_F64) return b_.take(b_.edit().constant<double>(TN_F64, dims, values));
    const std::vector<float> narrow(values.begin(), values.end());
    return b_.take(b_.edit().constant<float>(TN_F32, dims, narrow));
  }

 private:
  Value pick(Value table, Value node) { return b_.op("Gather", {table, node}, {{"axis", 0}}); }

  Value is_yes(Value node) {
    Value x = b_.op("GatherElements", {x_, pick(features_, node)}, {{"axis", 1}});
    Value limit = pick(limits_, node), yes;
    for (Mode mode : modes_in_use_) {
      Value one = compared(b_, mode, x, limit);
      if (modes_in_use_.size() > 1)
        one = b_.op("And", {one, b_.op("Equal", {pick(modes_, node), b_.number(mode, TN_I64)})});
      yes = yes ? b_.op("Or", {yes, one}) : one;
    }
    if (!has_missing_) return yes;
    return b_.op("Or", {yes, b_.op("And", {b_.op("IsNaN", {x}), pick(missing_, node)})});
  }

  Builder& b_;
  Value x_;
  const Forest& forest_;
  std::set<Mode> modes_in_use_;
  bool has_missing_ = false;
  Value features_, yes_, no_, modes_, limits_, missing_;
};

// The deepest leaf below a node; kOpen marks nodes on the way to it.
class Depths {
 public:
  explicit Depths(const Forest& forest) : forest_(forest), known_(forest.splits.size(), kUnknown) {}

  Result<int64_t> below(int64_t root) {
    std::vector<int64_t> way{root};
    while (!way.empty()) {
      const int64_t node = way.back();
      if (forest_.is_leaf(node) || known(node) >= 0) {
        way.pop_back();
        continue;
      }
      const Split& split = forest_.split(node);
      const bool is_back = known(node) == kOpen;  // both of its children are known
      known(node) = kOpen;
      for (int64_t next : {split.yes, split.no}) {
        if (forest_.is_leaf(next) || known(next) >= 0) continue;
        if (is_back || known(next) == kOpen)
          return invalid("expected trees that end in leaves, got a cycle");
        way.push_back(next);
      }
      if (way.back() == node) known(node) = 1 + std::max(depth(split.yes), depth(split.no));
    }
    return depth(root);
  }

 private:
  static constexpr int64_t kUnknown = -1, kOpen = -2;
  int64_t& known(int64_t node) { return known_[static_cast<size_t>(node - forest_.n_leaves)]; }
  int64_t depth(int64_t node) { return forest_.is_leaf(node) ? 0 : known(node); }

  const Forest& forest_;
  std::vector<int64_t> known_;
};

}  // namespace

bool goes_yes(const Split& split, double x) {
  const auto holds = [&] {
    switch (split.mode) {
      case kLessOrEqual:
        return x <= split.limit;
      case kLess:
        return x < split.limit;
      case kGreaterOrEqual:
        return x >= split.limit;
      case kGreater:
        return x > split.limit;
      case kEqual:
        return x == split.limit;
      case kNotEqual:
        return x != split.limit;
      default:
        return std::ranges::find(split.members, x) != split.members.end();
    }
  };
  return holds() || (split.missing_is_yes && std::isnan(x));
}

Result<int64_t> depth_of(const Forest& forest) {
  Depths depths(forest);
  int64_t out = 0;
  for (int64_t root : forest.roots) {
    TN_TRY(below, depths.below(root));
    out = std::max(out, below);
  }
  return out;
}

Value sums(Builder& b, Value x, const Forest& forest) {
  Result<int64_t> depth = depth_of(forest);
  if (forest.roots.empty()) b.fail(unsupported("decomposed only with a tree"));
  if (std::ranges::find(forest.splits, kMember, &Split::mode) != forest.splits.end())
    b.fail(unsupported("decomposed only without sets of members"));
  if (!depth.ok()) {
    b.fail(std::move(depth).status());
    return {};
  }
  const uint32_t dtype = x.dtype();
  const bool is_extreme = forest.how == kMin || forest.how == kMax;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double absent = !is_extreme ? 0 : forest.how == kMin ? kInf : -kInf;
  Numbers table(static_cast<size_t>(forest.n_leaves * forest.n_targets), absent);
  for (const Weight& weight : forest.weights) {
    double& at = table[static_cast<size_t>(weight.leaf * forest.n_targets + weight.target)];
    at = forest.how == kMin   ? std::min(at, weight.number)
         : forest.how == kMax ? std::max(at, weight.number)
                              : at + weight.number;
  }
  Walk walk(b, x, forest);
  Value weights = b.reshape(walk.numbers(table, dtype), {forest.n_leaves, forest.n_targets});
  Value all = b.op("Gather", {weights, walk.leaves(*depth)}, {{"axis", 0}});
  const char* how = forest.how == kMin       ? "ReduceMin"
                    : forest.how == kMax     ? "ReduceMax"
                    : forest.how == kAverage ? "ReduceMean"
                                             : "ReduceSum";
  Value y = b.op(how, {all, b.ints({1})}, {{"keepdims", 0}});
  if (!is_extreme) return y;
  return b.op("Where", {b.op("IsInf", {y}), b.number(0, dtype), y});  // no leaf has this target
}

Numbers tensor_numbers(Node node, std::string_view name) {
  tn_any any = node.attr(name);
  Numbers out;
  if (any.tag != TN_ANY_TENSOR) return out;
  Tensor tensor = Tensor::share(static_cast<tn_tensor*>(const_cast<void*>(any.v.p)));
  DLTensor dl = tensor.dl();
  for (int64_t i = 0; i < element_count(dl); ++i)
    out.push_back(load_number(data_of<char>(dl), dtype_of(dl), i));
  return out;
}

}  // namespace tenon::ops::forest
