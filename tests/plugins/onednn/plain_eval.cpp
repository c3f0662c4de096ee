// SPDX-License-Identifier: Apache-2.0
#include "plain_eval.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>

#include "implementations/conv_geometry.hpp"
#include "lowering/view.hpp"

namespace tenon::onednn::test {
namespace {

using Data = std::vector<double>;
using Values = std::vector<Data>;

double element(const Value& value, int64_t i) {
  switch (value.type) {
    case ElementType::kF32:
      return static_cast<const float*>(value.data)[i];
    case ElementType::kS8:
      return static_cast<const int8_t*>(value.data)[i];
    case ElementType::kI32:
      return static_cast<const int32_t*>(value.data)[i];
    case ElementType::kI64:
      return static_cast<double>(static_cast<const int64_t*>(value.data)[i]);
    default:
      return static_cast<const uint8_t*>(value.data)[i];
  }
}

Dims index_of(int64_t flat, const Dims& dims) {
  Dims index(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    index[i] = flat % dims[i];
    flat /= dims[i];
  }
  return index;
}

// Broadcast position: index in dims -> flat position in from.
int64_t position(const Dims& index, const Dims& from) {
  int64_t flat = 0;
  size_t shift = index.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    flat = flat * from[i] + (from[i] == 1 ? 0 : index[i + shift]);
  }
  return flat;
}

struct Case {
  const Graph& graph;
  const Node& node;
  Values& values;
  const Dims& dims(int i) const { return graph.values[node.inputs[i]].dims; }
  const Data& in(int i) const { return values[node.inputs[i]]; }
  const Dims& out_dims() const { return graph.values[node.outputs[0]].dims; }
};

// Calls visit(source position or -1, kernel position) over the window of one output element.
void each_tap(const Window& w,
              const Dims& src,
              const Dims& out_index,
              const std::function<void(int64_t, int64_t)>& visit) {
  for (int64_t k = 0; k < element_count(w.kernel); ++k) {
    Dims tap = index_of(k, w.kernel);
    int64_t at = 0;
    bool inside = true;
    for (size_t i = 0; i < tap.size(); ++i) {
      int64_t x = out_index[i + 2] * w.strides[i] - w.pad_begin[i] + tap[i] * (w.dilates[i] + 1);
      inside &= x >= 0 && x < src[i + 2];
      at = at * src[i + 2] + x;
    }
    visit(inside ? at : -1, k);
  }
}

Data conv(const Case& c) {
  const Dims& src = c.dims(0);
  const Dims& w = c.dims(1);
  Window window = find_window(c.node, src, c.out_dims(), Dims(w.begin() + 2, w.end()));
  int64_t area = element_count(src) / src[0] / src[1];
  int64_t taps = element_count(window.kernel);
  int64_t per_group = w[0] / c.node.integer("group", 1);
  Data out(static_cast<size_t>(element_count(c.out_dims())));
  for (size_t o = 0; o < out.size(); ++o) {
    Dims index = index_of(static_cast<int64_t>(o), c.out_dims());
    double sum = c.node.input(2) == kNone ? 0 : c.in(2)[index[1]];
    each_tap(window, src, index, [&](int64_t at, int64_t k) {
      for (int64_t i = 0; at >= 0 && i < w[1]; ++i) {
        int64_t channel = index[1] / per_group * w[1] + i;
        sum += c.in(0)[(index[0] * src[1] + channel) * area + at] *
               c.in(1)[(index[1] * w[1] + i) * taps + k];
      }
    });
    out[o] = sum;
  }
  return out;
}

Data pool(const Case& c) {
  const Dims& src = c.dims(0);
  bool is_global = c.node.op.rfind("Global", 0) == 0;
  Dims kernel = is_global ? Dims(src.begin() + 2, src.end()) : c.node.integers("kernel_shape");
  Window window = find_window(c.node, src, c.out_dims(), kernel);
  bool is_max = c.node.op.find("Max") != std::string::npos;
  bool counts_pad = c.node.integer("count_include_pad", 0) != 0;
  int64_t area = element_count(src) / src[0] / src[1];
  Data out(static_cast<size_t>(element_count(c.out_dims())));
  for (size_t o = 0; o < out.size(); ++o) {
    Dims index = index_of(static_cast<int64_t>(o), c.out_dims());
    double most = -std::numeric_limits<double>::infinity();
    double sum = 0;
    double n = 0;
    each_tap(window, src, index, [&](int64_t at, int64_t) {
      if (at < 0) {
        n += counts_pad ? 1 : 0;
        return;
      }
      double x = c.in(0)[(index[0] * src[1] + index[1]) * area + at];
      most = std::max(most, x);
      sum += x;
      n += 1;
    });
    out[o] = is_max ? most : sum / n;
  }
  return out;
}

Data matmul(const Case& c) {
  Dims a = c.dims(0);
  Dims b = c.dims(1);
  Dims out_dims = c.out_dims();
  int64_t k_count = a.back();
  Data out(static_cast<size_t>(element_count(out_dims)));
  for (size_t o = 0; o < out.size(); ++o) {
    Dims index = index_of(static_cast<int64_t>(o), out_dims);
    Dims left = index;
    Dims right = index;
    for (int64_t k = 0; k < k_count; ++k) {
      left.back() = k;
      right[right.size() - 2] = k;
      Dims l(left.end() - static_cast<long>(a.size()), left.end());
      Dims r(right.end() - static_cast<long>(b.size()), right.end());
      out[o] += c.in(0)[position(l, a)] * c.in(1)[position(r, b)];
    }
  }
  return out;
}

double expression(const std::vector<tn_expr_node>& program, const std::vector<double>& x) {
  std::vector<double> v;
  for (const tn_expr_node& e : program) {
    switch (e.op) {
      case TN_EXPR_INPUT:
        v.push_back(x[e.a]);
        break;
      case TN_EXPR_CONST:
        v.push_back(e.imm);
        break;
      case TN_EXPR_ADD:
        v.push_back(v[e.a] + v[e.b]);
        break;
      case TN_EXPR_MUL:
        v.push_back(v[e.a] * v[e.b]);
        break;
      case TN_EXPR_MAX:
        v.push_back(std::max(v[e.a], v[e.b]));
        break;
      case TN_EXPR_SIGMOID:
        v.push_back(1 / (1 + std::exp(-v[e.a])));
        break;
      default:
        throw std::runtime_error("plain_eval: expression " + std::to_string(e.op));
    }
  }
  return v.back();
}

Data pointwise(const Case& c) {
  Data out(static_cast<size_t>(element_count(c.out_dims())));
  for (size_t o = 0; o < out.size(); ++o) {
    Dims index = index_of(static_cast<int64_t>(o), c.out_dims());
    std::vector<double> x;
    for (size_t i = 0; i < c.node.inputs.size(); ++i) {
      x.push_back(c.in(static_cast<int>(i))[position(index, c.dims(static_cast<int>(i)))]);
    }
    out[o] = expression(c.node.expr, x);
  }
  return out;
}

Data quantize(const Case& c) {
  bool is_signed = c.graph.values[c.node.outputs[0]].type == ElementType::kS8;
  Data out = c.in(0);
  for (double& x : out) {
    x = std::nearbyint(static_cast<float>(x) / static_cast<float>(c.in(1)[0])) + c.in(2)[0];
    x = std::clamp(x, is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
  }
  return out;
}

Data dequantize(const Case& c) {
  Data out = c.in(0);
  int64_t inner = 1;
  int64_t n = static_cast<int64_t>(c.in(1).size());
  int64_t axis = c.node.integer("axis", 1);
  for (size_t i = static_cast<size_t>(axis) + 1; n > 1 && i < c.dims(0).size(); ++i) {
    inner *= c.dims(0)[i];
  }
  for (size_t i = 0; i < out.size(); ++i) {
    size_t channel = n == 1 ? 0 : static_cast<size_t>(static_cast<int64_t>(i) / inner % n);
    out[i] = (out[i] - c.in(2)[channel]) * c.in(1)[channel];
  }
  return out;
}

Data transpose(const Case& c) {
  Dims perm = c.node.integers("perm");
  Data out(c.in(0).size());
  for (size_t o = 0; o < out.size(); ++o) {
    Dims index = index_of(static_cast<int64_t>(o), c.out_dims());
    Dims from(index.size());
    for (size_t i = 0; i < perm.size(); ++i)
      from[perm[i]] = index[i];
    out[o] = c.in(0)[position(from, c.dims(0))];
  }
  return out;
}

Data softmax(const Case& c) {
  Data out = c.in(0);
  size_t width = static_cast<size_t>(c.dims(0).back());
  for (size_t row = 0; row < out.size(); row += width) {
    double most = *std::max_element(&out[row], &out[row] + width);
    double sum = 0;
    for (size_t i = row; i < row + width; ++i)
      sum += out[i] = std::exp(out[i] - most);
    for (size_t i = row; i < row + width; ++i)
      out[i] /= sum;
  }
  return out;
}

Data layer_norm(const Case& c) {
  Data out = c.in(0);
  size_t width = static_cast<size_t>(c.dims(0).back());
  for (size_t row = 0; row < out.size(); row += width) {
    double mean = 0;
    double square = 0;
    for (size_t i = 0; i < width; ++i)
      mean += out[row + i] / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i)
      square += std::pow(out[row + i] - mean, 2);
    double inverse = 1 / std::sqrt(square / static_cast<double>(width) + 1e-5);
    for (size_t i = 0; i < width; ++i) {
      out[row + i] = (out[row + i] - mean) * inverse * c.in(1)[i] + c.in(2)[i];
    }
  }
  return out;
}

Data batch_norm(const Case& c) {
  Data out = c.in(0);
  const Dims& dims = c.dims(0);
  int64_t area = element_count(dims) / dims[0] / dims[1];
  for (size_t i = 0; i < out.size(); ++i) {
    size_t channel = static_cast<size_t>(static_cast<int64_t>(i) / area % dims[1]);
    double scale = c.in(1)[channel] / std::sqrt(c.in(4)[channel] + 1e-5);
    out[i] = (out[i] - c.in(3)[channel]) * scale + c.in(2)[channel];
  }
  return out;
}

Data concat(const Case& c) {
  size_t axis = static_cast<size_t>(c.node.integer("axis", 0));
  Data out(static_cast<size_t>(element_count(c.out_dims())));
  int64_t begin = 0;
  for (size_t k = 0; k < c.node.inputs.size(); ++k) {
    const Dims& dims = c.dims(static_cast<int>(k));
    for (int64_t i = 0; i < element_count(dims); ++i) {
      Dims index = index_of(i, dims);
      index[axis] += begin;
      out[position(index, c.out_dims())] = c.in(static_cast<int>(k))[i];
    }
    begin += dims[axis];
  }
  return out;
}

const std::map<std::string, Data (*)(const Case&)>& rows() {
  static const std::map<std::string, Data (*)(const Case&)> kRows = {
      {"Conv", conv},
      {"MaxPool", pool},
      {"AveragePool", pool},
      {"GlobalAveragePool", pool},
      {"MatMul", matmul},
      {"QuantizeLinear", quantize},
      {"DequantizeLinear", dequantize},
      {"Transpose", transpose},
      {"Softmax", softmax},
      {"LayerNormalization", layer_norm},
      {"BatchNormalization", batch_norm},
      {"Concat", concat},
      {"Reshape", [](const Case& c) { return c.in(0); }},
  };
  return kRows;
}

}  // namespace

Values plain_eval(const Graph& graph, const Values& inputs) {
  Values values(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.data == nullptr) continue;
    for (int64_t k = 0; k < value.count(); ++k)
      values[i].push_back(element(value, k));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    values[graph.inputs[i]] = inputs[i];
  for (const Node& node : graph.nodes) {
    auto row = rows().find(node.op);
    Case c{graph, node, values};
    values[node.outputs[0]] = row == rows().end() ? pointwise(c) : row->second(c);
  }
  return values;
}

}  // namespace tenon::onednn::test
