// SPDX-License-Identifier: Apache-2.0
// Heads of attention where queries, keys and values are one product, and units of recurrent layers.
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;

using Ints = std::vector<int64_t>;

class Sequences : public PruningTest {
 protected:
  Value ints(EditView edit, const Ints& numbers) { return *edit.ints(numbers); }
  Value reshape(EditView edit, Value x, const Ints& shape, std::string_view name) {
    return node(edit, "Reshape", {x, ints(edit, shape)}, name);
  }
  Value turn(EditView edit, Value x, const Ints& perm, std::string_view name) {
    return node(edit, "Transpose", {x}, name, {{"perm", perm}});
  }
  // Scores, probabilities and their product with the values, of [batch, heads, length, size].
  Value attend(EditView edit, Value q, Value k, Value v) {
    Value scores = node(edit, "MatMul", {q, turn(edit, k, {0, 1, 3, 2}, "transposed")}, "scores");
    Value shares = node(edit, "Softmax", {scores}, "shares", {{"axis", -1}});
    return node(edit, "MatMul", {shares, v}, "mixed");
  }
  void join_heads(EditView edit, Value y, int64_t length, int64_t width) {
    Value whole = reshape(edit, turn(edit, y, {0, 2, 1, 3}, "back"), {-1, length, width}, "whole");
    ASSERT_EQ(text_of(edit.output("y", product(edit, whole, "out", width, 8))), "");
  }
  int64_t channels(std::string_view layer) {
    const json found = group(layer);
    return found.is_object() ? found["channels"].get<int64_t>() : 0;
  }
};

// One product for queries, keys and values, [.., 3, heads, size]: thirds are selected, heads go.
TEST_F(Sequences, HeadsGoWhereOneProductIsSelectedFrom) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 5, 8});
    Value cut = reshape(edit, product(edit, x, "qkv", 8, 72), {-1, 5, 3, 6, 4}, "cut");
    Value parts = turn(edit, cut, {2, 0, 3, 1, 4}, "parts");
    auto third = [&](int64_t i) {
      auto at = edit.constant<int64_t>(TN_I64, {}, {i}, cat("at", i));
      return node(edit, "Gather", {parts, *at}, cat("third", i), {{"axis", 0}});
    };
    join_heads(edit, attend(edit, third(0), third(1), third(2)), 5, 24);
  });

  expect_pruned_equals_masked({2, 5, 8});

  EXPECT_EQ(channels("qkv.matmul"), 6);
  EXPECT_EQ(shape_of_value("qkv.w"), (Ints{8, 36}));
  EXPECT_EQ(shape_of_value("out.w"), (Ints{12, 8}));
}

TEST_F(Sequences, HeadsGoWhereOneProductIsSplit) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 5, 8});
    Value cut = reshape(edit, product(edit, x, "qkv", 8, 72), {-1, 5, 3, 6, 4}, "cut");
    Value transposed = turn(edit, cut, {2, 0, 3, 1, 4}, "parts");
    auto parts = edit.add({.type = "Split",
                           .inputs = {transposed, ints(edit, {1, 1, 1})},
                           .attrs = {{"axis", 0}},
                           .n_outputs = 3,
                           .name = "split"});
    auto third = [&](uint64_t i) {
      return node(edit, "Squeeze", {parts->output(i), ints(edit, {0})}, cat("third", i));
    };
    join_heads(edit, attend(edit, third(0), third(1), third(2)), 5, 24);
  });

  expect_pruned_equals_masked({2, 5, 8});

  EXPECT_EQ(channels("qkv.matmul"), 6);
  EXPECT_EQ(shape_of_value("qkv.w"), (Ints{8, 36}));
}

