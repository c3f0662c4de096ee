// SPDX-License-Identifier: Apache-2.0
// Templates of readers, writers, data sets and metrics.
#include "templates.hpp"

namespace tenon::command {

const char* const kReaderTemplate = R"code(@include@ "tenon/sdk/role/reader.hpp"

namespace {

// A file "@name@ 4" is the model y = Relu(x) of four numbers.
struct @Class@ {
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }

  static std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  int32_t probe(std::span<const std::byte> head, std::string_view) {
    return text_of(head).starts_with("@name@ ") ? 100 : 0;
  }
  tenon::Status read(tn_blob* blob, tn_graph* into, const tenon::Cancel&) {
    constexpr std::string_view kHead = "@name@ ";
    uint64_t bytes = tenon::services.blob->size(blob);
    const void* data = nullptr;
    TN_CHECK(tenon::services.blob->map(blob, 0, bytes, &data));
    std::string_view text(static_cast<const char*>(data), bytes);
    int64_t size = 0;
    if (text.starts_with(kHead)) {
      for (char c : text.substr(kHead.size())) {
        if (c < '0' || c > '9' || size > 1000000)
          return tenon::invalid("expected a number below 10000000 after '@name@ '");
        size = 10 * size + (c - '0');
      }
    }
    if (size == 0) return tenon::invalid("expected '@name@ ' and a number above 0");
    TN_TRY(edit, tenon::Edit::begin(into));
    TN_TRY(x, edit.input("x", tenon::Type(TN_F32, {size})));
    TN_TRY(y, edit.op("Relu", {x}));
    TN_CHECK(edit.output("y", y));
    return edit.commit();
  }
};

}  // namespace

TENON_READER(@name@, @Class@, "@id@", "a size as a model", R"({"extensions": [".@name@"]})")
)code";

const char* const kWriterTemplate = R"code(@include@ "tenon/sdk/role/writer.hpp"

namespace {

// One line for each node: its operator and its name.
struct @Class@ {
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }

  tenon::Status write(const tn_graph* raw, tn_target* target, const tenon::Cancel& cancel) {
    std::string text;
    for (tenon::Node node : tenon::Graph{raw}.nodes()) {
      TN_CHECK(cancel.check());
      text += tenon::cat(node.type(), " ", node.name(), "\n");
    }
    return tenon::Status(tenon::services.blob->write(target, {}, text.data(), text.size()));
  }
};

}  // namespace

TENON_WRITER(@name@, @Class@, "@id@", "operators and names", R"({"extensions": [".@name@"]})")
)code";

const char* const kDatasetTemplate = R"code(@include@ "tenon/sdk/role/dataset.hpp"

namespace {

// Sample i is the number i and its square.
struct @Class@ {
  uint64_t n;
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options& options) {
    return @Class@{static_cast<uint64_t>(options.integer("samples"))};
  }

  uint64_t size() const { return n; }
  tenon::Status fields(tenon::Sink& out) const {
    return out.write(R"([{"name": "x", "dtype": "float32", "shape": [1]},
                         {"name": "y", "dtype": "float32", "shape": [1]}])");
  }
  tenon::Status batch(std::span<const uint64_t> index, uint64_t, tenon::Outputs outputs) const {
    const int64_t shape[] = {static_cast<int64_t>(index.size()), 1};
    TN_TRY(x, outputs.get(0, TN_F32, shape));
    TN_TRY(y, outputs.get(1, TN_F32, shape));
    for (size_t i = 0; i < index.size(); ++i) {
      if (index[i] >= n) return tenon::invalid(tenon::cat("sample ", index[i], " of ", n));
      auto number = static_cast<float>(index[i]);
      tenon::data_of<float>(x)[i] = number;
      tenon::data_of<float>(y)[i] = number * number;
    }
    return {};
  }
};

}  // namespace

TENON_DATASET(@name@, @Class@, "@id@", "numbers and their squares",
              R"({"properties": {"samples": {"type": "integer", "minimum": 1, "default": 100,
                                             "description": "how many there are"}}})")
)code";

const char* const kMetricTemplate = R"code(@include@ <cmath>

@include@ "tenon/sdk/role/metric.hpp"

namespace {

// The largest distance between a number of the output and the same number of the other model's.
struct @Class@ {
  static constexpr bool kHigherIsBetter = false;
  double largest = 0;
  uint64_t seen = 0;
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }

  tenon::Status update(std::span<const DLTensor* const> out,
                       std::span<const DLTensor* const> other) {
    if (out.empty() || out.size() != other.size())
      return tenon::invalid(tenon::cat("expected ", out.size(), " outputs, got ", other.size()));
    for (size_t k = 0; k < out.size(); ++k) {
      const DLTensor &a = *out[k], &b = *other[k];
      bool same = tenon::dtype_of(a) == TN_F32 && tenon::dtype_of(b) == TN_F32 &&
                  tenon::element_count(a) == tenon::element_count(b);
      if (!same) return tenon::invalid("expected two float32 tensors of one shape");
      for (int64_t i = 0; i < tenon::element_count(a); ++i, ++seen)
        largest = std::fmax(largest, std::fabs(static_cast<double>(
                                         tenon::data_of<const float>(a)[i] -
                                         tenon::data_of<const float>(b)[i])));
    }
    return {};
  }
  tenon::Result<double> value() const {
    if (seen == 0) return tenon::Status(TN_FAILED_PRECONDITION, "it has seen nothing");
    return largest;
  }
  tenon::Status details(tenon::Sink& out) const {
    return out.write(tenon::cat("{\"numbers\": ", seen, "}"));
  }
};

}  // namespace

TENON_METRIC(@name@, @Class@, "@id@", "the largest distance", R"({"against": "outputs"})")
)code";

}  // namespace tenon::command
