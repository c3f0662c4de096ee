// SPDX-License-Identifier: Apache-2.0
#include "scoring.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>

#include "tenon/sdk/listing.hpp"
#include "tenon/sdk/number.hpp"
#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

constexpr std::string_view kPrefix = "pruner.importance.";

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

Status all_float32(const std::vector<Value>& values, std::string_view what) {
  for (Value v : values)
    if (v.dtype() != TN_F32)
      return invalid(
          cat(v.name(), ": expected float32 for ", what, ", got ", dtype_name(v.dtype()),
              v.dtype() == TN_F16 || v.dtype() == TN_BF16 ? "; apply precision.widen first" : ""));
  return {};
}

void add_once(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

const float* numbers_of(const BatchValues* values, Value value) {
  const Tensor* found = values ? values->of(value) : nullptr;
  return found ? found->data<float>() : nullptr;
}

AxisSplit around(const DLTensor& tensor, size_t axis) {
  return {shape_of(tensor), static_cast<int64_t>(axis)};
}

// Sums over batches of scores and of their squares.
class Moments {
 public:
  explicit Moments(size_t n) : sum_(n), squares_(n) {}
  void add(size_t i, const std::vector<double>& scores) {
    sum_[i].resize(scores.size());
    squares_[i].resize(scores.size());
    for (size_t c = 0; c < scores.size(); ++c) {
      sum_[i][c] += scores[c];
      squares_[i][c] += scores[c] * scores[c];
    }
  }
  Scores scores(uint64_t batches) && {
    auto n = static_cast<double>(batches);
    for (size_t i = 0; i < sum_.size(); ++i)
      for (size_t c = 0; c < sum_[i].size(); ++c) {
        double mean = sum_[i][c] / n;
        double spread = std::max(squares_[i][c] / n - mean * mean, 0.0);
        sum_[i][c] = mean;
        squares_[i][c] = batches > 1 ? std::sqrt(spread / (n - 1)) : 0;
      }
    if (batches < 2) squares_.clear();
    return {std::move(sum_), std::move(squares_)};
  }

 private:
  std::vector<std::vector<double>> sum_, squares_;
};

// For each element of the weight the norm of the feature that it multiplies, over all samples and
// positions. A product in groups reads the features of its own group.
std::vector<float> norms_for(const Weight& weight, const Tensor& seen) {
  const AxisSplit in = around(seen.dl(), weight.features);
  std::vector<double> squares(static_cast<size_t>(in.size));
  const float* data = seen.data<float>();
  for (int64_t o = 0; o < in.outer; ++o)
    for (double& one : squares)
      for (int64_t i = 0; i < in.inner; ++i, ++data)
        one += double{*data} * *data;
  const DLTensor numbers = weight.value.constant().dl();
  const AxisSplit reads = around(numbers, weight.reads), makes = around(numbers, weight.makes);
  const auto n_read = static_cast<size_t>(reads.size), n_made = static_cast<size_t>(makes.size);
  const size_t groups = std::max<size_t>(squares.size() / n_read, 1);
  std::vector<float> out(static_cast<size_t>(element_count(numbers)));
  for (size_t at = 0; at < out.size(); ++at) {
    const size_t group = makes.along(at) * groups / n_made;
    out[at] = static_cast<float>(std::sqrt(squares[group * n_read + reads.along(at)]));
  }
  return out;
}

constexpr uint64_t kReadsLoss =
    TN_IMPORTANCE_GRADIENTS | kImportanceEffects | kImportanceSecondOrder | kImportanceGradientFlow;
constexpr uint64_t kReadsData = kReadsLoss | TN_IMPORTANCE_ACTIVATIONS;

// Options that only an importance of these needs has a use for, and their defaults, which may be
// given to any.
struct Use {
  const char* key;
  uint64_t users;
  std::string_view usual;
};
constexpr Use kUses[] = {
    {"label", kReadsLoss, "label"},
    {"loss", kReadsLoss, "cross_entropy"},
    {"axis", kReadsLoss, "1"},
    {"samples", kReadsData, "256"},
    {"batch", kReadsData, "16"},
    {"orders", kImportanceEffects, "1"},
    {"order_seed", kImportanceEffects, "0"},
};

Status check_used(const Options& options, const std::string& importance, uint64_t needs) {
  for (const Use& use : kUses) {
    const tn_any given = options.get(use.key);
    const std::string text =
        given.tag == TN_ANY_I64 ? std::to_string(given.v.i) : options.text(use.key);
    if (text == use.usual || (needs & use.users)) continue;
    return invalid(cat("option ", use.key, ": expected an importance that looks at ",
                       use.users == kImportanceEffects ? "effects (shapley)"
                       : use.users == kReadsData       ? "data"
                                                       : "the loss",
                       ", as it has no effect otherwise, got importance = '", importance, "'"));
  }
  return {};
}

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
    return invalid(cat("option importance: expected one of ",
                       listed_names(ctx, "tenon.importance/1", kPrefix), ", got '", name, "'"));
  }
  out.importance_ = std::move(*made);
  const auto* table = out.importance_.table<tn_importance>();
  if (table->needs) TN_CHECK(table->needs(out.importance_.self(), &out.needs_));
  if (out.needs_ & ~(TN_IMPORTANCE_GRADIENTS | TN_IMPORTANCE_ACTIVATIONS | kImportanceEffects |
                     kImportanceFlow | kImportanceSecondOrder | kImportanceGradientFlow))
    return unsupported(
        cat("option importance: ", id,
            " asks for more than weights, gradients, curvature, activations, effects and flow"));
  TN_CHECK(check_used(options, name, out.needs_));
  TN_TRY(plan, batch_plan(ctx, options));
  out.plan_ = std::move(plan);
  out.plan_.orders = static_cast<uint64_t>(options.integer("orders"));
  out.plan_.seed = static_cast<uint64_t>(options.integer("order_seed"));
  return out;
}

