// SPDX-License-Identifier: Apache-2.0
// Einsum.
#include <algorithm>
#include <map>
#include <set>

#include "tenon/sdk/equation.hpp"
#include "tenon/wrapping.hpp"

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using Labels = Equation::Labels;

Status einsum_shape(EditView edit, Node node) {
  std::vector<size_t> ranks;
  for (Value value : node.inputs()) {
    if (!value.type().ranked) return set_output(edit, node, 0, unranked(value.dtype()));
    ranks.push_back(value.type().rank());
  }
  TN_TRY(equation, parse_equation(node.attr_text("equation"), ranks));
  std::map<int, Dim> sizes;
  for (size_t i = 0; i < ranks.size(); ++i) {
    Dims dims = dims_of(node.input(i).type());
    for (size_t d = 0; d < dims.size(); ++d) {
      auto [at, added] = sizes.emplace(equation.inputs[i][d], dims[d]);
      if (added) continue;
      std::optional<Dim> both = broadcast(at->second, dims[d]);
      if (!both) return invalid(cat("input ", i, " axis ", d, ": sizes of one label differ"));
      at->second = *both;
    }
  }
  Dims out;
  for (int label : equation.output)
    out.push_back(sizes.at(label));
  return set_output(edit, node, 0, node.input(0).dtype(), out);
}

// All labels with their sizes: those of the output first, then those that are summed over.
struct Space {
  std::vector<int64_t> kept, summed;
  std::vector<std::vector<int64_t>> kept_strides, summed_strides;  // by operand
};
Result<Space> space_of(const Call& call, const Equation& equation) {
  std::map<int, int64_t> sizes;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    for (size_t d = 0; d < equation.inputs[i].size(); ++d) {
      int64_t &size = sizes.emplace(equation.inputs[i][d], 1).first->second,
              here = call.shape(i)[d];
      if (size != here && size != 1 && here != 1)
        return invalid(cat("input ", i, " axis ", d, ": expected ", size, ", got ", here));
      size = size == 1 ? here : size;
    }
  }
  Space out;
  Labels summed;
  for (int label : equation.output)
    out.kept.push_back(sizes.at(label));
  for (auto [label, size] : sizes) {
    if (std::count(equation.output.begin(), equation.output.end(), label)) continue;
    summed.push_back(label);
    out.summed.push_back(size);
  }
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    std::vector<int64_t> strides = dense_strides(call.shape(i));
    auto along = [&](const Labels& labels) {
      std::vector<int64_t> steps(labels.size(), 0);
      for (size_t k = 0; k < labels.size(); ++k)
        for (size_t d = 0; d < strides.size(); ++d)  // a label that stands twice walks the diagonal
          if (equation.inputs[i][d] == labels[k] && call.shape(i)[d] != 1) steps[k] += strides[d];
      return steps;
    };
    out.kept_strides.push_back(along(equation.output));
    out.summed_strides.push_back(along(summed));
  }
  return out;
}

Status einsum_ref(const Call& call) {
  std::vector<size_t> ranks;
  for (uint64_t i = 0; i < call.n_in(); ++i) {
    ranks.push_back(call.shape(i).size());
    if (call.dtype(i) != call.dtype(0)) return invalid("expected inputs of one element type");
  }
  TN_TRY(equation, parse_equation(call.node().attr_text("equation"), ranks));
  TN_TRY(space, space_of(call, equation));
  TN_TRY(out, call.out(0, call.dtype(0), space.kept));
  return dispatch<kNumeric>(call.dtype(0), [&, &s = space, &result = out]<class T>() -> Status {
    auto body = [&](uint64_t begin, uint64_t end) {
      for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
        Odometer at(s.kept, i), over(s.summed);
        Wide<T> sum = 0;
        for (int64_t k = 0, n = element_count(s.summed); k < n; ++k, over.next()) {
          Wide<T> product = 1;
          for (size_t p = 0; p < ranks.size(); ++p)
            product = wrapping_mul(
                product, static_cast<Wide<T>>(call.data<T>(
                             p)[at.dot(s.kept_strides[p]) + over.dot(s.summed_strides[p])]));
          sum = wrapping_add(sum, product);
        }
        data_of<T>(result)[i] = static_cast<T>(sum);
      }
    };
    parallel_for(call.ctx(), static_cast<uint64_t>(element_count(result)), 16, body);
    return {};
  });
}

