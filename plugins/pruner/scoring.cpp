// SPDX-License-Identifier: Apache-2.0
#include "scoring.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>

#include "tenon/sdk/number.hpp"

namespace tenon::pruner {
namespace {

constexpr std::string_view kPrefix = "pruner.importance.";

// The known importances, ours by their last word.
std::string known_names(tn_ctx* ctx) {
  StringSink text;
  Status listed(services.component->list(ctx, str("tenon.importance/1"), text.get()));
  nlohmann::json all = nlohmann::json::parse(text.text, nullptr, false);
  std::string out;
  for (const nlohmann::json& one : all.is_array() ? all : nlohmann::json::array()) {
    std::string id = one.value("id", "");
    if (id.starts_with(kPrefix)) id = id.substr(kPrefix.size());
    out += (out.empty() ? "" : ", ") + id;
  }
  return out;
}

uint32_t abi_kind(Kind kind) {
  if (kind == Kind::kMakes) return TN_MEMBER_MAKES;
  return kind == Kind::kReads ? TN_MEMBER_READS : TN_MEMBER_VECTOR;
}

// The numbers of a constant as float, borrowed when they are float already.
class Floats {
 public:
  static Result<Floats> of(Value value) {
    Floats out;
    out.tensor_ = value.constant();
    DLTensor t = out.tensor_.dl();
    if (dtype_of(t) == TN_F32) {
      out.data_ = data_of<const float>(t);
      return out;
    }
    TN_TRY(converted, numbers_as<float>(t));
    out.converted_ = std::move(converted);
    out.data_ = out.converted_.data();
    return out;
  }
  Floats(Floats&&) = default;
  const float* data() const { return data_; }

