// SPDX-License-Identifier: Apache-2.0
// "seams.threads": a collective whose ranks are threads of this process. Ranks meet by the group's
// name wherever they were made, so the groups are the library's own.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tenon/sdk/number.hpp"
#include "tenon/sdk/role/collective.hpp"

namespace tenon::test {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(5);  // at a cancel request

// What the last rank to come does for all: in and out by rank.
using Work = std::function<Status(const std::vector<const DLTensor*>& in,
                                  const std::vector<const DLTensor*>& out)>;

class Group {
 public:
  explicit Group(uint32_t ranks) : in_(ranks), out_(ranks), is_there_(ranks, false) {}
  size_t ranks() const { return in_.size(); }

  Status join(uint32_t rank) {
    std::lock_guard lock(mutex_);
    if (is_there_[rank]) return invalid(cat("option rank: ", rank, " is in the group already"));
    is_there_[rank] = true;
    return {};
  }
  // Who waits for this rank waits in vain.
  void leave(uint32_t rank) {
    std::lock_guard lock(mutex_);
    is_there_[rank] = false;
    if (n_waiting_ > 0) give_up(TN_UNAVAILABLE, cat("rank ", rank, " has left"));
    has_lost_one_ = true;
  }

  Status meet(uint32_t rank,
              const std::string& call,
              const DLTensor& in,
              const DLTensor& out,
              const Cancel& cancel,
              const Work& work) {
    std::unique_lock lock(mutex_);
    if (why_.empty() && has_lost_one_) give_up(TN_UNAVAILABLE, "a rank has left");
    if (!why_.empty()) return {code_, why_};
    if (n_waiting_ > 0 && call != call_)
      give_up(TN_FAILED_PRECONDITION, cat("rank ", rank, " calls ", call, ", another one ", call_));
    if (!why_.empty()) return {code_, why_};
    call_ = call;
    in_[rank] = &in;
    out_[rank] = &out;
    if (++n_waiting_ == ranks()) {
      Status done = work(in_, out_);
      if (!done.ok()) give_up(done.code(), std::string(done.message()));
      n_waiting_ = 0;
      ++n_calls_;
      changed_.notify_all();
      return done;
    }
    for (uint64_t mine = n_calls_; mine == n_calls_ && why_.empty();) {
      changed_.wait_for(lock, kBetweenLooks);
      if (mine == n_calls_ && cancel.requested()) give_up(TN_CANCELLED, "cancelled");
    }
    return why_.empty() ? Status() : Status(code_, why_);
  }

 private:
  void give_up(int32_t code, std::string why) {
    if (!why_.empty()) return;
    code_ = code;
    why_ = std::move(why);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const DLTensor*> in_, out_;
  std::vector<bool> is_there_;
  bool has_lost_one_ = false;
  std::string call_, why_;
  int32_t code_ = TN_OK;
  size_t n_waiting_ = 0;
  uint64_t n_calls_ = 0;
};

struct Groups {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Group>> by_name;

