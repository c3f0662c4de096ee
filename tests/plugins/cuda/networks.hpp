// SPDX-License-Identifier: Apache-2.0
#pragma once
// The networks that the GPU backend is to run whole, as graph texts. Weights are inputs: a training
// step makes states of them, and tests need no files.

#include <string>
#include <vector>

#include "tenon/sdk/status.hpp"

namespace tenon::test {

struct Network {
  std::string text;
  std::vector<std::string> weights;  // inputs that are trained
  int64_t classes = 0;
};

// Writes a graph line by line.
class NetworkText {
 public:
  using Dims = std::vector<int64_t>;

  explicit NetworkText(std::string dtype) : dtype_(std::move(dtype)) {}

  std::string input(const std::string& name, const Dims& dims, const std::string& dtype = "") {
    lines_ += cat("  input %", name, ": ", type(dims, dtype), "\n");
    return name;
  }
  std::string weight(const std::string& name, const Dims& dims) {
    weights_.push_back(name);
    return input(name, dims);
  }
  // A number or a list of them.
  std::string constant(const std::string& dtype, const Dims& dims, const std::string& numbers) {
    std::string name = cat("c", count_++);
    lines_ += cat("  constant %", name, ": ", type(dims, dtype), " = [", numbers, "]\n");
    return name;
  }
  std::string node(const std::string& op,
                   const std::vector<std::string>& inputs,
                   const Dims& dims,
                   const std::string& attributes = "") {
    std::string name = cat("v", count_++), list;
    for (const std::string& one : inputs)
      list += cat(list.empty() ? "" : ", ", one == "_" ? "" : "%", one);
    lines_ += cat("  %", name, ": ", type(dims, ""), " = ", op, "(", list, ")",
                  attributes.empty() ? "" : " {" + attributes + "}", " @", name, "\n");
    return name;
  }
  void line(const std::string& text) { lines_ += "  " + text + "\n"; }
  void output(const std::string& name, const std::string& value) {
    outputs_ += cat("  output ", name, " = %", value, "\n");
  }
  void state(const std::string& before, const std::string& after) {
    states_ += cat("  output next_", before, " = %", after, "\n");
    pairs_ += cat("  state %", before, " -> %", after, "\n");
  }
  std::string type(const Dims& dims, const std::string& dtype) const {
    std::string list;
    for (int64_t dim : dims)
      list += cat(list.empty() ? "" : ", ", dim);
    return cat(dtype.empty() ? dtype_ : dtype, "[", list, "]");
  }
  int next() { return count_++; }

  Network done(int64_t classes) const {
    return {"graph {\n" + lines_ + outputs_ + states_ + pairs_ + "}\n", weights_, classes};
  }

 private:
  std::string dtype_, lines_, outputs_, states_, pairs_;
  std::vector<std::string> weights_;
  int count_ = 0;
};

inline Network mlp(const std::string& dtype, int64_t batch, int64_t width) {
  NetworkText t(dtype);
  std::string x = t.input("x", {batch, 784});
  std::string h =
      t.node("Gemm", {x, t.weight("w0", {784, width}), t.weight("b0", {width})}, {batch, width});
  h = t.node("Relu", {h}, {batch, width});
  t.output("y",
           t.node("Gemm", {h, t.weight("w1", {width, 10}), t.weight("b1", {10})}, {batch, 10}));
  return t.done(10);
}

inline Network cnn(const std::string& dtype, int64_t batch) {
  NetworkText t(dtype);
  std::string x = t.input("x", {batch, 1, 28, 28});
  int64_t channels = 1, size = 28;
  for (int64_t width : {8, 16}) {
    std::string w = t.weight(cat("w", width), {width, channels, 3, 3});
    std::string b = t.weight(cat("b", width), {width});
    x = t.node("Conv", {x, w, b}, {batch, width, size, size}, "pads = ints [1, 1, 1, 1]");
    x = t.node("Relu", {x}, {batch, width, size, size});
    size /= 2;
    x = t.node("MaxPool", {x}, {batch, width, size, size},
               "kernel_shape = ints [2, 2], strides = ints [2, 2]");
    channels = width;
  }
  x = t.node("Flatten", {x}, {batch, 784});
  t.output("y", t.node("Gemm", {x, t.weight("w", {784, 10}), t.weight("b", {10})}, {batch, 10}));
  return t.done(10);
}

// ResNet with bottlenecks (He et al. 2015); as it is written: ResNet-50.
struct ResNet {
  std::string dtype = "f32";
  int64_t batch = 32, size = 224, width = 64, classes = 1000;
  std::vector<int> blocks = {3, 4, 6, 3};
  bool trains = false;  // BatchNormalization over the batch; else it is folded into convolutions