 private:
  Floats() = default;
  Tensor tensor_;
  std::vector<float> converted_;
  const float* data_ = nullptr;
};

}  // namespace

Result<Scoring> Scoring::create(tn_ctx* ctx, const Options& options) {
  Scoring out;
  out.ctx_ = ctx;
  std::string name = options.text("importance");
  std::string id = name.find('.') == std::string::npos ? cat(kPrefix, name) : name;
  Result<Component> made =
      Component::create(ctx, "tenon.importance/1", id, options.text("importance_options"));
  if (!made.ok()) {
    Status why = std::move(made).status();
    if (why.code() != TN_NOT_FOUND) return std::move(why).in("option importance");
    return invalid(
        cat("option importance: expected one of ", known_names(ctx), ", got '", name, "'"));
  }
  out.importance_ = std::move(*made);
  const auto* table = out.importance_.table<tn_importance>();
  if (table->needs) TN_CHECK(table->needs(out.importance_.self(), &out.needs_));
  if (out.needs_ & ~TN_IMPORTANCE_GRADIENTS)
    return unsupported(cat("option importance: ", id,
                           " asks for more than weights and gradients, which is all there is"));
  TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
  out.plan_.data = std::move(data);
  out.plan_.samples = static_cast<uint64_t>(options.integer("samples"));
  out.plan_.batch = static_cast<uint64_t>(options.integer("batch"));
  out.plan_.label = options.text("label");
  out.plan_.loss = options.text("loss");
  return out;
}

// The mean over batches of what the component says to each; weights alone are one batch.
Result<Scores> Scoring::average(const tn_graph* graph,
                                const std::vector<Value>& values,
                                size_t n,
                                const Cancel& cancel,
                                const ScoreOne& one) const {
  Scores out(n);
  std::optional<Gradients> gradients;
  if (needs_ & TN_IMPORTANCE_GRADIENTS) {
    for (Value v : values)
      if (v.dtype() != TN_F32)
        return invalid(
            cat(v.name(), ": expected float32 for gradients, got ", dtype_name(v.dtype())));
    TN_TRY(made, Gradients::make(ctx_, graph, values, plan_, cancel));
    gradients.emplace(std::move(made));
  }
  uint64_t batches = gradients ? gradients->batches() : 1;
  for (uint64_t b = 0; b < batches; ++b) {
    TN_CHECK(cancel.check());
    if (gradients) TN_CHECK(gradients->load(b, cancel));
    for (size_t i = 0; i < n; ++i) {
      TN_TRY(scores, one(i, gradients ? &*gradients : nullptr));
      out[i].resize(scores.size());
      for (size_t c = 0; c < scores.size(); ++c)
        out[i][c] += scores[c] / static_cast<double>(batches);
    }
  }
  return out;
}

Result<Scores> Scoring::channels(const tn_graph* graph,
                                 const Groups& groups,
                                 const std::vector<size_t>& which,
                                 const Cancel& cancel) const {
  std::vector<Value> values;
  for (size_t g : which)
    for (const Member& member : groups.all()[g].members)
      if (is_float(member.value.dtype()) &&
          std::find(values.begin(), values.end(), member.value) == values.end())
        values.push_back(member.value);
  return average(graph, values, which.size(), cancel, [&](size_t i, const Gradients* gradients) {
    return score_group(groups.all()[which[i]], which[i], gradients);
  });
}

Result<Scores> Scoring::elements(const tn_graph* graph,
                                 const std::vector<Weight>& weights,
                                 const Cancel& cancel) const {
  std::vector<Value> values;
  for (const Weight& weight : weights)
    values.push_back(weight.value);
  return average(graph, values, weights.size(), cancel, [&](size_t i, const Gradients* gradients) {
    return score_elements(weights[i], i, gradients);
  });
}

Result<std::vector<double>> Scoring::score(const tn_channel_group& group) const {
  const auto* table = importance_.table<tn_importance>();
  std::vector<double> scores(static_cast<size_t>(group.n_channels));
  Status failed(table->score(importance_.self(), &group, scores.data()));
  if (!failed.ok()) return std::move(failed).in(cat("scores of ", view(group.name)));
  for (double one : scores)
    if (!std::isfinite(one))
      return Status(TN_FAILED_PRECONDITION,
                    cat(importance_.id(), ": expected a finite score for each channel of ",
                        view(group.name), ", got ", one, " (are its weights finite?)"));
  return scores;
}

Result<std::vector<double>> Scoring::score_group(const Group& group,
                                                 uint64_t index,
                                                 const Gradients* gradients) const {
  std::vector<Floats> numbers;
  std::vector<tn_group_member> members;
  for (const Member& member : group.members) {
    if (!is_float(member.value.dtype())) continue;
    TN_TRY(floats, Floats::of(member.value));
    numbers.push_back(std::move(floats));
    members.push_back({sizeof(tn_group_member), abi_kind(member.kind), str(member.node.name()),
                       str(member.node.type()), str(member.value.name()), member.outer,
                       member.extent, member.inner, numbers.back().data(),
                       gradients ? gradients->of(member.value) : nullptr, member.channel.data()});
  }
  std::vector<const tn_group_member*> pointers;
  for (const tn_group_member& member : members)
    pointers.push_back(&member);
  return score({sizeof(tn_channel_group), 0, str(group.layer), index, group.n_channels(),
                pointers.size(), pointers.data()});
}

Result<std::vector<double>> Scoring::score_elements(const Weight& weight,
                                                    uint64_t index,
                                                    const Gradients* gradients) const {
  TN_TRY(floats, Floats::of(weight.value));
  auto count = static_cast<uint64_t>(weight.value.type().elements());
  tn_group_member member{sizeof(tn_group_member),
                         TN_MEMBER_MAKES,
                         str(weight.node.name()),
                         str(weight.node.type()),
                         str(weight.value.name()),
                         1,
                         count,
                         1,
                         floats.data(),
                         gradients ? gradients->of(weight.value) : nullptr,
                         nullptr};
  const tn_group_member* members[] = {&member};
  return score({sizeof(tn_channel_group), 0, str(weight.value.name()), index, count, 1, members});
}

void divide_by_mean(std::vector<double>& scores) {
  double mean = std::accumulate(scores.begin(), scores.end(), 0.0) /
                static_cast<double>(std::max<size_t>(scores.size(), 1));
  if (!(std::abs(mean) > 0)) return;
  for (double& one : scores)
    one /= std::abs(mean);
}

}  // namespace tenon::pruner
