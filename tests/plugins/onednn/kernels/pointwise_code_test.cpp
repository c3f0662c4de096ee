// SPDX-License-Identifier: Apache-2.0
// Generated code of each instruction set against the interpreter.

#include <cstdlib>
#include <cstring>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "expr_nodes.h"
#include "kernels/pointwise.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr uint8_t kUntouched = 0xa5;
// PR_SET_MDWE and PR_MDWE_REFUSE_EXEC_GAIN of Linux 6.3, for headers that are older.
constexpr int kSetMemoryDenyWriteExecute = 65;
constexpr unsigned long kRefuseExecGain = 1;

// A group, with the data of its inputs.
struct Group {
  std::vector<tn_expr_node> nodes;
  std::vector<uint32_t> results;
  std::vector<int64_t> dims;
  std::vector<PointwiseEdge> inputs;
  std::vector<PointwiseEdge> outputs;
  std::vector<const void*> sources;

  uint32_t add(tn_expr_node node) {
    nodes.push_back(node);
    return static_cast<uint32_t>(nodes.size()) - 1;
  }
  PointwiseSpec spec(Level level) const { return {nodes, results, dims, inputs, outputs, level}; }
  // One dimension of n elements, all f32.
  static Group flat(int64_t n, std::vector<const void*> sources) {
    const PointwiseEdge edge{ElementType::kF32, {}, {1}};
    Group group;
    group.dims = {n};
    group.inputs.assign(sources.size(), edge);
    group.outputs = {edge};
    group.sources = std::move(sources);
    for (uint32_t i = 0; i < group.inputs.size(); ++i)
      group.add(input(i));
    return group;
  }
};

// The parameter: the level that code is made for.
class PointwiseCode : public testing::TestWithParam<Level> {
 protected:
  void SetUp() override {
    if (GetParam() > best_level()) GTEST_SKIP() << "no " << level_name(GetParam()) << " here";
  }
  PointwisePlan made(const Group& group) const {
    PointwisePlan plan;
    EXPECT_EQ(plan.make(group.spec(GetParam())), "");
    EXPECT_EQ(plan.interpreted_because(), "");
    return plan;
  }
  static PointwisePlan interpreted(const Group& group) {
    PointwisePlan plan;
    EXPECT_EQ(plan.make(group.spec(Level::kBaseline)), "");
    EXPECT_EQ(plan.how(), "interpreted: no AVX2");
    return plan;
  }
  // The targets, one after the other, each `shift` bytes behind an aligned start, with 64 bytes
  // behind it that nobody may write.
  static std::vector<Bytes> run(const Group& group,
                                const PointwisePlan& plan,
                                Level level,
                                uint64_t shift) {
    uint64_t count = 1;
    for (int64_t dim : group.dims)
      count *= static_cast<uint64_t>(dim);
    std::vector<Bytes> made;
    std::vector<void*> targets;
    for (const PointwiseEdge& edge : group.outputs) {
      const uint64_t bytes = count * static_cast<uint64_t>(element_bytes(edge.type));
      made.emplace_back(bytes + 192 + shift, kUntouched);
      const uint64_t past = reinterpret_cast<uintptr_t>(made.back().data()) % 64;
      targets.push_back(made.back().data() + (64 - past) + shift);
    }
    plan.run(make_context(level), group.sources, targets);
    for (uint64_t i = 0; i < made.size(); ++i) {
      const auto at = static_cast<uint64_t>(static_cast<uint8_t*>(targets[i]) - made[i].data());
      const uint64_t bytes = made[i].size() - 192 - shift;
      EXPECT_EQ(made[i][at - 1], kUntouched);
      EXPECT_EQ(Bytes(made[i].begin() + static_cast<int64_t>(at + bytes), made[i].end()),
                Bytes(made[i].size() - at - bytes, kUntouched));
      made[i] = Bytes(made[i].begin() + static_cast<int64_t>(at),
                      made[i].begin() + static_cast<int64_t>(at + bytes));
    }
    return made;
  }
  static bool is_nan(const uint8_t* at, ElementType type) {
    float real = 0;
    uint16_t half = 0;
    if (type == ElementType::kF32) {
      std::memcpy(&real, at, 4);
      return std::isnan(real);
    }
    if (type != ElementType::kBf16 && type != ElementType::kF16) return false;
    std::memcpy(&half, at, 2);
    return (half & 0x7fff) > (type == ElementType::kBf16 ? 0x7f80 : 0x7c00);
  }
  // Bit by bit, but for the payload of NaN and the sign of zero, which MIN and MAX leave open.
  static void expect_equal(const Bytes& got, const Bytes& want, ElementType type) {
    const auto size = static_cast<uint64_t>(element_bytes(type));
    const bool is_signed_zero = is_float_kernel_type(type) && size != 1;
    for (uint64_t i = 0; i < want.size(); i += size) {
      const bool both_nan = is_nan(&got[i], type) && is_nan(&want[i], type);
      Bytes a(got.begin() + static_cast<int64_t>(i), got.begin() + static_cast<int64_t>(i + size));
      Bytes b(want.begin() + static_cast<int64_t>(i),
              want.begin() + static_cast<int64_t>(i + size));
      Bytes zero(size);
      Bytes negative_zero = zero;
      negative_zero.back() = 0x80;
      if (is_signed_zero && a == negative_zero) a = zero;
      if (is_signed_zero && b == negative_zero) b = zero;
      ASSERT_TRUE(both_nan || a == b)
          << "element " << i / size << " of type " << static_cast<int>(type) << ": expected "
          << testing::PrintToString(b) << ", got " << testing::PrintToString(a);
    }
  }
  void expect_as_interpreted(const Group& group, uint64_t shift = 0) const {
    const std::vector<Bytes> got = run(group, made(group), GetParam(), shift);
    const std::vector<Bytes> want = run(group, interpreted(group), Level::kAvx2, shift);
    for (uint64_t i = 0; i < got.size(); ++i)
      expect_equal(got[i], want[i], group.outputs[i].type);
  }
};

constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kBf16, ElementType::kF16,
                                  ElementType::kU8,  ElementType::kS8,   ElementType::kBool};

// Programs whose operations are exact or rounded once, so that both ways must agree in all bits.
class RandomGroup {
 public:
  explicit RandomGroup(uint32_t seed) : random_(seed) {}

  Group make(int64_t n) {
    Group group;
    group.dims = {n};
    const uint64_t n_inputs = below(12) + 1;
    for (uint32_t i = 0; i < n_inputs; ++i) {
      group.inputs.push_back(edge(i));
      group.sources.push_back(data(group.inputs.back().type, static_cast<uint64_t>(n)));
      group.add(input(i));
    }
    group.add(constant(0.75));
    group.add(constant(-2));
    const uint32_t n_nodes = below(60) + 4;
    for (uint32_t i = 0; i < n_nodes; ++i)
      group.add(node(static_cast<uint32_t>(group.nodes.size())));
    const uint32_t n_outputs = below(3) + 1;
    for (uint32_t i = 0; i < n_outputs; ++i) {
      group.outputs.push_back(edge(0));
      group.outputs.back().strides = {1};
      group.results.push_back(static_cast<uint32_t>(group.nodes.size()) - 1 - i);
    }
    return group;
  }
  // Rows and columns: operands that are dense, the same in each row or column or everywhere, or
  // have gaps.
  Group make_rows(int64_t rows, int64_t columns) {
    Group group = make(2 * rows * columns);
    group.dims = {rows, columns};
    const std::vector<std::vector<int64_t>> kStrides = {
        {columns, 1}, {columns, 1}, {0, 1}, {1, 0}, {0, 0}, {2 * columns, 2}};
    for (PointwiseEdge& edge : group.inputs)
      edge.strides = kStrides[below(static_cast<uint32_t>(kStrides.size()))];
    for (PointwiseEdge& edge : group.outputs)
      edge.strides = {columns, 1};
    return group;
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  // One in five inputs is one element for all; the first never is.
  PointwiseEdge edge(uint32_t i) {
    PointwiseEdge made{kTypes[below(std::size(kTypes))], {}, {i > 0 && below(5) == 0 ? 0 : 1}};
    if (made.type == ElementType::kU8 && below(2) == 0) made.quant = {0.25F, 100};
    if (made.type == ElementType::kS8 && below(2) == 0) made.quant = {0.125F, -3};
    return made;
  }
  // Any bits, so infinities, NaN and denormals are among the halves; f32 mostly in [-3, 3].
  const void* data(ElementType type, uint64_t n) {
    Bytes& bytes = data_.emplace_back(n * static_cast<uint64_t>(element_bytes(type)));
    for (uint8_t& byte : bytes)
      byte = static_cast<uint8_t>(random_());
    if (type == ElementType::kF32) {
      std::vector<float> reals = uniform(n, -3, 3, below(1000));
      reals[below(static_cast<uint32_t>(n))] = std::numeric_limits<float>::quiet_NaN();
      reals[below(static_cast<uint32_t>(n))] = -std::numeric_limits<float>::infinity();
      std::memcpy(bytes.data(), reals.data(), bytes.size());
    }
    if (type == ElementType::kBool) {
      for (uint8_t& byte : bytes)
        byte &= 1;
    }
    return bytes.data();
  }
  tn_expr_node node(uint32_t n) {
    static constexpr uint32_t kOps[] = {
        TN_EXPR_NEG,   TN_EXPR_ABS,   TN_EXPR_SIGN,  TN_EXPR_SQRT,  TN_EXPR_FLOOR, TN_EXPR_CEIL,
        TN_EXPR_ROUND, TN_EXPR_TRUNC, TN_EXPR_NOT,   TN_EXPR_ADD,   TN_EXPR_SUB,   TN_EXPR_MUL,
        TN_EXPR_ADD,   TN_EXPR_SUB,   TN_EXPR_MUL,   TN_EXPR_MIN,   TN_EXPR_MAX,   TN_EXPR_EQ,
        TN_EXPR_NE,    TN_EXPR_LT,    TN_EXPR_LE,    TN_EXPR_GT,    TN_EXPR_GE,    TN_EXPR_AND,
        TN_EXPR_OR,    TN_EXPR_XOR,   TN_EXPR_ISNAN, TN_EXPR_ISINF, TN_EXPR_SELECT};
    return op(kOps[below(std::size(kOps))], below(n), below(n), below(n));
  }

  std::mt19937 random_;
  std::vector<Bytes> data_;
};

TEST_P(PointwiseCode, AgreesWithTheInterpreterOverRandomPrograms) {
  constexpr int64_t kLengths[] = {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 300, 4097};
  for (uint32_t seed = 0; seed < 260; ++seed) {
    RandomGroup random(seed);
    const int64_t n = kLengths[seed % std::size(kLengths)];
    expect_as_interpreted(random.make(n), random.below(2) * 4);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ", " << n << " elements";
  }
}

TEST_P(PointwiseCode, AgreesWithTheInterpreterInTiles) {
  constexpr int64_t kColumns[] = {2, 3, 8, 16, 17, 33, 47, 48, 70};
  constexpr int64_t kRows[] = {2, 7, 100, 700};
  for (uint32_t seed = 0; seed < 180; ++seed) {
    RandomGroup random(seed);
    const int64_t columns = kColumns[seed % std::size(kColumns)];
    const int64_t rows = kRows[seed / std::size(kColumns) % std::size(kRows)];
    expect_as_interpreted(random.make_rows(rows, columns), random.below(2) * 4);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ", " << rows << " x " << columns;
  }
}

// Every value is read by two sums that run in opposite orders: all live at once between them.
TEST_P(PointwiseCode, SpillsWhatHasNoRegister) {
  constexpr uint32_t kValues = 70;
  const std::vector<float> a = uniform(1003, -2, 2);
  const std::vector<float> b = uniform(1003, -2, 2, 2);
  Group group = Group::flat(1003, {a.data(), b.data()});
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < kValues; ++i) {
    const uint32_t factor = group.add(constant(0.01 * i));
    values.push_back(group.add(op(TN_EXPR_MAX, group.add(op(TN_EXPR_MUL, 0, factor)), 1)));
  }
  uint32_t up = values.front();
  for (uint32_t i = 1; i < kValues; ++i)
    up = group.add(op(TN_EXPR_SUB, values[i], up));
  uint32_t down = values.back();
  for (uint32_t i = kValues - 1; i-- > 0;)
    down = group.add(op(TN_EXPR_SUB, values[i], down));
  group.results = {group.add(op(TN_EXPR_DIV, up, down))};
  expect_as_interpreted(group);
}