  static Groups& all() {
    static Groups groups;
    return groups;
  }
  std::shared_ptr<Group> get(const std::string& name, uint32_t ranks) {
    std::lock_guard lock(mutex);
    if (std::shared_ptr<Group> found = by_name[name].lock()) return found;
    auto made = std::make_shared<Group>(ranks);
    by_name[name] = made;
    return made;
  }
};

double joined(double a, double b, uint32_t how) {
  if (how == TN_REDUCE_MIN) return std::min(a, b);
  if (how == TN_REDUCE_MAX) return std::max(a, b);
  return a + b;
}

// In order of the ranks, so that the result is a function of what they bring.
template <class T>
void reduce(const std::vector<const DLTensor*>& in,
            const std::vector<const DLTensor*>& out,
            uint32_t how) {
  auto n = static_cast<size_t>(element_count(*in[0]));
  std::vector<T> result(n);
  for (size_t i = 0; i < n; ++i) {
    double sum = data_of<const T>(*in[0])[i];
    for (size_t r = 1; r < in.size(); ++r)
      sum = joined(sum, data_of<const T>(*in[r])[i], how);
    if (how == TN_REDUCE_MEAN) sum /= static_cast<double>(in.size());
    result[i] = static_cast<T>(sum);
  }
  for (const DLTensor* to : out)
    std::copy(result.begin(), result.end(), data_of<T>(*to));
}

std::string form_of(const DLTensor& tensor) {
  std::string text(dtype_name(dtype_of(tensor)));
  for (int64_t dim : shape_of(tensor))
    text += cat(" ", dim);
  return text;
}

uint64_t size_of(const DLTensor& tensor) {
  return bytes_of(dtype_of(tensor), element_count(tensor));
}

class Threads {
 public:
  static Result<Threads> create(tn_ctx*, const Options& options) {
    Threads made;
    auto ranks = static_cast<uint32_t>(options.integer("ranks"));
    made.rank_ = static_cast<uint32_t>(options.integer("rank"));
    if (made.rank_ >= ranks)
      return invalid(cat("option rank: expected 0..", ranks - 1, ", got ", made.rank_));
    // One rank meets nobody.
    std::shared_ptr<Group> group =
        ranks == 1 ? std::make_shared<Group>(1)
                   : Groups::all().get(std::string(options.text("group")), ranks);
    if (group->ranks() != ranks)
      return invalid(cat("option ranks: expected ", group->ranks(), ", got ", ranks));
    TN_CHECK(group->join(made.rank_));
    made.group_ = std::move(group);
    return made;
  }
  Threads() = default;
  Threads(Threads&& other) noexcept
      : group_(std::exchange(other.group_, nullptr)), rank_(other.rank_) {}
  Threads& operator=(Threads&&) = delete;
  ~Threads() {
    if (group_) group_->leave(rank_);
  }

  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return static_cast<uint32_t>(group_->ranks()); }

  Status all_reduce(std::string_view tag,
                    uint32_t how,
                    const DLTensor& in,
                    const DLTensor& out,
                    const Cancel& cancel) {
    uint32_t dtype = dtype_of(in);
    bool is_known =
        dtype == TN_F32 || dtype == TN_F64 || (dtype == TN_I64 && how != TN_REDUCE_MEAN);
    if (how > TN_REDUCE_MAX || !is_known)
      return invalid(cat("all_reduce of ", dtype_name(dtype), " by ", how,
                         ": expected float32 or float64, or int64 without a mean"));
    return group_->meet(rank_, cat("all_reduce ", tag, " ", how, " ", form_of(in)), in, out, cancel,
                        [&](const auto& from, const auto& to) -> Status {
                          if (dtype == TN_F32) reduce<float>(from, to, how);
                          if (dtype == TN_F64) reduce<double>(from, to, how);
                          if (dtype == TN_I64) reduce<int64_t>(from, to, how);
                          return {};
                        });
  }
  Status broadcast(std::string_view tag,
                   uint32_t root,
                   const DLTensor& buffer,
                   const Cancel& cancel) {
    if (root >= ranks()) return invalid(cat("broadcast: expected a rank below ", ranks()));
    return group_->meet(rank_, cat("broadcast ", tag, " ", root, " ", form_of(buffer)), buffer,
                        buffer, cancel, [&](const auto& from, const auto& to) -> Status {
                          for (size_t r = 0; r < to.size(); ++r)
                            if (r != root)
                              std::memcpy(data_of<char>(*to[r]), data_of<char>(*from[root]),
                                          size_of(buffer));
                          return {};
                        });
  }
  Status all_gather(std::string_view tag,
                    const DLTensor& in,
                    const DLTensor& out,
                    const Cancel& cancel) {
    return group_->meet(rank_, cat("all_gather ", tag, " ", form_of(in)), in, out, cancel,
                        [&](const auto& from, const auto& to) -> Status {
                          for (const DLTensor* one : to)
                            for (size_t r = 0; r < from.size(); ++r)
                              std::memcpy(data_of<char>(*one) + r * size_of(in),
                                          data_of<char>(*from[r]), size_of(in));
                          return {};
                        });
  }

 private:
  std::shared_ptr<Group> group_;
  uint32_t rank_ = 0;
};

}  // namespace
}  // namespace tenon::test

TENON_COLLECTIVE(threads_collective,
                 tenon::test::Threads,
                 "seams.threads",
                 "ranks that are threads of this process",
                 R"({"properties": {
  "group": {"type": "string", "default": "all", "description": "ranks of one name meet"},
  "rank": {"type": "integer", "minimum": 0, "default": 0, "description": "this one"},
  "ranks": {"type": "integer", "minimum": 1, "maximum": 1024, "default": 1, "description": "how many there are"}}})")
