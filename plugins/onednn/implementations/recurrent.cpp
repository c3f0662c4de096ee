// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN by oneDNN, all directions and both layouts. ONNX and oneDNN order the gates
// differently; weights that are constants are permuted and packed once. Results are views of what
// oneDNN writes: both directions of a step side by side.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "cpu.hpp"
#include "dense.hpp"
#include "lowering/strided_copy.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
constexpr dnnl::memory::data_type kF32 = dnnl::memory::data_type::f32;

enum Input : size_t { kX, kW, kR, kB, kLengths, kH, kC, kP };

// gates[i]: ONNX's number of oneDNN's gate i.
struct Cell {
  std::string_view op;
  std::array<int64_t, 4> gates;
  int64_t n_gates;
  std::string_view activations[3];
};
constexpr Cell kCells[] = {
    {"LSTM", {0, 2, 3, 1}, 4, {"Sigmoid", "Tanh", "Tanh"}},
    {"GRU", {0, 1, 2, 0}, 3, {"Sigmoid", "Tanh", ""}},
    {"RNN", {0, 0, 0, 0}, 1, {"Tanh", "", ""}},
};
const Cell& cell_of(const Node& node) {
  return *std::find_if(std::begin(kCells), std::end(kCells),
                       [&](const Cell& cell) { return cell.op == node.op; });
}

class RecurrentBuilder {
 public:
  RecurrentBuilder(Lowering& lowering, int index)
      : lowering_(lowering),
        graph_(lowering.graph()),
        node_(graph_.nodes[index]),
        cell_(cell_of(node_)) {
    const Dims& x = graph_.values[node_.inputs[kX]].dims;
    const Dims& r = graph_.values[node_.inputs[kR]].dims;
    batch_first_ = node_.integer("layout", 0) != 0;
    steps_ = x[batch_first_ ? 1 : 0];
    batch_ = x[batch_first_ ? 0 : 1];
    width_ = x[2];
    directions_ = r[0];
    hidden_ = r[2];
    resets_after_ = node_.op == "GRU" && node_.integer("linear_before_reset", 0) != 0;
  }

  void build() {
    type_ = stored_type();
    const auto type = dnnl_type(type_);
    const Dims state_dims = {1, directions_, batch_, hidden_};
    const Desc x({steps_, batch_, width_}, type, dnnl::memory::format_tag::tnc);
    const Desc y({steps_, batch_, directions_ * hidden_}, type, dnnl::memory::format_tag::tnc);
    const Desc state(state_dims, type, dnnl::memory::format_tag::ldnc);
    const Desc cell_state(state_dims, kF32, dnnl::memory::format_tag::ldnc);
    add(DNNL_ARG_SRC_LAYER, place_of(read_x()), x);
    // oneDNN 3.2 dies of an illegal instruction on AMX tiles where a state in bf16 is left out.
    const bool has_state =
        node_.input(kH) != kNone || node_.input(kC) != kNone || type_ == ElementType::kBf16;
    if (has_state) add(DNNL_ARG_SRC_ITER, read_state(kH, type_), state);
    const bool is_lstm = node_.op == "LSTM";
    if (has_state && is_lstm)
      add(DNNL_ARG_SRC_ITER_C, read_state(kC, ElementType::kF32), cell_state);
    const Desc start = has_state ? state : Desc(), cell_start = has_state ? cell_state : Desc();
    choose_weights();
    make_bias();
    add_peephole();
    Outputs out{{.type = type_, .dims = {steps_, batch_, directions_ * hidden_}},
                {.type = type_, .dims = state_dims},
                {}};
    out.h.strides = row_major_strides(out.h.dims);
    out.y.strides = row_major_strides(out.y.dims);
    out.c = out.h;
    out.c.type = ElementType::kF32;
    out.y.buffer = lowering_.scratch(out.y.bytes());
    out.h.buffer = lowering_.scratch(out.h.bytes());
    add(DNNL_ARG_DST_LAYER, place_of(out.y), y);
    add(DNNL_ARG_DST_ITER, place_of(out.h), state);
    if (is_lstm) {
      out.c.buffer = lowering_.scratch(out.c.bytes());
      add(DNNL_ARG_DST_ITER_C, place_of(out.c), cell_state);
    }
    emit({x, start, cell_start, y, state, cell_state});
    give_views(out);
  }