TEST_P(PointwiseCode, BroadcastsRowsAndColumns) {
  const std::vector<float> a = uniform(7 * 101, -2, 2);
  for (int64_t row : {0, 101}) {
    for (int64_t column : {0, 1}) {
      Group group = Group::flat(0, {a.data(), a.data() + 3});
      group.dims = {7, 101};
      group.inputs[0].strides = {101, 1};
      group.inputs[1].strides = {column == 1 ? 0 : row / 101, column};
      group.outputs[0].strides = {101, 1};
      group.results = {group.add(op(TN_EXPR_SUB, 0, 1))};
      expect_as_interpreted(group);
    }
  }
}

// The first target lies over what only the second result reads.
TEST_P(PointwiseCode, ReadsAllSourcesBeforeItWritesOverOne) {
  std::vector<float> a = uniform(200, -2, 2);
  std::vector<float> b = uniform(200, -2, 2, 2);
  const std::vector<float> before = b;
  std::vector<float> second(200);
  Group group = Group::flat(200, {a.data(), b.data()});
  group.outputs.push_back(group.outputs[0]);
  group.results = {group.add(op(TN_EXPR_NEG, 0)), group.add(op(TN_EXPR_ABS, 1))};
  void* const targets[] = {b.data(), second.data()};
  made(group).run(make_context(GetParam()), group.sources, targets);

  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_EQ(b[i], -a[i]);
    ASSERT_EQ(second[i], std::fabs(before[i]));
  }
}