// [.., heads, 3 * size], as Megatron packs them: heads are the outermost factor already.
TEST_F(Sequences, HeadsGoWhereEachHasItsOwnThirds) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 5, 8});
    Value cut = reshape(edit, product(edit, x, "qkv", 8, 72), {-1, 5, 6, 12}, "cut");
    Value transposed = turn(edit, cut, {0, 2, 1, 3}, "parts");
    auto parts = edit.add({.type = "Split",
                           .inputs = {transposed, ints(edit, {4, 4, 4})},
                           .attrs = {{"axis", 3}},
                           .n_outputs = 3,
                           .name = "split"});
    join_heads(edit, attend(edit, parts->output(0), parts->output(1), parts->output(2)), 5, 24);
  });

  expect_pruned_equals_masked({2, 5, 8});

  EXPECT_EQ(channels("qkv.matmul"), 6);
}

// As GPT-2's layers with an open batch and length: rows of a matrix, which get their two sizes
// back.
TEST_F(Sequences, ChannelsGoThroughAViewWhoseOtherSizesAreComputed) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, -1, 8});
    Value sizes = node(edit, "Shape", {x}, "sizes");
    auto viewed = [&](Value rows, int64_t width, const std::string& name) {
      std::vector<Value> parts;
      for (int64_t axis : {0, 1})
        parts.push_back(
            node(edit, "Gather", {sizes, ints(edit, {axis})}, cat(name, ".size", axis)));
      parts.push_back(ints(edit, {width}));
      Value shape = node(edit, "Concat", parts, name + ".shape", {{"axis", 0}});
      return node(edit, "Reshape", {rows, shape}, name);
    };
    Value rows = reshape(edit, x, {-1, 8}, "rows");
    Value wide = viewed(relu(edit, product(edit, rows, "up", 8, 24), "relu"), 24, "wide");
    ASSERT_EQ(text_of(edit.output("y", product(edit, wide, "down", 24, 8))), "");
  });

  expect_pruned_equals_masked({2, 5, 8});

  EXPECT_EQ(channels("up.matmul"), 24);
}

// As LeViT's normalizations of rows: what comes out is given the sizes of what went in.
TEST_F(Sequences, ChannelsGoThroughAViewThatIsGivenTheSizesOfAnotherValue) {
  build([&](EditView edit) {
    Value up = product(edit, input(edit, "x", {-1, -1, 8}), "up", 8, 24);
    Value rows = relu(edit, reshape(edit, up, {-1, 24}, "rows"), "relu");
    Value wide = node(edit, "Reshape", {rows, node(edit, "Shape", {up}, "sizes")}, "wide");
    ASSERT_EQ(text_of(edit.output("y", product(edit, wide, "down", 24, 8))), "");
  });

  expect_pruned_equals_masked({2, 5, 8});

  EXPECT_EQ(channels("up.matmul"), 24);
}

// As exporters flatten images: batch and channels are read and handed on.
TEST_F(Sequences, ChannelsGoThroughAViewThatIsGivenTheirNumber) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 3, 6, 6});
    Value wide = relu(edit, conv(edit, x, "wide", {24, 3, 1, 1}), "wr");
    Value sizes = node(edit, "Shape", {wide}, "sizes");
    Value first =
        node(edit, "Slice", {sizes, ints(edit, {0}), ints(edit, {2}), ints(edit, {0})}, "first");
    Value shape = node(edit, "Concat", {first, ints(edit, {-1})}, "shape", {{"axis", 0}});
    Value flat = node(edit, "Reshape", {wide, shape}, "flat");
    Value rows = turn(edit, flat, {0, 2, 1}, "rows");
    ASSERT_EQ(text_of(edit.output("y", product(edit, rows, "down", 24, 8))), "");
  });

  expect_pruned_equals_masked({2, 3, 6, 6});

  EXPECT_EQ(channels("wide"), 24);
}