 private:
  struct Outputs {
    View y, h, c;
  };
  struct Descs {
    Desc x, start, cell_start, y, state, cell_state;
  };

  // In bf16 where tiles multiply weights that are packed once; the state of an LSTM's cell stays in
  // f32. Two threads, 18 sizes: LSTM 1.02x to 3.7x as fast as in f32, GRU of 256 and more 1.3x to
  // 4x, of fewer 0.7x to 1.0x; without tiles mostly slower than f32.
  ElementType stored_type() const {
    constexpr int64_t kLeastOfOthers = 256;
    const bool are_constant = lowering_.is_constant_view(lowering_.view(node_.inputs[kW])) &&
                              lowering_.is_constant_view(lowering_.view(node_.inputs[kR]));
    const bool is_fast = computes_in_tiles() && (node_.op == "LSTM" || hidden_ >= kLeastOfOthers);
    const bool is_in_bf16 = are_constant && is_fast && node_.input(kP) == kNone;
    return is_in_bf16 ? lowering_.real_type() : ElementType::kF32;
  }

  void add(int id, const Place& place, const Desc& desc) {
    arguments_.push_back({id, place, desc});
  }

  View read_x() {
    Dims dims = graph_.values[node_.inputs[kX]].dims;
    Dims strides = batch_first_ ? Dims{width_, batch_ * width_, 1} : row_major_strides(dims);
    return lowering_.read(node_.inputs[kX], type_, strides);
  }

  Place read_state(size_t input, ElementType type) {
    if (node_.input(input) == kNone) {  // zeros, which are the same in bf16
      return lowering_.floats(
          std::vector<float>(static_cast<size_t>(directions_ * batch_ * hidden_), 0.0F));
    }
    Dims dims = graph_.values[node_.inputs[input]].dims;
    Dims strides = batch_first_ ? Dims{hidden_, batch_ * hidden_, 1} : row_major_strides(dims);
    return place_of(lowering_.read(node_.inputs[input], type, strides));
  }

  // [directions, gates * hidden, k] as oneDNN's [1, directions, k, gates, hidden], gates in its
  // order; a constant, or copied by steps.
  View gates_first(size_t input, int64_t k) {
    View src = lowering_.read_row_major(node_.inputs[input], ElementType::kF32);
    const int64_t gates = cell_.n_gates;
    View dst{.dims = {1, directions_, k, gates, hidden_}};
    dst.strides = row_major_strides(dst.dims);
    const bool is_constant = lowering_.is_constant_view(src);
    if (is_constant) {
      dst = lowering_.make_constant(ElementType::kF32, dst.dims, aligned_bytes(dst.bytes()));
    } else {
      dst.buffer = lowering_.scratch(dst.bytes());
    }
    for (int64_t gate = 0; gate < gates; ++gate) {
      View from{.buffer = src.buffer, .dims = {directions_, k, hidden_}, .offset = src.offset};
      from.strides = {gates * hidden_ * k, 1, k};
      from.offset += cell_.gates[static_cast<size_t>(gate)] * hidden_ * k;
      View to{.buffer = dst.buffer, .dims = from.dims};
      to.strides = {dst.strides[1], dst.strides[2], 1};
      to.offset = gate * hidden_;
      Step step = strided_copy(node_.name + " gates", from, to);
      if (!is_constant) {
        lowering_.add_step(std::move(step));
        continue;
      }
      const char* data = static_cast<const char*>(lowering_.constant_data(from));
      char* target = static_cast<char*>(const_cast<void*>(lowering_.constant_data(to)));
      void* pointers[] = {const_cast<char*>(data), target};
      step.kernel_function(kernels::make_context(best_level()), pointers);
    }
    return dst;
  }

  void choose_weights() {
    weights_[0] = gates_first(kW, width_);
    weights_[1] = gates_first(kR, hidden_);
    // oneDNN packs both or none: a primitive with one of them in its own form fails when it runs.
    bool are_constant =
        lowering_.is_constant_view(weights_[0]) && lowering_.is_constant_view(weights_[1]);
    for (size_t i = 0; i < 2; ++i)
      weight_descs_[i] =
          are_constant ? Desc(weights_[i].dims, dnnl_type(type_), dnnl::memory::format_tag::any)
                       : descriptor(weights_[i]);
  }

