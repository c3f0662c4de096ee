// SPDX-License-Identifier: Apache-2.0
// A constant whose elements do not lie row by row, as another program's array may: files hold it
// dense.
#include <algorithm>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

class Strides : public PluginTest {
 protected:
  // [[1, 2, 3], [4, 5, 6]] whose columns lie one after the other.
  Result<Tensor> by_columns() {
    static float numbers[] = {1, 4, 2, 5, 3, 6};
    static int64_t shape[] = {2, 3}, strides[] = {1, 2};
    auto* managed = new DLManagedTensorVersioned{};
    managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed->dl_tensor = {numbers, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
    managed->deleter = [](DLManagedTensorVersioned* self) { delete self; };
    tn_tensor* raw = nullptr;
    Status failed(services.tensor->from_dlpack(ctx_, managed, &raw));
    if (!failed.ok()) return failed;
    return Tensor::take(raw);
  }
  Status build(tn_graph* graph) {
    TN_TRY(tensor, by_columns());
    TN_TRY(edit, Edit::begin(graph));
    TN_TRY(value, edit.constant(tensor, "w"));
    TN_CHECK(services.edit->add_output(edit.raw, str("w"), value.id));
    return edit.commit();
  }
};

TEST_F(Strides, OfAConstantAreGoneInAFile) {
  tn_graph *made = nullptr, *read = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &made))), "");
  ASSERT_EQ(text_of(build(made)), "");
  for (const char* name : {"w.safetensors", "w.onnx"}) {
    std::string path = (folder_ / name).string();
    ASSERT_EQ(text_of(Status(tenon_save(session_, made, str(path), str(""), nullptr))), "") << name;
    ASSERT_EQ(text_of(Status(tenon_load(session_, str(path), str(""), nullptr, &read))), "")
        << name;
    std::vector<Value> constants = Graph{read}.constants();
    ASSERT_EQ(constants.size(), 1u) << name;
    Tensor tensor = constants[0].constant();
    EXPECT_EQ(std::vector<float>(tensor.data<float>(), tensor.data<float>() + 6),
              (std::vector<float>{1, 2, 3, 4, 5, 6}))
        << name;
    services.graph->release(read);
  }
  services.graph->release(made);
}

}  // namespace
}  // namespace tenon::test