// A size that is computed with counts on what it was.
TEST_F(Sequences, ChannelsStayWhoseNumberIsComputedWith) {
  build([&](EditView edit) {
    Value up = product(edit, input(edit, "x", {-1, -1, 8}), "up", 8, 24);
    Value sizes = node(edit, "Shape", {up}, "sizes");
    auto read = [&](int64_t axis) {
      return node(edit, "Gather", {sizes, ints(edit, {axis})}, cat("size", axis));
    };
    Value half = node(edit, "Div", {read(2), ints(edit, {2})}, "half");
    Value shape =
        node(edit, "Concat", {read(0), read(1), ints(edit, {2}), half}, "shape", {{"axis", 0}});
    Value pairs = node(edit, "Reshape", {up, shape}, "pairs");
    Value summed = node(edit, "ReduceSum", {pairs, ints(edit, {2})}, "summed", {{"keepdims", 0}});
    ASSERT_EQ(text_of(edit.output("y", product(edit, summed, "down", 12, 8))), "");
  });

  ASSERT_EQ(apply("pruner.explain", json::object()), "");

  EXPECT_TRUE(report_["groups"].empty());
  EXPECT_THAT(barrier("up.matmul"), testing::HasSubstr("sizes (Shape) reads its size"));
}

TEST_F(Sequences, ChannelsThatAreShuffledGoWithTheirCounterparts) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 3, 6, 6});
    Value wide = relu(edit, conv(edit, x, "wide", {12, 3, 1, 1}), "wr");
    Value split = reshape(edit, wide, {2, 2, 6, 6, 6}, "split");
    Value mixed =
        reshape(edit, turn(edit, split, {0, 2, 1, 3, 4}, "transposed"), {2, 12, 6, 6}, "mix");
    classify(edit, relu(edit, conv(edit, mixed, "next", {12, 12, 1, 1}), "nr"), 12);
  });

  expect_pruned_equals_masked({2, 3, 6, 6});

  EXPECT_EQ(channels("wide"), 6);
}

// Of an Attention node: three axes, and four key heads that two query heads share each.
TEST_F(Sequences, HeadsOfANodeGoWithThoseThatShareThem) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 5, 8});
    Value y = node(
        edit, "Attention",
        {product(edit, x, "q", 8, 32), product(edit, x, "k", 8, 16), product(edit, x, "v", 8, 24)},
        "attention", {{"q_num_heads", 8}, {"kv_num_heads", 4}});
    ASSERT_EQ(text_of(edit.output("y", product(edit, y, "out", 48, 8))), "");
  });

  expect_pruned_equals_masked({2, 5, 8});

  EXPECT_EQ(report_["prunable_macs"], report_["macs"]["before"]);  // of the Attention as well
  EXPECT_EQ(channels("q.matmul"), 4);
  EXPECT_EQ(shape_of_value("q.w"), (Ints{8, 16}));
  EXPECT_EQ(shape_of_value("k.w"), (Ints{8, 8}));
  EXPECT_EQ(shape_of_value("v.w"), (Ints{8, 12}));
  EXPECT_EQ(shape_of_value("out.w"), (Ints{24, 8}));
  Node attention = result_.view().find("attention").producer();
  EXPECT_EQ(attention.attr_int("q_num_heads"), 4);
  EXPECT_EQ(attention.attr_int("kv_num_heads"), 2);
}

TEST_F(Sequences, HeadsOfANodeWithFourAxesGoWithTheirMask) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 5, 8});
    auto part = [&](const char* name) {
      return turn(edit,
                  reshape(edit, product(edit, x, name, 8, 24), {-1, 5, 6, 4}, cat(name, ".r")),
                  {0, 2, 1, 3}, cat(name, ".t"));
    };
    Value y =
        node(edit, "Attention",
             {part("q"), part("k"), part("v"), weight(edit, "mask", {6, 5, 5}, 9)}, "attention");
    join_heads(edit, y, 5, 24);
  });

  expect_pruned_equals_masked({2, 5, 8});

  EXPECT_EQ(shape_of_value("q.w"), (Ints{8, 12}));
  EXPECT_EQ(shape_of_value("mask"), (Ints{3, 5, 5}));
}