// The mean over batches of what the component says to each; weights alone are one batch.
Result<Scores> Scoring::average(const tn_graph* graph,
                                const Asked& asked,
                                const Cancel& cancel,
                                const ScoreOne& one) const {
  std::optional<BatchValues> gradients, activations;
  std::optional<Effects> effects;
  uint64_t batches = 1;
  if (needs_ & TN_IMPORTANCE_GRADIENTS) {
    TN_CHECK(all_float32(asked.constants, "gradients"));
    TN_TRY(made, BatchValues::gradients(ctx_, graph, asked.constants, plan_, cancel));
    gradients.emplace(std::move(made));
    batches = gradients->batches();
  }
  if (needs_ & (kImportanceSecondOrder | kImportanceGradientFlow)) {
    TN_CHECK(all_float32(asked.constants, "curvature"));
    auto direction = needs_ & kImportanceSecondOrder ? BatchValues::Direction::kWeights
                                                     : BatchValues::Direction::kMeanGradient;
    TN_TRY(made, BatchValues::curvature(ctx_, graph, asked.constants, direction, plan_, cancel));
    gradients.emplace(std::move(made));
    batches = gradients->batches();
  }
  if (needs_ & kImportanceFlow) {
    TN_CHECK(all_float32(asked.constants, "the flow"));
    TN_TRY(made, BatchValues::flow(ctx_, graph, asked.constants, cancel));
    gradients.emplace(std::move(made));
  }
  if (needs_ & TN_IMPORTANCE_ACTIVATIONS) {
    TN_CHECK(all_float32(asked.multiplied, "activations"));
    TN_TRY(made, BatchValues::activations(ctx_, graph, asked.multiplied, plan_));
    activations.emplace(std::move(made));
    batches = activations->batches();
  }
  if (needs_ & kImportanceEffects && !asked.groups.empty()) {
    TN_CHECK(all_float32(asked.multiplied, "effects"));
    TN_TRY(made, Effects::make(ctx_, graph, asked.groups, plan_));
    effects.emplace(std::move(made));
    batches = effects->batches();
  }
  Batch batch{gradients ? &*gradients : nullptr, activations ? &*activations : nullptr,
              effects ? &*effects : nullptr, &cancel};
  Moments moments(asked.n);
  for (uint64_t b = 0; b < batches; ++b) {
    TN_CHECK(cancel.check());
    if (gradients) TN_CHECK(gradients->load(b, cancel));
    if (activations) TN_CHECK(activations->load(b, cancel));
    if (effects) TN_CHECK(effects->load(b));
    for (size_t i = 0; i < asked.n; ++i) {
      TN_TRY(scores, one(i, batch));
      moments.add(i, scores);
    }
  }
  return std::move(moments).scores(batches);
}

Result<Scores> Scoring::channels(const tn_graph* graph,
                                 const Groups& groups,
                                 const std::vector<size_t>& which,
                                 const Cancel& cancel) const {
  Asked asked{.n = which.size()};
  for (size_t g : which) {
    const Group& group = groups.all()[g];
    for (const Member& member : group.members)
      if (is_float(member.value.dtype())) add_once(asked.constants, member.value);
    for (const Member& member : group.activations)
      add_once(asked.multiplied, member.value);
    asked.groups.push_back(&group);
  }
  return average(graph, asked, cancel,
                 [&](size_t i, const Batch& batch) -> Result<std::vector<double>> {
                   std::vector<float> effects;
                   if (batch.effects) {
                     TN_TRY(made, batch.effects->of(i, *batch.cancel));
                     effects = std::move(made);
                   }
                   return score_group(groups.all()[which[i]], which[i], batch, effects);
                 });
}