// A value and the labels of its axes, for the decomposition.
struct Term {
  Value value;
  Labels labels;
};
using Sizes = std::map<int, int64_t>;

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// Sums away what neither `keep` nor another operand needs.
Result<Term> reduced(EditView edit, Term term, const std::set<int>& keep) {
  std::vector<int64_t> axes;
  Labels left;
  for (size_t d = 0; d < term.labels.size(); ++d) {
    if (keep.count(term.labels[d]))
      left.push_back(term.labels[d]);
    else
      axes.push_back(static_cast<int64_t>(d));
  }
  if (axes.empty()) return term;
  TN_TRY(at, edit.ints(axes));
  TN_TRY(sum, edit.op("ReduceSum", {term.value, at}, {{"keepdims", 0}}));
  return Term{sum, left};
}

// In the order of `labels`, then with the shape given.
Result<Value> arranged(EditView edit,
                       const Term& term,
                       const Labels& labels,
                       const std::vector<int64_t>& shape) {
  std::vector<int64_t> perm;
  for (int label : labels)
    perm.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
  TN_TRY(moved, edit.op("Transpose", {term.value}, {{"perm", perm}}));
  TN_TRY(dims, edit.ints(shape));
  return edit.op("Reshape", {moved, dims}, {{"allowzero", 1}});
}

// Two terms as one MatMul: [batch, m, k] x [batch, k, n].
Result<Term> contracted(
    EditView edit, const Term& a, const Term& b, const std::set<int>& keep, const Sizes& sizes) {
  Labels batch, m, k, n;
  for (int label : a.labels)
    (!has(b.labels, label) ? m : keep.count(label) ? batch : k).push_back(label);
  for (int label : b.labels)
    if (!has(a.labels, label)) n.push_back(label);
  auto join = [](Labels x, const Labels& y, const Labels& z) {
    x.insert(x.end(), y.begin(), y.end());
    x.insert(x.end(), z.begin(), z.end());
    return x;
  };
  auto count = [&](const Labels& labels) {
    int64_t product = 1;
    for (int label : labels)
      product *= sizes.at(label);
    return product;
  };
  TN_TRY(left, arranged(edit, a, join(batch, m, k), {count(batch), count(m), count(k)}));
  TN_TRY(right, arranged(edit, b, join(batch, k, n), {count(batch), count(k), count(n)}));
  TN_TRY(product, edit.op("MatMul", {left, right}));
  Labels labels = join(batch, m, n);
  std::vector<int64_t> shape;
  for (int label : labels)
    shape.push_back(sizes.at(label));
  TN_TRY(dims, edit.ints(shape));
  TN_TRY(value, edit.op("Reshape", {product, dims}, {{"allowzero", 1}}));
  return Term{value, labels};
}

// An operand without the axes of size 1 that others stretch, and with one axis for a label that
// stands twice: of [..., n, n], laid out as [..., n*n], every (n+1)-th element.
Result<Term> plain(EditView edit, Term term, std::vector<int64_t> dims, const Sizes& sizes) {
  std::vector<int64_t> ones;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] != 1 || sizes.at(term.labels[d]) == 1) continue;
    ones.push_back(static_cast<int64_t>(d));
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(d));
    term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(d));
  }
  if (!ones.empty()) {
    TN_TRY(axes, edit.ints(ones));
    TN_TRY(squeezed, edit.op("Squeeze", {term.value, axes}));
    term.value = squeezed;
  }
  for (size_t d = 0; d < term.labels.size(); ++d) {
    int label = term.labels[d];
    auto again = std::find(term.labels.begin() + static_cast<std::ptrdiff_t>(d) + 1,
                           term.labels.end(), label);
    if (again == term.labels.end()) continue;
    auto second = static_cast<size_t>(again - term.labels.begin());
    std::vector<int64_t> perm, shape;
    Labels labels;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (k == d || k == second) continue;
      perm.push_back(static_cast<int64_t>(k));
      shape.push_back(dims[k]);
      labels.push_back(term.labels[k]);
    }
    int64_t n = dims[d], axis = static_cast<int64_t>(shape.size());
    perm.insert(perm.end(), {static_cast<int64_t>(d), static_cast<int64_t>(second)});
    shape.push_back(n * n);
    labels.push_back(label);
    TN_TRY(moved, edit.op("Transpose", {term.value}, {{"perm", perm}}));
    TN_TRY(flat, edit.ints(shape));
    TN_TRY(square, edit.op("Reshape", {moved, flat}, {{"allowzero", 1}}));
    TN_TRY(start, edit.ints({0}));
    TN_TRY(end, edit.ints({n * n}));
    TN_TRY(axes, edit.ints({axis}));
    TN_TRY(step, edit.ints({n + 1}));
    TN_TRY(diagonal, edit.op("Slice", {square, start, end, axes, step}));
    shape.back() = n;
    return plain(edit, {diagonal, labels}, shape, sizes);
  }
  return term;
}