TEST_P(PointwiseCode, WritesOverItsSourceAtEveryLength) {
  for (int64_t n = 1; n < 70; ++n) {
    std::vector<float> a = uniform(static_cast<uint64_t>(n), -2, 2);
    const std::vector<float> before = a;
    Group group = Group::flat(n, {a.data()});
    group.results = {group.add(op(TN_EXPR_ADD, 0, group.add(constant(1))))};
    void* const target = a.data();
    made(group).run(make_context(GetParam()), group.sources, {&target, 1});
    for (uint64_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(a[i], before[i] + 1) << i << " of " << n;
  }
}

// Long enough to be written past the caches; 4-byte targets at, and off, a cache line.
TEST_P(PointwiseCode, StreamsToAlignedAndUnalignedTargets) {
  constexpr int64_t kN = (int64_t{25} << 18) + 11;
  const std::vector<float> x = uniform(kN, -2, 2);
  Group group = Group::flat(kN, {x.data()});
  group.results = {group.add(op(TN_EXPR_ABS, 0))};
  for (uint64_t shift : {0, 4, 20, 2}) {
    const std::vector<Bytes> got = run(group, made(group), GetParam(), shift);
    const std::vector<Bytes> want = run(group, interpreted(group), Level::kAvx2, shift);
    EXPECT_TRUE(got == want) << shift;
  }
}

TEST_P(PointwiseCode, SaysWhyAGroupIsInterpreted) {
  const std::vector<float> x(4000, 1.0F);
  auto why = [&](auto change) {
    Group group = Group::flat(1000, {x.data()});
    change(group);
    group.results = {static_cast<uint32_t>(group.nodes.size()) - 1};
    PointwisePlan plan;
    EXPECT_EQ(plan.make(group.spec(GetParam())), "");
    return plan.how();
  };
  EXPECT_EQ(why([](Group& g) { g.add(op(TN_EXPR_NEG, 0)); }), "generated");
  EXPECT_EQ(why([](Group& g) { g.add(op(TN_EXPR_ATAN2, 0, 0)); }),
            "interpreted: no code for opcode " + std::to_string(TN_EXPR_ATAN2));
  EXPECT_EQ(why([](Group& g) { g.inputs[0].strides = {2}; }), "generated");
  EXPECT_EQ(why([](Group& g) { g.inputs[0].type = ElementType::kI32; }),
            "interpreted: an operand of wide integers");
  EXPECT_EQ(why([](Group& g) {
              for (uint32_t i = 0; i < 2000; ++i)
                g.add(op(TN_EXPR_NEG, i));
            }),
            "interpreted: a program of 2001 nodes");
}

// A process that may not make memory executable still runs its groups.
TEST_P(PointwiseCode, InterpretsWhereNoMemoryMayBecomeExecutable) {
  auto without_executable_memory = [level = GetParam()] {
    if (prctl(kSetMemoryDenyWriteExecute, kRefuseExecGain, 0L, 0L, 0L) != 0) std::_Exit(77);
    const std::vector<float> x(100, 3.0F);
    std::vector<float> y(100);
    Group group = Group::flat(100, {x.data()});
    group.results = {group.add(op(TN_EXPR_MUL, 0, 0))};
    PointwisePlan plan;
    if (!plan.make(group.spec(level)).empty()) std::_Exit(2);
    if (plan.how().find("interpreted: no executable memory") != 0) std::_Exit(3);
    void* target = y.data();
    plan.run(make_context(level), group.sources, {&target, 1});
    std::_Exit(y == std::vector<float>(100, 9.0F) ? 0 : 4);
  };
  auto is_right_or_old_kernel = [](int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
  };
  EXPECT_EXIT(without_executable_memory(), is_right_or_old_kernel, "");
}

constexpr Level kLevelsWithCode[] = {Level::kAvx2, Level::kAvx512};
std::string name_of(const testing::TestParamInfo<Level>& info) {
  return level_name(info.param);
}
INSTANTIATE_TEST_SUITE_P(Levels, PointwiseCode, testing::ValuesIn(kLevelsWithCode), name_of);

}  // namespace
}  // namespace tenon::onednn::kernels