Result<Scores> Scoring::elements(const tn_graph* graph,
                                 const std::vector<Weight>& weights,
                                 const Cancel& cancel) const {
  Asked asked{.n = weights.size()};
  for (const Weight& weight : weights) {
    asked.constants.push_back(weight.value);
    if (weight.multiplies) add_once(asked.multiplied, weight.multiplies);
    if (!weight.multiplies && needs_ & TN_IMPORTANCE_ACTIVATIONS)
      return unsupported(cat("weight ", weight.value.name(), ": node ", weight.node.name(),
                             " does not say what it multiplies it with; leave it out by the "
                             "option skip"));
  }
  return average(graph, asked, cancel, [&](size_t i, const Batch& batch) {
    return score_elements(weights[i], i, batch);
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
                                                 const Batch& batch,
                                                 const std::vector<float>& effects) const {
  std::vector<Floats> numbers;
  std::vector<tn_group_member> members;
  for (const Member& member : group.members) {
    if (!is_float(member.value.dtype())) continue;
    TN_TRY(floats, Floats::of(member.value));
    numbers.push_back(std::move(floats));
    members.push_back({sizeof(tn_group_member), abi_kind(member.kind), str(member.node.name()),
                       str(member.node.type()), str(member.value.name()), member.outer,
                       member.extent, member.inner, numbers.back().data(),
                       numbers_of(batch.gradients, member.value), member.channel.data()});
  }
  for (const Member& member : group.activations) {
    const Tensor* seen = batch.activations ? batch.activations->of(member.value) : nullptr;
    if (!seen) continue;
    const AxisSplit at = around(seen->dl(), member.axis);
    members.push_back({sizeof(tn_group_member), TN_MEMBER_ACTIVATION,
                       member.node ? str(member.node.name()) : tn_str{},
                       member.node ? str(member.node.type()) : tn_str{}, str(member.value.name()),
                       static_cast<uint64_t>(at.outer), static_cast<uint64_t>(at.size),
                       static_cast<uint64_t>(at.inner), seen->data<float>(), nullptr,
                       member.channel.data()});
  }
  if (!effects.empty()) {
    uint64_t n = group.n_channels();
    members.push_back({sizeof(tn_group_member), kMemberEffect, str(group.layer), tn_str{},
                       str(kLoss), effects.size() / n, n, 1, effects.data(), nullptr, nullptr});
  }
  std::vector<const tn_group_member*> pointers;
  for (const tn_group_member& member : members)
    pointers.push_back(&member);
  return score({sizeof(tn_channel_group), 0, str(group.layer), index, group.n_channels(),
                pointers.size(), pointers.data()});
}

// A single weight is a channel of its own, and the norm of what it is multiplied with stands for
// the values: one number for each weight, in the weight's own order.
Result<std::vector<double>> Scoring::score_elements(const Weight& weight,
                                                    uint64_t index,
                                                    const Batch& batch) const {
  TN_TRY(floats, Floats::of(weight.value));
  auto count = static_cast<uint64_t>(weight.value.type().elements());
  tn_group_member made{sizeof(tn_group_member),
                       TN_MEMBER_MAKES,
                       str(weight.node.name()),
                       str(weight.node.type()),
                       str(weight.value.name()),
                       1,
                       count,
                       1,
                       floats.data(),
                       numbers_of(batch.gradients, weight.value),
                       nullptr};
  std::vector<const tn_group_member*> members{&made};
  std::vector<float> norms;
  tn_group_member seen = made;
  if (batch.activations) {
    norms = norms_for(weight, *batch.activations->of(weight.multiplies));
    seen.kind = TN_MEMBER_ACTIVATION;
    seen.value = str(weight.multiplies.name());
    seen.data = norms.data();
    seen.gradient = nullptr;
    members.push_back(&seen);
  }
  return score({sizeof(tn_channel_group), 0, str(weight.value.name()), index, count, members.size(),
                members.data()});
}

void divide_by_mean(std::vector<double>& scores) {
  double mean = std::accumulate(scores.begin(), scores.end(), 0.0) /
                static_cast<double>(std::max<size_t>(scores.size(), 1));
  if (!(std::abs(mean) > 0)) return;
  for (double& one : scores)
    one /= std::abs(mean);
}

}  // namespace tenon::pruner
