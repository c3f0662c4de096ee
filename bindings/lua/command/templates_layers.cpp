// SPDX-License-Identifier: Apache-2.0
// Templates of layers and initializers.
#include "templates.hpp"

namespace tenon::command {

const char* const kLayerTemplate = R"code(@include@ "tenon/sdk/role/layer.hpp"

namespace {

// y = x * weight, where weight [n] has a number for each place of the last axis.
class @Class@ {
 public:
  static tenon::Result<@Class@> create(tn_ctx* ctx, const tenon::Options& options) {
    @Class@ made;
    TN_TRY(init, tenon::component_option(ctx, options, "init", "tenon.initializer/1"));
    made.init_ = std::move(init);
    return made;
  }

  tenon::Result<std::vector<tenon::Value>> build(tenon::LayerUse& use) const {
    if (use.n_inputs() != 1) return tenon::invalid("inputs: expected 1");
    tenon::Type type = use.input(0).type();
    if (!type.ranked || type.rank() < 1 || type.dims.back() < 1 || type.dtype != TN_F32)
      return tenon::invalid("input 0: expected float32 with a known size of the last axis");
    tenon::Value weight = use.parameter({"weight", {type.dims.back()}, &init_});
    return use.outputs({use.op("Mul", {use.input(0), weight})});
  }

 private:
  tenon::Component init_;
};

}  // namespace

TENON_LAYER(@name@, @Class@, "@id@", "a factor for each place of the last axis",
            R"({"properties": {"init": {"type": "component", "role": "tenon.initializer/1",
                                        "default": "layers.ones",
                                        "description": "of the factors"}}})")
)code";

const char* const kInitializerTemplate = R"code(@include@ "tenon/sdk/role/initializer.hpp"

namespace {

// Uniform within 1 / fan_in.
struct @Class@ {
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }
  tenon::Status fill(const tn_initial& of, std::span<float> out) const {
    for (size_t i = 0; i < out.size(); ++i) {
      double drawn = 0;  // number i of the stream: any part can be drawn by itself
      tenon::services.random->uniform(of.seed, of.stream, i, &drawn, 1);
      out[i] = static_cast<float>((2 * drawn - 1) / static_cast<double>(of.fan_in ? of.fan_in : 1));
    }
    return {};
  }
};

}  // namespace

TENON_INITIALIZER(@name@, @Class@, "@id@", "uniform within 1 / fan_in", "{}")
)code";

}  // namespace tenon::command
