// SPDX-License-Identifier: Apache-2.0
// "quantizer.sensitivity": what 8 bits do to each node alone, weights and activations apart. The
// graph stays as it is; the report is the answer, the node that loses most first:
// {"layers": [{"node", "op", "role", "weight_elements", "noise", "snr_db", "weights_snr_db",
// "activations_snr_db"}], "calibration", "passes"}. noise: that of the node's result over its
// signal, the number by which the list is ordered. role: compute, joiner (stores and adds what
// others compute), or stored (weights in 8 bits, computation in float).
#include <algorithm>

#include "tenon/sdk/decibels.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "calibrated_pass.hpp"
#include "calibration_options.hpp"
#include "noise.hpp"
#include "ranges.hpp"
#include "report.hpp"

namespace tenon::quantizer {
namespace {

nlohmann::ordered_json row_of(const NodeNoise& one) {
  return {{"node", one.node},
          {"op", one.op},
          {"role", one.is_stored    ? "stored"
                   : one.is_compute ? "compute"
                                    : "joiner"},
          {"weight_elements", one.weight_elements},
          {"noise", one.ratio()},
          {"snr_db", decibels(one.signal, one.weights + one.activations)},
          {"weights_snr_db", decibels(one.signal, one.weights)},
          {"activations_snr_db", decibels(one.signal, one.activations)}};
}

class Sensitivity : public CalibratedPass {
 public:
  static Result<Sensitivity> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(base, CalibratedPass::create(ctx, options));
    return Sensitivity(std::move(base));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    Graph graph{raw};
    TN_CHECK(choices_.selected.check(graph));
    TN_TRY(assignment, Assignment::make(graph, choices_));
    TN_CHECK(check_something_taken(assignment));
    TN_TRY(feed, Feed::make(ctx_, data_.data, graph, calibration_feed(data_)));
    TN_CHECK(check_ranges(assignment, graph));
    TN_TRY(ranges, ranges_of(ctx_, graph, assignment, &feed, plan_, cancel));
    std::vector<Value> results;
    for (const Decision& one : assignment.nodes())
      if (Value result = Noise::result_of(one.node)) results.push_back(result);
    TN_TRY(padded, Padded::find(graph, plan_.mask, results, &feed));
    TN_TRY(noise, Noise::make(graph, assignment, ranges.params, insertion_, choices_.selected,
                              std::move(padded)));
    TN_CHECK(noise.measure(ctx_, &feed, plan_.backends, cancel));
    std::vector<NodeNoise> nodes = noise.nodes();
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const NodeNoise& a, const NodeNoise& b) { return a.ratio() > b.ratio(); });
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    for (const NodeNoise& one : nodes)
      layers.push_back(row_of(one));
    nlohmann::ordered_json report{{"layers", layers},
                                  {"calibration",
                                   {{"samples", feed.samples()},
                                    {"observer", ranges.calibrated.observer},
                                    {"backend", ranges.calibrated.backend}}},
                                  {"passes", 2}};  // over the data: for ranges, and for noise
    return sink.write(report.dump());
  }

 private:
  explicit Sensitivity(CalibratedPass base) : CalibratedPass(std::move(base)) {}
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(sensitivity,
           tenon::quantizer::Sensitivity,
           "quantizer.sensitivity",
           "what 8 bits do to each node alone, weights and activations apart, as report",
           R"({"required": ["data"], "properties": {)" TENON_CALIBRATION_OPTIONS
           "," TENON_RANGES_OPTION "," TENON_STORAGE_OPTIONS "}}")
