// SPDX-License-Identifier: Apache-2.0
#pragma once
// Augmentations over a small data set of pictures and labels.

#include "plugins/datasets/dataset_test.hpp"
#include "plugins/datasets/zip_writer.hpp"

namespace tenon::test {

class AugmentTest : public DatasetTest {
 protected:
  // So many pictures of this shape, as bytes or divided by 255; label i of picture i, modulo 3.
  Component pictures(const std::string& dtype,
                     const std::string& shape,
                     const std::vector<int>& at,
                     int n) {
    std::vector<uint8_t> bytes(at.begin(), at.end());
    std::vector<float> floats;
    for (int x : at)
      floats.push_back(static_cast<float>(x) / 255);
    std::vector<int64_t> labels;
    for (int i = 0; i < n; ++i)
      labels.push_back(i % 3);
    std::string full = cat("(", n, ", ", shape, ")");
    std::string image = dtype == "uint8" ? npy("'|u1'", full, bytes_of_numbers<uint8_t>(bytes))
                                         : npy("'<f4'", full, bytes_of_numbers<float>(floats));
    std::string label = npy("'<i8'", cat("(", n, ",)"), bytes_of_numbers<int64_t>(labels));
    std::string path =
        write(cat("p", ++files_, ".npz"), zip({{"image.npy", image}, {"label.npy", label}}));
    return open("datasets.npz", {{"path", path}});
  }
  Result<Component> over(const Component& data, std::string_view id, const json& given) {
    tn_options* options = nullptr;
    TN_CHECK(Status(services.options->create(ctx_, &options)));
    Status set(services.options->parse(options, str(given.dump())));
    tn_any live{TN_ANY_COMPONENT, 0, 1, {.p = data.raw()}};
    if (set.ok()) set = Status(services.options->set(options, str("data"), live));
    tn_component_ref* raw = nullptr;
    if (set.ok())
      set = Status(services.component->create(ctx_, str(kRole), str(id), options, &raw));
    services.options->release(options);
    TN_CHECK(std::move(set));
    Result<Component> made = Component::share(raw, kRole);
    services.component->release(raw);
    return made;
  }
  Component made(const Component& data, std::string_view id, const json& given = json::object()) {
    Result<Component> out = over(data, id, given);
    EXPECT_TRUE(out.ok()) << text_of(out.status());
    return out.ok() ? std::move(*out) : Component();
  }
  std::string refused(const Component& data,
                      std::string_view id,
                      const json& given = json::object()) {
    Result<Component> out = over(data, id, given);
    return out.ok() ? "" : text_of(out.status());
  }
  // Field `field` of these samples as numbers.
  std::vector<float> take(const Component& data,
                          const std::vector<uint64_t>& index,
                          uint64_t seed,
                          size_t field = 0) {
    Collected out(ctx_);
    EXPECT_EQ(text_of(Status(data.table<tn_dataset>()->batch(data.self(), index.data(),
                                                             index.size(), seed, &out.raw))),
              "");
    shape_ = out.shape(field);
    DLTensor t = out.tensors[field].dl();
    if (dtype_of(t) == TN_F32) return out.numbers<float>(field);
    std::vector<float> wide;
    if (dtype_of(t) == TN_U8)
      for (uint8_t x : out.numbers<uint8_t>(field))
        wide.push_back(x);
    else
      for (int64_t x : out.numbers<int64_t>(field))
        wide.push_back(static_cast<float>(x));
    return wide;
  }
  // 0, 1, 2, ... as pictures of one channel.
  Component counted(const std::string& dtype, int n, int height, int width) {
    std::vector<int> at(static_cast<size_t>(n * height * width));
    for (size_t i = 0; i < at.size(); ++i)
      at[i] = static_cast<int>(i) % 256;
    return pictures(dtype, cat("1, ", height, ", ", width), at, n);
  }

  std::vector<int64_t> shape_;
  int files_ = 0;
};

}  // namespace tenon::test
