// SPDX-License-Identifier: Apache-2.0
#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
namespace {

class Autocast : public PassTest {
 protected:
  uint32_t dtype_of_value(std::string_view name) { return result_.view().find(name).dtype(); }
  size_t casts_of(std::string_view name) {
    Value v = result_.view().find(name);
    size_t n = 0;
    for (uint64_t i = 0; i < v.consumer_count(); ++i)
      n += v.consumer(i).is("Cast");
    return n;
  }
  std::string category(std::string_view node) {
    for (const json& one : report_["nodes"])
      if (one["node"] == node) return one["category"];
    return "";
  }
  std::string text(const OwnedGraph& graph) {
    StringSink sink;
    EXPECT_EQ(text_of(Status(services.graph->print(graph.get(), 0, sink.get()))), "");
    return sink.text;
  }
  void begin_anew() {
    tn_graph* raw = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
    model_ = OwnedGraph::take(raw);
  }
  // x -> MatMul -> "low", which under autocast is in the low type; then what `more` adds.
  template <class More>
  void build_after_product(More&& more) {
    build([&](EditView edit) {
      Value x = input(edit, "x", {4, 8});
      Value low = node(edit, "MatMul", {x, weight(edit, "w", {8, 8}, 1)}, "low");
      ASSERT_EQ(text_of(edit.output("y", more(edit, x, low))), "");
    });
  }
};

// Result types that PyTorch 2.13 has under torch.autocast("cpu", torch.bfloat16): tests/golden,
// "cpu_autocast". The operator reads a result of matmul in bfloat16; "mixed" ones a float32 as
// well.
class AutocastGolden : public Autocast, public testing::WithParamInterface<const char*> {
 protected:
  Value op(EditView edit,
           std::string_view type,
           std::vector<Value> in,
           std::vector<Attr> attrs = {}) {
    return node(edit, type, std::move(in), "result", std::move(attrs));
  }
  Value labels(EditView edit) {
    auto made = edit.constant<int64_t>(TN_I64, {4}, std::vector<int64_t>{0, 1, 2, 3}, "labels");
    EXPECT_TRUE(made.ok());
    return *made;
  }
  Value number(EditView edit, float value) {
    auto made = edit.constant<float>(TN_F32, {}, std::vector<float>{value}, "number");
    EXPECT_TRUE(made.ok());
    return *made;
  }
  Value make(EditView edit, std::string_view operation, Value x, Value low) {
    if (operation == "matmul") return op(edit, "MatMul", {x, weight(edit, "w2", {8, 8}, 2)});
    if (operation == "softmax") return op(edit, "Softmax", {low});
    if (operation == "log_softmax") return op(edit, "LogSoftmax", {low});
    if (operation == "layer_norm")
      return op(edit, "LayerNormalization",
                {low, weight(edit, "s", {8}, 3), weight(edit, "t", {8}, 4)});
    if (operation == "gelu") return op(edit, "Gelu", {low});
    if (operation == "exp") return op(edit, "Exp", {low});
    if (operation == "sum") return op(edit, "ReduceSum", {low});
    if (operation == "pow") return op(edit, "Pow", {low, number(edit, 2)});
    if (operation == "add_f32") return op(edit, "Add", {low, x});
    if (operation == "cat_mixed") return op(edit, "Concat", {low, x}, {{"axis", 0}});
    if (operation == "cross_entropy")
      return op(edit, "SoftmaxCrossEntropyLoss", {low, labels(edit)});
    if (operation == "batch_norm")
      return op(edit, "BatchNormalization",
                {low, weight(edit, "s", {8}, 3), weight(edit, "t", {8}, 4),
                 weight(edit, "m", {8}, 5), weight(edit, "v", {8}, 6)});
    // No operator of ONNX: whoever builds it from several says so with a note on the first.
    Value difference = node(edit, "Sub", {low, weight(edit, "target", {4, 8}, 3)}, "difference");
    EXPECT_EQ(text_of(edit.set_note(difference.producer().id, "cast", any_text("fp32"))), "");
    return op(edit, "ReduceMean", {node(edit, "Mul", {difference, difference}, "squares")});
  }
};

TEST_P(AutocastGolden, ResultTypeIsPyTorchs) {
  build_after_product([&](EditView edit, Value x, Value low) {
    Value result = make(edit, GetParam(), x, low);
    return node(edit, "Identity", {result}, "end");
  });

  ASSERT_EQ(apply("precision.autocast", json::object()), "");

  EXPECT_EQ(dtype_name(dtype_of_value("low")), "bfloat16");
  std::string expected = golden("amp.json")["cpu_autocast"][GetParam()];
  EXPECT_EQ("torch." + dtype_name(dtype_of_value("result")), expected);
}

INSTANTIATE_TEST_SUITE_P(Cpu,
                         AutocastGolden,
                         testing::Values("matmul",
                                         "softmax",
                                         "layer_norm",
                                         "gelu",
                                         "exp",
                                         "sum",
                                         "add_f32",
                                         "cross_entropy",
                                         "log_softmax",
                                         "pow",
                                         "mse",
                                         "cat_mixed",
                                         "batch_norm"),
                         [](const auto& one) { return std::string(one.param); });

TEST_F(Autocast, CudaHasATableOfItsOwn) {
  build_after_product([&](EditView edit, Value, Value low) {
    Value a = node(edit, "Exp", {low}, "exp");
    Value b = node(edit, "Gelu", {low}, "gelu");
    Value c = node(edit, "Log", {low}, "log");
    return node(edit, "Concat", {a, b, c}, "all", {{"axis", 0}});
  });

  ASSERT_EQ(apply("precision.autocast", {{"device", "cuda"}}), "");

  EXPECT_EQ(dtype_name(dtype_of_value("low")), "float16");
  EXPECT_EQ(dtype_name(dtype_of_value("gelu")), "float16");
  EXPECT_EQ(dtype_name(dtype_of_value("exp")), "float32");
  EXPECT_EQ(dtype_name(dtype_of_value("log")), "float32");
  EXPECT_EQ(dtype_name(dtype_of_value("all")), "float32");
}

// What else PyTorch's two lists of float32 (autocast_mode.cpp and .h) name and ONNX has: sums,
// products, norms. LRN is an average pool of a float32 list there, and a power on the other.
TEST_F(Autocast, SumsProductsAndNormsAreWideWherePyTorchHasThemSo) {
  const std::tuple<const char*, const char*, const char*> table[] = {
      {"ReduceSum", "follow", "fp32"},
      {"ReduceProd", "fp32", "fp32"},
      {"ReduceLogSumExp", "follow", "fp32"},
      {"ReduceL1", "follow", "fp32"},
      {"ReduceL2", "follow", "fp32"},
      {"LpNormalization", "follow", "fp32"},
      {"ReduceMean", "follow", "follow"},
      {"ReduceMax", "follow", "follow"},
      {"LRN", "fp32", "fp32"}};
  build_after_product([&](EditView edit, Value, Value low) {
    for (const auto& [type, cpu, cuda] : table) {
      std::vector<Attr> attrs;
      if (std::string_view(type) == "LRN") attrs = {{"size", 3}};
      Value made = node(edit, type, {low}, type, attrs);
      EXPECT_EQ(text_of(edit.output(cat("out_", type), made)), "");
    }
    return low;
  });

  ASSERT_EQ(apply("precision.autocast", json::object()), "");
  for (const auto& [type, cpu, cuda] : table)
    EXPECT_EQ(category(type), cpu) << type;
  ASSERT_EQ(apply("precision.autocast", {{"device", "cuda"}}), "");
  for (const auto& [type, cpu, cuda] : table)
    EXPECT_EQ(category(type), cuda) << type;
}

TEST_F(Autocast, OneCastForEachValueAndType) {
  build_after_product([&](EditView edit, Value x, Value) {
    Value w = weight(edit, "w2", {8, 8}, 1);
    Value a = node(edit, "MatMul", {x, w}, "a"), b = node(edit, "MatMul", {x, w}, "b");
    return node(edit, "Add", {a, b}, "sum");
  });

  ASSERT_EQ(apply("precision.autocast", json::object()), "");

  EXPECT_EQ(casts_of("x"), 1u);
  EXPECT_EQ(casts_of("w2"), 1u);
  EXPECT_EQ(count_ops("Cast"), report_["casts"]);
}

TEST_F(Autocast, TwiceIsOnce) {
  build_after_product([&](EditView edit, Value x, Value low) {
    Value sum = node(edit, "Add", {low, x}, "sum");
    return node(edit, "MatMul", {sum, weight(edit, "w2", {8, 4}, 3)}, "out");
  });
  ASSERT_EQ(apply("precision.autocast", json::object()), "");
  std::string once = text(result_);

  model_ = std::move(result_);
  ASSERT_EQ(apply("precision.autocast", json::object()), "");

  EXPECT_EQ(text(result_), once);
  EXPECT_EQ(report_["casts"], 0);
}

TEST_F(Autocast, OutputsAndInputsKeepTheirTypes) {
  build_after_product(
      [&](EditView edit, Value, Value low) { return node(edit, "Relu", {low}, "relu"); });

  ASSERT_EQ(apply("precision.autocast", json::object()), "");

  EXPECT_EQ(dtype_name(dtype_of_value("relu")), "bfloat16");
  EXPECT_EQ(result_.view().outputs()[0].dtype(), uint32_t{TN_F32});
  EXPECT_EQ(result_.view().output_name(0), "y");
  EXPECT_EQ(result_.view().inputs()[0].dtype(), uint32_t{TN_F32});
}

TEST_F(Autocast, AnswersStayNear) {
  build_after_product([&](EditView edit, Value x, Value low) {
    Value sum = node(edit, "Add", {node(edit, "Gelu", {low}, "gelu"), x}, "sum");
    Value norm = node(edit, "LayerNormalization",
                      {sum, weight(edit, "s", {8}, 3), weight(edit, "t", {8}, 4)}, "norm");
    return node(edit, "MatMul", {norm, weight(edit, "w2", {8, 4}, 5)}, "out");
  });
  ASSERT_EQ(apply("precision.autocast", json::object()), "");

  Floats batch = random(32, 9);
  Floats exact = run(model_, {4, 8}, batch), low = run(result_, {4, 8}, batch);

  EXPECT_GE(cosine(exact, low), 0.9999);
  EXPECT_NE(exact, low);
}

TEST_F(Autocast, BiasesAndNumbersDoNotWiden) {
  build_after_product([&](EditView edit, Value, Value low) {
    Value half = *edit.constant<float>(TN_F32, {}, std::vector<float>{0.5f}, "half");
    Value sum = node(edit, "Add", {low, weight(edit, "bias", {8}, 3)}, "sum");
    return node(edit, "Mul", {sum, half}, "scaled");
  });

  ASSERT_EQ(apply("precision.autocast", json::object()), "");

  EXPECT_EQ(dtype_name(dtype_of_value("sum")), "bfloat16");
  EXPECT_EQ(dtype_name(dtype_of_value("scaled")), "bfloat16");
}

TEST_F(Autocast, OwnListsGoBeforeTheTableAndNamesBeforeOperators) {
  build_after_product([&](EditView edit, Value, Value low) {
    Value e = node(edit, "Exp", {low}, "exp");
    return node(edit, "MatMul", {e, weight(edit, "w2", {8, 4}, 3)}, "head");
  });

  ASSERT_EQ(apply("precision.autocast", {{"fp32", {"MatMul", "exp"}}, {"low", {"low"}}}), "");

  EXPECT_EQ(dtype_name(dtype_of_value("low")), "bfloat16");
  EXPECT_EQ(dtype_name(dtype_of_value("exp")), "float32");
  EXPECT_EQ(dtype_name(dtype_of_value("head")), "float32");
  EXPECT_EQ(category("head"), "fp32");
}

TEST_F(Autocast, AListOfNodesThatReadNoFloatsIsRefused) {
  build_after_product([&](EditView edit, Value, Value low) {
    node(edit, "Neg", {node(edit, "Shape", {low}, "sizes")}, "negated");
    return node(edit, "Exp", {low}, "exp");
  });

  EXPECT_THAT(apply("precision.autocast", {{"low", {"Neg"}}}),
              HasSubstr("got 'Neg', which fits none that reads floating-point numbers"));
}

TEST_F(Autocast, BadListsAreRefused) {
  build_after_product(
      [&](EditView edit, Value, Value low) { return node(edit, "Exp", {low}, "exp"); });
  EXPECT_THAT(apply("precision.autocast", {{"low", {"Expp"}}}),
              HasSubstr("option low: expected patterns of nodes, operators or scopes, got 'Expp'"));
  EXPECT_THAT(apply("precision.autocast", {{"low", {"exp"}}, {"fp32", {"e*p"}}}),
              HasSubstr("node exp is in the lists of option low and option fp32"));
  EXPECT_THAT(refusal("tenon.pass/1", "precision.autocast", {{"device", "tpu"}}),
              HasSubstr("expected one of cpu, cuda"));
}

TEST_F(Autocast, LevelsTakeTheLowTypeFurther) {
  for (auto [level, softmax, norm] :
       {std::tuple{"O1", TN_F32, TN_F32}, {"O2", TN_F16, TN_F32}, {"O3", TN_F16, TN_F16}}) {
    begin_anew();
    build([&](EditView edit) {
      Value x = input(edit, "x", {4, 8});
      Value low = node(edit, "MatMul", {x, weight(edit, "w", {8, 8}, 1)}, "low");
      Value soft = node(edit, "Softmax", {low}, "soft");
      std::vector<Value> rest;
      for (const char* name : {"scale", "bias", "mean", "variance"})
        rest.push_back(weight(edit, name, {8}, 2));
      Value out =
          node(edit, "BatchNormalization", {soft, rest[0], rest[1], rest[2], rest[3]}, "norm");
      ASSERT_EQ(text_of(edit.output("y", node(edit, "Relu", {out}, "last"))), "");
    });
    ASSERT_EQ(apply("precision.autocast", {{"device", "cuda"}, {"level", level}}), "");
    EXPECT_EQ(dtype_of_value("low"), TN_F16) << level;
    EXPECT_EQ(dtype_of_value("soft"), softmax) << level;
    EXPECT_EQ(dtype_of_value("norm"), norm) << level;
  }
}

TEST_F(Autocast, ANoteMaySpeakOfOneLowType) {
  for (const char* dtype : {"bfloat16", "float16"}) {
    begin_anew();
    build([&](EditView edit) {
      Value x = input(edit, "x", {4, 8});
      Value low = node(edit, "MatMul", {x, weight(edit, "w", {8, 8}, 1)}, "low");
      Value log = node(edit, "Log", {low}, "log");
      ASSERT_EQ(text_of(edit.set_note(log.producer().id, "cast", any_text("fp32 float16=banned"))),
                "");
      ASSERT_EQ(text_of(edit.output("y", log)), "");
    });
    std::string said = apply("precision.autocast", {{"dtype", dtype}});
    if (std::string_view(dtype) == "bfloat16")
      EXPECT_EQ(said, "");
    else
      EXPECT_THAT(said, HasSubstr("use the one of logits (trainer.bce_with_logits)"));
  }
}

TEST_F(Autocast, ABadNoteIsRefused) {
  build_after_product([&](EditView edit, Value, Value low) {
    Value e = node(edit, "Exp", {low}, "exp");
    EXPECT_EQ(text_of(edit.set_note(e.producer().id, "cast", any_text("half"))), "");
    return e;
  });
  EXPECT_THAT(apply("precision.autocast", json::object()),
              HasSubstr("node exp: note cast: expected one of low, fp32, fp32_out, promote, "
                        "follow, keep, banned, got 'half'"));
}

TEST_F(Autocast, UnknownOperatorsKeepTheirTypes) {
  build_after_product([&](EditView edit, Value, Value low) {
    auto made = edit.add({.type = "Mystery",
                          .inputs = {low},
                          .name = "mystery",
                          .domain = "com.acme",
                          .output_names = {"mystery"}});
    EXPECT_TRUE(made.ok());
    return made->output();
  });

  ASSERT_EQ(apply("precision.autocast", json::object()), "");

  EXPECT_THAT(reads("mystery"), testing::ElementsAre("low_float32"));
}

TEST_F(Autocast, LeavesDoublesAndIntegersAlone) {
  build([&](EditView edit) {
    auto x = edit.input("x", Type(TN_F64, {4, 8}));
    auto w = edit.constant<double>(TN_F64, {8, 2}, std::vector<double>(16, 0.5), "w");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {*x, *w}, "product"))), "");
  });
  ASSERT_EQ(apply("precision.autocast", json::object()), "");
  EXPECT_EQ(report_["casts"], 0);
  EXPECT_EQ(dtype_name(dtype_of_value("product")), "float64");
}