TEST_F(Sequences, QueriesAndKeysOfAMaskThatLayersMakeStay) {
  for (const std::vector<int64_t>& shape : {Ints{5, 8}, Ints{1, 1, 5, 8}}) {
    model_ = {};
    SetUp();
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 5, 8});
      auto part = [&](const char* name) {
        return turn(edit,
                    reshape(edit, product(edit, x, name, 8, 24), {-1, 5, 6, 4}, cat(name, ".r")),
                    {0, 2, 1, 3}, cat(name, ".t"));
      };
      Value places = node(edit, "Relu", {weight(edit, "places", shape, 9)}, "seen");
      Value mask = product(edit, places, "bias", 8, 5);
      Value y = node(edit, "Attention", {part("q"), part("k"), part("v"), mask}, "attention");
      join_heads(edit, y, 5, 24);
    });

    expect_pruned_equals_masked({2, 5, 8});

    EXPECT_EQ(barrier("bias.matmul"), "attention (Attention) mixes its entries");
  }
}

struct Cell {
  const char* type;
  int64_t gates;
  const char* direction;
};

class RecurrentUnits : public Sequences, public testing::WithParamInterface<Cell> {};

// Two layers, [steps, batch, 6] -> 10 -> 8 units, and a classifier of the last states.
TEST_P(RecurrentUnits, GoFromEveryGate) {
  Cell cell = GetParam();
  int64_t n = std::string_view(cell.direction) == "bidirectional" ? 2 : 1;
  build([&](EditView edit) {
    auto layer = [&](Value x, const std::string& name, int64_t n_in, int64_t units) {
      return *edit.add({.type = cell.type,
                        .inputs = {x, weight(edit, name + ".w", {n, cell.gates * units, n_in}, 1),
                                   weight(edit, name + ".r", {n, cell.gates * units, units}, 2),
                                   weight(edit, name + ".b", {n, 2 * cell.gates * units}, 3)},
                        .attrs = {{"hidden_size", units}, {"direction", cell.direction}},
                        .n_outputs = 2,
                        .name = name});
    };
    Value x = input(edit, "x", {4, 2, 6});
    Value first = layer(x, "first", 6, 10).output(0);  // [steps, n, batch, units]
    Value flat = reshape(edit, turn(edit, first, {0, 2, 1, 3}, "t1"), {4, 2, 10 * n}, "flat");
    Value last = layer(flat, "second", 10 * n, 8).output(1);  // [n, batch, units]
    Value whole = reshape(edit, turn(edit, last, {1, 0, 2}, "t2"), {2, 8 * n}, "whole");
    ASSERT_EQ(text_of(edit.output("y", product(edit, whole, "out", 8 * n, 5))), "");
  });

  expect_pruned_equals_masked({4, 2, 6});

  EXPECT_EQ(shape_of_value("first.r"), (Ints{n, cell.gates * 4, 4}));
  EXPECT_EQ(shape_of_value("second.w"), (Ints{n, cell.gates * 4, 4 * n}));
  EXPECT_EQ(shape_of_value("out.w"), (Ints{4 * n, 5}));
  EXPECT_EQ(result_.view().find("first").producer().attr_int("hidden_size"), 4);
}

INSTANTIATE_TEST_SUITE_P(Cells,
                         RecurrentUnits,
                         testing::Values(Cell{"LSTM", 4, "forward"},
                                         Cell{"LSTM", 4, "bidirectional"},
                                         Cell{"GRU", 3, "reverse"},
                                         Cell{"RNN", 1, "bidirectional"}));

// A state that comes from outside has the size that it has.
TEST_F(Sequences, UnitsStayWhereTheStateIsGiven) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {4, 2, 6}), h = input(edit, "h", {1, 2, 8});
    auto made = edit.add({.type = "RNN",
                          .inputs = {x, weight(edit, "w", {1, 8, 6}, 1),
                                     weight(edit, "r", {1, 8, 8}, 2), Value{}, Value{}, h},
                          .attrs = {{"hidden_size", 8}},
                          .n_outputs = 2,
                          .name = "cell"});
    Value flat = reshape(edit, made->output(1), {2, 8}, "flat");
    ASSERT_EQ(text_of(edit.output("y", product(edit, flat, "out", 8, 5))), "");
  });

  EXPECT_THAT(apply("pruner.structured", json::object()),
              testing::HasSubstr("it is of the model's input h"));
}

}  // namespace
}  // namespace tenon::test
