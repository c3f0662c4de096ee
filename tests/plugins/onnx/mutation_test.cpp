// SPDX-License-Identifier: Apache-2.0
// Broken files: the reader answers with a status or a graph that verifies, whatever the bytes.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tenon/host/graph.h"
#include "tenon/tenon.h"

#include "folders.hpp"

namespace {

tn_str str(const std::string& text) {
  return {text.data(), text.size()};
}

// A small encoder of the wire format, enough for a model with every kind of part.
std::string bytes(uint32_t field, const std::string& body) {
  std::string out(1, static_cast<char>(field << 3 | 2));
  size_t n = body.size();
  for (; n >= 0x80; n >>= 7)
    out.push_back(static_cast<char>(n | 0x80));
  out.push_back(static_cast<char>(n));
  return out + body;
}
std::string number(uint32_t field, uint8_t value) {
  std::string out;
  if (field >= 16) out.push_back(static_cast<char>((field << 3 & 0x7f) | 0x80));
  out.push_back(static_cast<char>(field >= 16 ? field >> 4 : field << 3));
  out.push_back(static_cast<char>(value));
  return out;
}
std::string value_info(const std::string& name, uint8_t dim) {
  std::string shape = bytes(1, number(1, dim)) + bytes(1, bytes(2, "n"));
  return bytes(1, name) + bytes(2, bytes(1, number(1, 1) + bytes(2, shape)));
}
std::string node(const std::string& op, const std::string& in, const std::string& out) {
  return bytes(1, in) + bytes(2, out) + bytes(4, op) + bytes(3, "node_" + out);
}

std::string model() {
  std::string weight = number(1, 2) + number(2, 1) + bytes(8, "w") + bytes(9, std::string(8, 'x'));
  std::string body =
      bytes(1, node("Relu", "a", "inner")) + bytes(2, "body") + bytes(12, value_info("inner", 2));
  auto attribute = [&](const std::string& name) {
    return bytes(5, bytes(1, name) + bytes(6, body) + std::string("\xa0\x01\x05", 3));
  };
  std::string branch = node("If", "c", "b") + attribute("then_branch") + attribute("else_branch");
  std::string softmax = node("Softmax", "b", "s") +
                        bytes(5, bytes(1, "axis") + number(3, 1) + std::string("\xa0\x01\x02", 3));
  std::string add = bytes(1, "s") + node("Add", "w", "y");
  std::string condition = bytes(1, "c") + bytes(2, bytes(1, number(1, 9) + bytes(2, "")));
  std::string graph = bytes(1, node("Relu", "x", "a")) + bytes(1, branch) + bytes(1, softmax) +
                      bytes(1, add) + bytes(2, "g") + bytes(5, weight) +
                      bytes(11, value_info("x", 3)) + bytes(11, condition) +
                      bytes(12, value_info("y", 3));
  return number(1, 8) + bytes(8, number(2, 11)) + bytes(2, "maker") + bytes(7, graph);
}

class OnnxMutation : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tenon_onnx_" + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
    std::string config = std::string(R"({"plugin_path": [")") + tenon::test::kPluginFolder + "\"]}";
    ASSERT_EQ(tenon_open(str(config), &session_), nullptr);
    const tn_host* host = tenon_host(session_);
    graphs_ =
        static_cast<const tn_host_graph*>(host->get_interface(host, str("tenon.host.graph/1")));
  }
  void TearDown() override {
    tenon_close(session_);
    std::filesystem::remove_all(folder_);
  }

  // 1: a graph that verifies; 0: a status with a text.
  int load(const std::string& content) {
    std::string path = (folder_ / "m.onnx").string();
    std::ofstream(path, std::ios::binary) << content;
    tn_graph* graph = nullptr;
    tn_status* failed = tenon_load(session_, str(path), str(""), nullptr, &graph);
    if (failed) {
      EXPECT_EQ(graph, nullptr);
      EXPECT_GT(tenon_status_message(failed).len, 0u);
      tenon_status_release(failed);
      return 0;
    }
    tn_status* broken = graphs_->verify(graph);
    EXPECT_EQ(broken, nullptr);
    tenon_status_release(broken);
    graphs_->release(graph);
    return 1;
  }

  std::filesystem::path folder_;
  tenon_session* session_ = nullptr;
  const tn_host_graph* graphs_ = nullptr;
};

TEST_F(OnnxMutation, TheModelItselfLoads) {
  EXPECT_EQ(load(model()), 1);
}

TEST_F(OnnxMutation, EveryTruncationIsAnswered) {
  std::string whole = model();
  for (size_t n = 0; n < whole.size(); ++n)
    load(whole.substr(0, n));
}

TEST_F(OnnxMutation, ChangedBytesAreAnswered) {
  std::mt19937 random(1);
  std::string whole = model();
  int loaded = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string changed = whole;
    for (uint32_t n = 1 + random() % 4; n > 0; --n)
      changed[random() % changed.size()] = static_cast<char>(random());
    // One draw a statement: the order of arguments' evaluation is the compiler's.
    size_t at = random() % changed.size();
    size_t from = random() % 99;
    size_t length = random() % 99;
    if (i % 5 == 0) changed.insert(at, changed, from, length);
    if (i % 7 == 0) changed.erase(at, length % 9);
    loaded += load(changed);
  }
  EXPECT_GT(loaded, 0);  // a changed name or number may well be a model still
  EXPECT_LT(loaded, 4000);
}

TEST_F(OnnxMutation, RandomBytesAreAnswered) {
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    std::string noise(random() % 300, '\0');
    for (char& c : noise)
      c = static_cast<char>(random());
    if (i % 2) noise.insert(0, "\x08\x08\x3a", 3);
    load(noise);
  }
}

TEST_F(OnnxMutation, DeepNestingIsAnswered) {
  std::string deep;
  for (int i = 0; i < 20000; ++i)
    deep = bytes(1, bytes(5, bytes(6, deep.substr(0, 1 << 16))));
  EXPECT_EQ(load(number(1, 8) + bytes(7, deep)), 0);
}

}  // namespace