  // ONNX has a bias for the input and one for the state; oneDNN one, but for the last gate of a GRU
  // that resets after the product.
  void make_bias() {
    if (node_.input(kB) == kNone) {
      // oneDNN takes no bias, but its GRU with four of them is happier with zeros.
      std::vector<float> zeros(static_cast<size_t>(directions_ * (cell_.n_gates + 1) * hidden_),
                               0.0F);
      bias_ = lowering_.floats(zeros);
    } else {
      add_bias_step();
    }
    bias_desc_ = Desc({1, directions_, cell_.n_gates + resets_after_, hidden_}, kF32,
                      dnnl::memory::format_tag::ldgo);
    add(DNNL_ARG_BIAS, bias_, bias_desc_);
  }

  void add_bias_step() {
    View given = lowering_.read_row_major(node_.inputs[kB], ElementType::kF32);
    const int64_t gates = cell_.n_gates;
    const int64_t rows = gates + resets_after_;
    View made{.dims = {directions_, rows, hidden_}};
    made.strides = row_major_strides(made.dims);
    made.buffer = lowering_.scratch(made.bytes());
    bias_ = place_of(made);
    Step step{.name = node_.name + " bias", .kernel = "tenon:gates"};
    step.places = {place_of(given), bias_};
    step.kernel_function = [gates, rows, order = cell_.gates, d = directions_, n = hidden_,
                            last = resets_after_](const kernels::Context&,
                                                  void* const* pointers) -> const char* {
      const float* from = static_cast<const float*>(pointers[0]);
      float* to = static_cast<float*>(pointers[1]);
      for (int64_t direction = 0; direction < d; ++direction) {
        const float* w = from + direction * 2 * gates * n;
        const float* r = w + gates * n;
        for (int64_t gate = 0; gate < gates; ++gate) {
          const int64_t at = order[static_cast<size_t>(gate)] * n;
          const bool is_split = last && gate == gates - 1;
          for (int64_t i = 0; i < n; ++i)
            to[(direction * rows + gate) * n + i] = is_split ? w[at + i] : w[at + i] + r[at + i];
          if (is_split) std::copy_n(r + at, n, to + (direction * rows + gates) * n);
        }
      }
      return nullptr;
    };
    lowering_.add_step(std::move(step));
  }

  // ONNX: input, output, forget; oneDNN: input, forget, output.
  void add_peephole() {
    if (node_.input(kP) == kNone) return;
    View given = lowering_.read_row_major(node_.inputs[kP], ElementType::kF32);
    View made{.dims = {directions_, 3, hidden_}};
    made.strides = row_major_strides(made.dims);
    made.buffer = lowering_.scratch(made.bytes());
    constexpr int64_t kOrder[] = {0, 2, 1};
    for (int64_t gate = 0; gate < 3; ++gate) {
      View from{.buffer = given.buffer, .dims = {directions_, hidden_}, .offset = given.offset};
      from.strides = {3 * hidden_, 1};
      from.offset += kOrder[gate] * hidden_;
      View to{.buffer = made.buffer, .dims = from.dims, .strides = from.strides};
      to.offset = gate * hidden_;
      lowering_.add_step(strided_copy(node_.name + " peephole", from, to));
    }
    peephole_desc_ = Desc({1, directions_, 3, hidden_}, kF32, dnnl::memory::format_tag::ldgo);
    add(DNNL_ARG_WEIGHTS_PEEPHOLE, place_of(made), peephole_desc_);
  }

  template <class Primitive, class... Given>
  void emit_as(const Given&... descs) {
    typename Primitive::primitive_desc pd(lowering_.engine(), descs..., new_attr());
    const Desc chosen[] = {pd.weights_layer_desc(), pd.weights_iter_desc()};
    const int ids[] = {DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER};
    for (size_t i = 0; i < 2; ++i) {
      bool is_constant = lowering_.is_constant_view(weights_[i]);
      Place place = is_constant ? lowering_.packed(weights_[i], descriptor(weights_[i]), chosen[i])
                                : place_of(weights_[i]);
      add(ids[i], place, chosen[i]);
    }
    double flops = 2.0 * static_cast<double>(steps_ * batch_ * directions_ * cell_.n_gates *
                                             hidden_ * (width_ + hidden_));
    lowering_.add_primitive<Primitive>(node_.name, pd, std::move(arguments_), flops);
  }