// A looked up row is cast back, so that only the table is rounded.
TEST_F(Autocast, TablesAreLowWhereTheyAreAskedFor) {
  build([&](EditView edit) {
    auto ids = edit.ints({2, 0, 1}, "ids");
    ASSERT_TRUE(ids.ok());
    Value rows = node(edit, "Gather", {weight(edit, "table", {4, 8}, 1), *ids}, "rows");
    Value low = node(edit, "MatMul", {rows, weight(edit, "w", {8, 8}, 2)}, "low");
    ASSERT_EQ(text_of(edit.output("rows", rows)), "");
    ASSERT_EQ(text_of(edit.output("y", low)), "");
  });
  ASSERT_EQ(apply("precision.autocast", json::object()), "");
  EXPECT_EQ(dtype_of_value("rows"), TN_F32);
  ASSERT_EQ(apply("precision.autocast", {{"tables", true}}), "");
  EXPECT_EQ(dtype_of_value("rows"), TN_BF16);
  EXPECT_EQ(casts_of("table"), 1u);
  EXPECT_EQ(category("rows"), "table");
  EXPECT_EQ(result_.view().outputs()[0].dtype(), TN_F32);
  ASSERT_EQ(apply("precision.autocast", {{"tables", true}, {"fp32", {"Gather"}}}), "");
  EXPECT_EQ(dtype_of_value("rows"), TN_F32);
}

TEST_F(Autocast, ParametersThatAreStatesStayInFloat32) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {4, 8}), w = input(edit, "w", {8, 8});
    Value y = node(edit, "MatMul", {x, w}, "product");
    Value next = node(edit, "Mul", {w, w}, "next");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
    ASSERT_EQ(text_of(edit.output("w/next", next)), "");
    ASSERT_EQ(text_of(Status(services.edit->pair_state(edit.raw, w.id, next.id))), "");
  });
  ASSERT_EQ(apply("precision.autocast", json::object()), "");
  EXPECT_EQ(dtype_name(dtype_of_value("w")), "float32");
  EXPECT_EQ(dtype_name(dtype_of_value("next")), "float32");
  EXPECT_EQ(casts_of("w"), 1u);
}

}  // namespace
}  // namespace tenon::test