// Left to right; static shapes.
Result<std::vector<Value>> einsum_decompose(EditView edit, Node node) {
  std::vector<size_t> ranks;
  for (Value value : node.inputs()) {
    if (!value.type().is_static()) return unsupported("decomposed only with static shapes");
    ranks.push_back(value.type().rank());
  }
  TN_TRY(equation, parse_equation(node.attr_text("equation"), ranks));
  Sizes sizes;
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t d = 0; d < ranks[i]; ++d) {
      int64_t& size = sizes.emplace(equation.inputs[i][d], 1).first->second;
      size = size == 1 ? node.input(i).type().dims[d] : size;
    }
  std::vector<Term> terms;
  for (size_t i = 0; i < ranks.size(); ++i) {
    TN_TRY(term,
           plain(edit, {node.input(i), equation.inputs[i]}, node.input(i).type().dims, sizes));
    terms.push_back(term);
  }
  auto needed = [&](size_t from) {  // by the output and the operands from `from` on
    std::set<int> out(equation.output.begin(), equation.output.end());
    for (size_t i = from; i < terms.size(); ++i)
      out.insert(terms[i].labels.begin(), terms[i].labels.end());
    return out;
  };
  Term term = terms[0];
  for (size_t i = 1; i < ranks.size(); ++i) {
    std::set<int> keep = needed(i + 1), for_a = needed(i), for_b = keep;
    for_b.insert(term.labels.begin(), term.labels.end());
    TN_TRY(a, reduced(edit, term, for_a));
    TN_TRY(b, reduced(edit, terms[i], for_b));
    TN_TRY(both, contracted(edit, a, b, keep, sizes));
    term = both;
  }
  TN_TRY(last, reduced(edit, term, needed(ranks.size())));
  std::vector<int64_t> shape;
  for (int label : equation.output)
    shape.push_back(sizes.at(label));
  TN_TRY(y, arranged(edit, last, equation.output, shape));
  return std::vector<Value>{y};
}

Result<Node> einsum_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  constexpr const char* kEquations[] = {
      "ij,jk->ik", "bij,bkj->bik", "...ij,...jk->...ik", "i,j",        "ij->ji",
      "ij->",      "ij,kj,k->i",   "bhqd,bhkd",          "iij,jk->ik", "ibb->bi"};
  std::string_view equation = kEquations[random.integer(0, 9)];
  std::string_view left = equation.substr(0, equation.find("->"));
  std::map<char, int64_t> sizes;
  std::vector<Value> inputs;
  std::vector<int64_t> dims;
  int64_t rows = random.integer(1, 3);
  for (size_t i = 0; i <= left.size(); ++i) {
    if (i == left.size() || left[i] == ',') {
      TN_TRY(x, random.input(TN_F32, dims));
      inputs.push_back(x);
      dims.clear();
    } else if (left[i] == '.') {
      dims.insert(dims.end(), {rows, 2});
      i += 2;
    } else {
      dims.push_back(sizes.emplace(left[i], random.integer(1, 4)).first->second);
    }
  }
  return edit.add({.type = "Einsum", .inputs = inputs, .attrs = {{"equation", equation}}});
}

// Every label's size once, for each operand.
OpCost einsum_cost(Node node) {
  std::vector<size_t> ranks;
  for (Value value : node.inputs()) {
    if (!value.type().is_static()) return {0, node_bytes(node)};
    ranks.push_back(value.type().rank());
  }
  auto equation = parse_equation(node.attr_text("equation"), ranks);
  if (!equation.ok()) return {0, node_bytes(node)};
  Sizes sizes;
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t d = 0; d < ranks[i]; ++d)
      sizes.emplace(equation->inputs[i][d], node.input(i).type().dims[d]);
  double flops = static_cast<double>(ranks.size());
  for (auto [label, size] : sizes)
    flops *= static_cast<double>(size);
  return {flops, node_bytes(node)};
}

constexpr tn_op kEinsum = op_row({.type = "Einsum",
                                  .since = 28,
                                  .attributes = R"([{"name": "equation", "type": "string"}])",
                                  .quant = "stored=0:1,1:1",
                                  .shape = shape<einsum_shape, "x: T...">,
                                  .decompose = decompose<einsum_decompose>,
                                  .cost = cost<einsum_cost>,
                                  .ref = ref<einsum_ref>,
                                  .sample = sample<einsum_sample>,
                                  .cast = "cpu=low cuda=low",
                                  .coupling = "equation equation=equation"});

}  // namespace

TENON_OPS(einsum, &kEinsum)

}  // namespace tenon::ops
