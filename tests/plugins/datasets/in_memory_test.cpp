// SPDX-License-Identifier: Apache-2.0
#include "plugins/datasets/dataset_test.hpp"

namespace tenon::test {
namespace {

class InMemory : public DatasetTest {
 protected:
  Result<Component> made_of(const std::map<std::string, Tensor>& fields) {
    tn_options* options = nullptr;
    TN_CHECK(Status(services.options->create(ctx_, &options)));
    Status set;
    for (const auto& [name, tensor] : fields)
      if (set.ok()) set = Status(services.options->set(options, str(name), any_tensor(tensor)));
    tn_component_ref* raw = nullptr;
    if (set.ok())
      set = Status(
          services.component->create(ctx_, str(kRole), str("datasets.arrays"), options, &raw));
    services.options->release(options);
    TN_CHECK(std::move(set));
    Result<Component> made = Component::share(raw, kRole);
    services.component->release(raw);
    return made;
  }
  Tensor floats(std::vector<int64_t> shape) {
    Tensor out = *Tensor::zeros(ctx_, TN_F32, shape);
    DLTensor t = out.dl();
    for (int64_t i = 0; i < element_count(t); ++i)
      data_of<float>(t)[i] = static_cast<float>(i);
    return out;
  }
};

TEST_F(InMemory, GivesEachTensorAsAField) {
  Result<Component> data = made_of({{"x", floats({3, 2})}, {"weight", floats({3})}});
  ASSERT_TRUE(data.ok());

  EXPECT_EQ(size(*data), 3u);
  EXPECT_EQ(fields(*data), json::parse(R"([{"name": "weight", "dtype": "float32", "shape": []},
                            {"name": "x", "dtype": "float32", "shape": [2]}])"));
  Collected got(ctx_);
  ASSERT_EQ(batch(*data, {2, 0}, &got), "");
  EXPECT_THAT(got.numbers<float>(0), ElementsAre(2, 0));
  EXPECT_THAT(got.numbers<float>(1), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(batch(*data, {3}, &got), HasSubstr("sample 3"));
}

TEST_F(InMemory, RefusesWhatHasNoSamples) {
  EXPECT_THAT(text_of(made_of({}).status()), HasSubstr("expected at least one field"));
  EXPECT_THAT(text_of(made_of({{"x", floats({})}}).status()),
              HasSubstr("field x: expected an array whose first axis counts samples"));
  EXPECT_THAT(
      text_of(made_of({{"x", floats({3})}, {"y", floats({2})}}).status()),
      AllOf(HasSubstr("field y has 2 samples, field x has 3"), Not(HasSubstr("field y: "))));
  EXPECT_THAT(refusal(kRole, "datasets.arrays", {{"x", "x.npz"}}),
              HasSubstr("option x: expected a tensor, got 'x.npz'"));
}

}  // namespace
}  // namespace tenon::test
