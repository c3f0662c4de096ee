// SPDX-License-Identifier: Apache-2.0
// ONNX's own single-operator cases from the files of tests/conformance/pack_cases.py, against their
// expected outputs. TENON_TEST_ONNX_CASES names the folder (none: skipped), TENON_TEST_BACKEND
// another backend than cuda. A case that the reference fails as well is skipped: it is listed in
// tests/conformance/expected_failures.txt.

#include <cmath>
#include <iterator>

#include "tenon/role/backend.h"

#include "tenon/sdk/number.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon {
namespace {

using tenon::test::json;

std::string variable(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value ? value : fallback;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Archive {
  json cases = json::array();
  std::string bytes;

  static const Archive& get() {
    static const Archive made = [] {
      Archive out;
      std::filesystem::path folder = variable("TENON_TEST_ONNX_CASES", "");
      if (folder.empty()) return out;
      out.cases = json::parse(read(folder / "cases.json"));
      out.bytes = read(folder / "cases.bin");
      return out;
    }();
    return made;
  }
  std::string_view at(const json& place) const {
    return std::string_view(bytes).substr(place[0].get<size_t>(), place[1].get<size_t>());
  }
};

uint32_t dtype_in(const json& tensor) {
  return TN_DTYPE(tensor["code"].get<uint32_t>(), tensor["bits"].get<uint32_t>());
}
std::vector<int64_t> dims_in(const json& tensor) {
  return tensor["shape"].get<std::vector<int64_t>>();
}

// Of 8-bit reals: NaN has more than one code.
bool is_nan_code(uint32_t dtype, unsigned char code) {
  if (TN_DTYPE_CODE(dtype) == kDLFloat8_e4m3fn) return (code & 0x7f) == 0x7f;
  return TN_DTYPE_CODE(dtype) == kDLFloat8_e5m2 && (code & 0x7f) > 0x7c;
}

std::string byte_difference(const unsigned char* got, std::string_view wanted, uint32_t dtype) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto code = static_cast<unsigned char>(wanted[i]);
    bool is_same = got[i] == code || (is_nan_code(dtype, got[i]) && is_nan_code(dtype, code));
    if (!is_same) return cat("byte ", i, ": expected ", int{code}, ", got ", int{got[i]});
  }
  return "";
}

// Empty: alike as NumPy's assert_allclose has it, or to the bit where elements are no numbers.
std::string difference(const DLTensor& got, const json& wanted, const json& one) {
  std::string_view bytes = Archive::get().at(wanted["at"]);
  std::vector<int64_t> dims = dims_in(wanted);
  DenseView view(dtype_in(wanted), dims, bytes.data());
  if (dtype_of(got) != dtype_in(wanted)) return "another type";
  if (!std::ranges::equal(shape_of(got), dims)) return "another shape";
  Result<std::vector<double>> a = numbers_as<double>(got), b = numbers_as<double>(*view);
  if (!a.ok() || !b.ok())
    return byte_difference(data_of<const unsigned char>(got), bytes, dtype_in(wanted));
  double rtol = one["rtol"], atol = one["atol"];
  for (size_t i = 0; i < a->size(); ++i) {
    double x = (*a)[i], y = (*b)[i];
    bool is_same = x == y || (std::isnan(x) && std::isnan(y));
    if (!is_same && !(std::abs(x - y) <= atol + rtol * std::abs(y)))
      return cat("element ", i, ": expected ", y, ", got ", x);
  }
  return "";
}

class OnnxCases : public test::PluginTest, public testing::WithParamInterface<size_t> {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    backend_ = variable("TENON_TEST_BACKEND", "cuda");
    Result<Component> made = make("tenon.backend/1", backend_);
    ASSERT_TRUE(made.ok()) << test::text_of(made.status());
    StringSink sink;
    Status asked(made->table<tn_backend>()->devices(made->self(), sink.get()));
    ASSERT_TRUE(asked.ok()) << asked.message();
    for (const json& device : json::parse(sink.text))
      if (device.contains("why")) GTEST_SKIP() << device["why"];
  }

  OwnedGraph load(const json& one) {
    std::filesystem::path path = folder_ / "model.onnx";
    std::ofstream(path, std::ios::binary) << Archive::get().at(one["model"]);
    tn_graph* raw = nullptr;
    Status loaded(tenon_load(session_, str(path.string()), {}, nullptr, &raw));
    why_ = test::text_of(std::move(loaded));
    return OwnedGraph::take(raw);
  }

  // What is wrong with the case on a backend; empty: nothing.
  std::string run(const tn_graph* graph, const json& one, const std::string& backend) {
    tn_plan* plan = nullptr;
    json options = {{"backend", backend}};
    Status compiled(tenon_compile(session_, graph, str(options.dump()), &plan));
    if (!compiled.ok()) return test::text_of(std::move(compiled));
    std::vector<DenseView> views;
    for (const json& input : one["inputs"])
      views.emplace_back(dtype_in(input), dims_in(input), Archive::get().at(input["at"]).data());
    std::vector<const DLTensor*> pointers;
    for (const DenseView& view : views)
      pointers.push_back(view.get());
    test::Collected got(ctx_);
    Status ran(tenon_run(plan, pointers.data(), pointers.size(), &got.raw, nullptr));
    StringSink told;
    if (Status(services.eval->describe(plan, told.get())).ok())
      fallbacks_ = json::parse(told.text)["fallback_nodes"].size();
    services.eval->release(plan);
    if (!ran.ok()) return test::text_of(std::move(ran));
    if (got.tensors.size() != one["outputs"].size()) return "another number of outputs";
    for (size_t i = 0; i < got.tensors.size(); ++i) {
      std::string apart = difference(got.tensors[i].dl(), one["outputs"][i], one);
      if (!apart.empty()) return cat("output ", i, ": ", apart);
    }
    return "";
  }

  static void TearDownTestSuite() {
    std::printf("%d cases pass, %d of them wholly on the device\n", n_passed_, n_whole_);
  }

  std::string backend_, why_;
  size_t fallbacks_ = 0;
  static inline int n_passed_ = 0, n_whole_ = 0;
};

TEST_P(OnnxCases, GiveWhatIsExpected) {
  const json& one = Archive::get().cases[GetParam()];
  OwnedGraph graph = load(one);
  if (!graph.get()) GTEST_SKIP() << "not loaded: " << why_;

  std::string wrong = run(graph.get(), one, backend_);
  if (wrong.empty()) {
    ++n_passed_;
    n_whole_ += fallbacks_ == 0;
    return;
  }
  std::string also = backend_ == "reference" ? wrong : run(graph.get(), one, "reference");
  if (!also.empty()) GTEST_SKIP() << "fails on the reference too: " << also;
  FAIL() << wrong;
}

std::vector<size_t> numbers_of_cases() {
  std::vector<size_t> out;
  for (size_t i = 0; i < Archive::get().cases.size(); ++i)
    out.push_back(i);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Onnx,
                         OnnxCases,
                         testing::ValuesIn(numbers_of_cases()),
                         [](const testing::TestParamInfo<size_t>& param) {
                           return Archive::get().cases[param.param]["name"].get<std::string>();
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnnxCases);

TEST(OnnxCaseFiles, AreGiven) {
  if (Archive::get().cases.empty())
    GTEST_SKIP() << "TENON_TEST_ONNX_CASES names no folder of cases";
}

}  // namespace
}  // namespace tenon