  void emit(const Descs& of) {
    const auto& [x, start, cell_start, y, state, cell_state] = of;
    constexpr auto kInference = dnnl::prop_kind::forward_inference;
    const dnnl::rnn_direction way = directions_ == 2
                                        ? dnnl::rnn_direction::bidirectional_concat
                                        : (node_.text("direction", "forward") == "reverse"
                                               ? dnnl::rnn_direction::unidirectional_right2left
                                               : dnnl::rnn_direction::unidirectional_left2right);
    const Desc& w = weight_descs_[0];
    const Desc& r = weight_descs_[1];
    if (node_.op == "LSTM") {
      emit_as<dnnl::lstm_forward>(kInference, way, x, start, cell_start, w, r, peephole_desc_,
                                  bias_desc_, y, state, cell_state);
    } else if (node_.op == "RNN") {
      emit_as<dnnl::vanilla_rnn_forward>(kInference, dnnl::algorithm::eltwise_tanh, way, x, start,
                                         w, r, bias_desc_, y, state);
    } else if (resets_after_) {
      emit_as<dnnl::lbr_gru_forward>(kInference, way, x, start, w, r, bias_desc_, y, state);
    } else {
      emit_as<dnnl::gru_forward>(kInference, way, x, start, w, r, bias_desc_, y, state);
    }
  }

  void give_views(const Outputs& out) {
    auto give = [&](size_t output, View view, const Dims& strides) {
      if (output >= node_.outputs.size() || node_.outputs[output] == kNone) return;
      view.dims = graph_.values[node_.outputs[output]].dims;
      view.strides = strides;
      lowering_.set_view(node_.outputs[output], view);
    };
    const int64_t row = directions_ * hidden_;
    give(0, out.y,
         batch_first_ ? Dims{row, batch_ * row, hidden_, 1} : Dims{batch_ * row, hidden_, row, 1});
    const Dims state =
        batch_first_ ? Dims{hidden_, batch_ * hidden_, 1} : Dims{batch_ * hidden_, hidden_, 1};
    give(1, out.h, state);
    give(2, out.c, state);
  }

  Lowering& lowering_;
  const Graph& graph_;
  const Node& node_;
  const Cell& cell_;
  ElementType type_ = ElementType::kF32;  // of x, y and h
  bool batch_first_ = false;
  bool resets_after_ = false;
  int64_t steps_ = 0, batch_ = 0, width_ = 0, directions_ = 0, hidden_ = 0;
  View weights_[2];
  Desc weight_descs_[2];
  Desc bias_desc_, peephole_desc_;
  Place bias_;
  std::vector<Argument> arguments_;
};

// Constants that say the length of every sequence is that of the input.
bool are_full(const Graph& graph, const Node& node, int64_t steps) {
  if (node.input(kLengths) == kNone) return true;
  const Value& lengths = graph.values[node.inputs[kLengths]];
  if (lengths.data == nullptr || lengths.type != ElementType::kI32) return false;
  const int32_t* data = static_cast<const int32_t*>(lengths.data);
  return std::all_of(data, data + lengths.count(), [&](int32_t n) { return n == steps; });
}

}  // namespace

std::string refuse_recurrent(const Graph& graph, const Node& node) {
  for (size_t i : {kX, kW, kR, kB, kH, kC, kP}) {
    if (node.input(i) == kNone) continue;
    if (graph.values[node.inputs[i]].type != ElementType::kF32) return "only f32";
  }
  const Value& x = graph.values[node.inputs[kX]];
  if (x.dims.size() != 3 || x.count() == 0) return "only three axes that are not empty";
  if (node.find("clip") != nullptr && node.real("clip", 0) != 0) return "clip";
  if (node.integer("input_forget", 0) != 0) return "input_forget";
  if (!are_full(graph, node, x.dims[node.integer("layout", 0) != 0 ? 1 : 0])) {
    return "sequences of several lengths";
  }
  const Cell& cell = cell_of(node);
  size_t per_direction =
      static_cast<size_t>(std::count_if(std::begin(cell.activations), std::end(cell.activations),
                                        [](std::string_view name) { return !name.empty(); }));
  if (const AttributeValue* given = node.find("activations")) {
    const auto* names = std::get_if<std::vector<std::string>>(given);
    for (size_t i = 0; names != nullptr && i < names->size(); ++i) {
      if ((*names)[i] != cell.activations[i % per_direction]) return "other activations";
    }
  }
  return {};
}

void lower_recurrent(Lowering& lowering, int index) {
  RecurrentBuilder(lowering, index).build();
}

}  // namespace tenon::onednn
