// SPDX-License-Identifier: Apache-2.0
#include "scoring.hpp"

#include <cmath>
#include <numeric>

#include "tenon/sdk/number.hpp"

namespace tenon::pruner {
namespace {

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

Result<Component> importance_option(tn_ctx* ctx, const Options& options) {
  std::string name = options.text("importance");
  std::string id = name.find('.') == std::string::npos ? cat("pruner.importance.", name) : name;
  Result<Component> made =
      Component::create(ctx, "tenon.importance/1", id, options.text("importance_options"));
  if (!made.ok()) return made.status().in("option importance");
  return made;
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

Result<std::vector<double>> Scoring::channels(const Group& group, uint64_t index) const {
  std::vector<Floats> numbers;
  std::vector<tn_group_member> members;
  for (const Member& member : group.members) {
    if (!is_float(member.value.dtype())) continue;
    TN_TRY(floats, Floats::of(member.value));
    numbers.push_back(std::move(floats));
    members.push_back({sizeof(tn_group_member), abi_kind(member.kind), str(member.node.name()),
                       str(member.node.type()), str(member.value.name()), member.outer,
                       member.extent, member.inner, numbers.back().data(), nullptr,
                       member.channel.data()});
  }
  std::vector<const tn_group_member*> pointers;
  for (const tn_group_member& member : members)
    pointers.push_back(&member);
  return score({sizeof(tn_channel_group), 0, str(group.layer), index, group.n_channels(),
                pointers.size(), pointers.data()});
}

Result<std::vector<double>> Scoring::elements(const Weight& weight, uint64_t index) const {
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
                         nullptr,
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