  Network network() const {
    NetworkText t(dtype);
    std::string x = t.input("x", {batch, 3, size, size});
    int64_t side = size, channels = 3;
    x = conv(t, x, &channels, width, 7, 2, &side, true);
    int64_t half = (side - 1) / 2 + 1;
    x = t.node("MaxPool", {x}, {batch, width, half, half},
               "kernel_shape = ints [3, 3], strides = ints [2, 2], pads = ints [1, 1, 1, 1]");
    side = half;
    for (size_t stage = 0; stage < blocks.size(); ++stage) {
      for (int i = 0; i < blocks[stage]; ++i)
        x = block(t, x, &channels, width << stage, stage > 0 && i == 0 ? 2 : 1, &side);
    }
    x = t.node("GlobalAveragePool", {x}, {batch, channels, 1, 1});
    x = t.node("Flatten", {x}, {batch, channels});
    std::string w = t.weight("w", {classes, channels}), b = t.weight("b", {classes});
    t.output("y", t.node("Gemm", {x, w, b}, {batch, classes}, "transB = 1"));
    return t.done(classes);
  }

 private:
  std::string block(NetworkText& t,
                    const std::string& x,
                    int64_t* channels,
                    int64_t inner,
                    int64_t stride,
                    int64_t* side) const {
    int64_t own = *channels, at = *side, other = *side;
    std::string shortcut = x;
    if (own != inner * 4) shortcut = conv(t, x, &own, inner * 4, 1, stride, &other, false);
    std::string y = conv(t, x, channels, inner, 1, 1, &at, true);
    y = conv(t, y, channels, inner, 3, stride, &at, true);
    y = conv(t, y, channels, inner * 4, 1, 1, &at, false);
    *side = at;
    y = t.node("Add", {y, shortcut}, {batch, inner * 4, at, at});
    return t.node("Relu", {y}, {batch, inner * 4, at, at});
  }

  std::string conv(NetworkText& t,
                   const std::string& x,
                   int64_t* channels,
                   int64_t out,
                   int64_t kernel,
                   int64_t stride,
                   int64_t* side,
                   bool has_relu) const {
    int id = t.next();
    int64_t pad = kernel / 2;
    *side = (*side - 1) / stride + 1;
    NetworkText::Dims dims{batch, out, *side, *side};
    std::string w = t.weight(cat("w", id), {out, *channels, kernel, kernel});
    std::string how = cat("strides = ints [", stride, ", ", stride, "], pads = ints [", pad, ", ",
                          pad, ", ", pad, ", ", pad, "]");
    *channels = out;
    std::string y;
    if (trains) {
      y = batch_norm(t, t.node("Conv", {x, w}, dims, how), id, dims);
    } else {
      y = t.node("Conv", {x, w, t.weight(cat("b", id), {out})}, dims, how);
    }
    return has_relu ? t.node("Relu", {y}, dims) : y;
  }

  static std::string batch_norm(NetworkText& t,
                                const std::string& x,
                                int id,
                                const NetworkText::Dims& dims) {
    NetworkText::Dims own{dims[1]};
    std::string scale = t.weight(cat("scale", id), own), bias = t.weight(cat("bias", id), own);
    std::string mean = t.input(cat("mean", id), own), variance = t.input(cat("variance", id), own);
    std::string y = cat("n", id), mean_after = cat("m", id), variance_after = cat("s", id);
    t.line(cat("%", y, ": ", t.type(dims, ""), ", %", mean_after, ": ", t.type(own, ""), ", %",
               variance_after, ": ", t.type(own, ""), " = BatchNormalization(%", x, ", %", scale,
               ", %", bias, ", %", mean, ", %", variance, ") {training_mode = 1} @", y));
    t.state(mean, mean_after);
    t.state(variance, variance_after);
    return y;
  }
};

// A transformer's encoder with a head over the mean of its tokens; as it is written: MiniLM-L6.
struct MiniLm {
  std::string dtype = "f32";
  int64_t batch = 16, length = 128, hidden = 384, heads = 12, inner = 1536, words = 30522;
  int layers = 6;
  int64_t classes = 16;
  bool has_attention = false;  // as one node
  bool has_head = true;        // else the mean of the tokens is what comes out

  Network network() const {
    NetworkText t(dtype);
    std::string ids = t.input("ids", {batch, length}, "i64");
    std::string mask = t.input("mask", {batch, 1, 1, length});
    NetworkText::Dims dims{batch, length, hidden};
    std::string x = t.node("Gather", {t.weight("words", {words, hidden}), ids}, dims);
    std::string places = t.weight("places", {length, hidden});
    x = norm(t, t.node("Add", {x, places}, dims));
    for (int i = 0; i < layers; ++i)
      x = layer(t, x, mask);
    std::string axis = t.constant("i64", {1}, "1");
    x = t.node("ReduceMean", {x, axis}, {batch, hidden}, "keepdims = 0");
    if (has_head) x = linear(t, x, {batch, hidden}, classes);
    t.output("y", x);
    return t.done(classes);
  }

 private:
  std::string linear(NetworkText& t,
                     const std::string& x,
                     NetworkText::Dims dims,
                     int64_t out) const {
    int id = t.next();
    std::string w = t.weight(cat("w", id), {dims.back(), out});
    dims.back() = out;
    std::string y = t.node("MatMul", {x, w}, dims);
    return t.node("Add", {y, t.weight(cat("b", id), {out})}, dims);
  }

  std::string norm(NetworkText& t, const std::string& x) const {
    int id = t.next();
    std::string scale = t.weight(cat("scale", id), {hidden}),
                bias = t.weight(cat("bias", id), {hidden});
    return t.node("LayerNormalization", {x, scale, bias}, {batch, length, hidden},
                  "epsilon = 1e-12");
  }

  std::string layer(NetworkText& t, const std::string& x, const std::string& mask) const {
    NetworkText::Dims dims{batch, length, hidden};
    std::string y = linear(t, attention(t, x, mask), dims, hidden);
    std::string a = norm(t, t.node("Add", {x, y}, dims));
    y = linear(t, a, dims, inner);
    y = t.node("Gelu", {y}, {batch, length, inner});
    y = linear(t, y, {batch, length, inner}, hidden);
    return norm(t, t.node("Add", {a, y}, dims));
  }

  std::string attention(NetworkText& t, const std::string& x, const std::string& mask) const {
    NetworkText::Dims dims{batch, length, hidden};
    std::string q = linear(t, x, dims, hidden), k = linear(t, x, dims, hidden);
    std::string v = linear(t, x, dims, hidden);
    if (has_attention) {
      return t.node("Attention", {q, k, v, mask}, dims,
                    cat("q_num_heads = ", heads, ", kv_num_heads = ", heads));
    }
    int64_t depth = hidden / heads;
    q = by_head(t, q, "0, 2, 1, 3");
    k = by_head(t, k, "0, 2, 3, 1");
    v = by_head(t, v, "0, 2, 1, 3");
    NetworkText::Dims scores{batch, heads, length, length};
    std::string s = t.node("MatMul", {q, k}, scores);
    std::string scale = t.constant("f32", {}, "0.1767578125");
    if (dtype != "f32") scale = t.node("Cast", {scale}, {}, "to = dtype " + dtype);
    s = t.node("Mul", {s, scale}, scores);
    s = t.node("Softmax", {t.node("Add", {s, mask}, scores)}, scores);
    std::string c = t.node("MatMul", {s, v}, {batch, heads, length, depth});
    c = t.node("Transpose", {c}, {batch, length, heads, depth}, "perm = ints [0, 2, 1, 3]");
    return t.node("Reshape", {c, t.constant("i64", {3}, cat(batch, ", ", length, ", ", hidden))},
                  dims);
  }

  std::string by_head(NetworkText& t, const std::string& x, const std::string& perm) const {
    int64_t depth = hidden / heads;
    std::string shape = t.constant("i64", {4}, cat(batch, ", ", length, ", ", heads, ", ", depth));
    std::string y = t.node("Reshape", {x, shape}, {batch, length, heads, depth});
    bool is_key = perm == "0, 2, 3, 1";
    NetworkText::Dims dims{batch, heads, is_key ? depth : length, is_key ? length : depth};
    return t.node("Transpose", {y}, dims, cat("perm = ints [", perm, "]"));
  }
};

}  // namespace tenon::test
