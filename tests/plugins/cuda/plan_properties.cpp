// SPDX-License-Identifier: Apache-2.0
#include "plan_properties.hpp"

#include <algorithm>
#include <set>

namespace tenon::cuda::test {
namespace {

using Buffers = std::set<int>;

// The buffers that a step's work points to. Which operands of a kernel it writes only the step
// says; products, convolutions and copies say so themselves.
struct Touched {
  Buffers all, written;
  bool says_what_is_written = true;

  void read(int buffer) {
    if (buffer >= 0) all.insert(buffer);
  }
  void write(int buffer) {
    read(buffer);
    written.insert(buffer);
  }
  void operator()(const Launch& launch) {
    says_what_is_written = false;
    for (const Patch& patch : launch.patches)
      read(patch.buffer);
  }
  void operator()(const Product& p) {
    for (int buffer : {p.a, p.b, p.bias, p.c})
      read(buffer);
    write(p.out);
  }
  void operator()(const Convolution& c) {
    int out = c.kind == ConvolutionKind::kForward     ? c.y
              : c.kind == ConvolutionKind::kInputGrad ? c.x
                                                      : c.w;
    for (int buffer : {c.x, c.w, c.bias, c.z, c.y})
      read(buffer);
    write(out);
  }
  void operator()(const Move& move) {
    read(move.from);
    write(move.to);
  }
};

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan), lives_(plan.buffers.size()) {}

  std::vector<std::string> run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      check_operands(plan_.steps[i]);
      check_order(i);
    }
    check_boundary();
    check_arena();
    return std::move(broken_);
  }

 private:
  struct Life {
    size_t first = SIZE_MAX, last = 0;
    bool is_written = false, is_replaced = false;  // by a copy, of states
    uint64_t end = 0;                              // behind the buffer, in the arena
  };

  const Buffer& buffer(int i) const { return plan_.buffers[static_cast<size_t>(i)]; }
  template <class... Parts>
  void broken(const Parts&... parts) {
    broken_.push_back(cat(parts...));
  }

  void check_operands(const Step& step) {
    Buffers reads(step.reads.begin(), step.reads.end());
    Buffers writes(step.writes.begin(), step.writes.end()), all = reads;
    all.insert(writes.begin(), writes.end());
    Touched touched;
    std::visit([&](const auto& work) { touched(work); }, step.work);
    if (all != touched.all)
      broken("step ", step.name, ": its operands are not what it reads and writes");
    if (touched.says_what_is_written && writes != touched.written)
      broken("step ", step.name, ": it does not say which buffer it writes");
    if (writes.empty()) broken("step ", step.name, ": it writes nothing");
    if (const Launch* launch = std::get_if<Launch>(&step.work)) check_patches(step, *launch);
  }

  // Each address has its own 8 bytes of the arguments, and points into its buffer.
  void check_patches(const Step& step, const Launch& launch) {
    std::set<uint32_t> taken;
    for (const Patch& patch : launch.patches) {
      bool is_inside = patch.at % 8 == 0 && patch.at + 8 <= launch.arguments.size();
      if (!is_inside || !taken.insert(patch.at).second)
        broken("step ", step.name, ": an address at byte ", patch.at, " of its arguments");
      if (patch.buffer >= 0 && patch.offset > 0 && patch.offset >= buffer(patch.buffer).bytes)
        broken("step ", step.name, ": an address behind the end of ", buffer(patch.buffer).name);
    }
  }

  void check_order(size_t i) {
    const Step& step = plan_.steps[i];
    for (int read : step.reads) {
      const Buffer& of = buffer(read);
      Life& life = lives_[static_cast<size_t>(read)];
      bool is_made_here = of.storage == Storage::kArena || of.storage == Storage::kOutput;
      if (is_made_here && !life.is_written)
        broken("step ", step.name, ": it reads ", of.name, " before that is written");
      if (life.is_replaced)
        broken("step ", step.name, ": it reads state ", of.name, " after its new value is there");
    }
    for (int write : step.writes) {
      const Buffer& of = buffer(write);
      if (of.storage == Storage::kInput || of.storage == Storage::kConstant)
        broken("step ", step.name, ": it writes ", of.name);
      if (of.storage == Storage::kState && is_among(write, step.reads) && !is_elementwise(step))
        broken("step ", step.name, ": it reads state ", of.name, " while it writes it");
      Life& life = lives_[static_cast<size_t>(write)];
      life.is_written = true;
      // One that is written element by element is read as the new value from then on.
      life.is_replaced = of.storage == Storage::kState && std::holds_alternative<Move>(step.work);
    }
    for (const std::vector<int>* list : {&step.reads, &step.writes}) {
      for (int touched : *list) {
        Life& life = lives_[static_cast<size_t>(touched)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      }
    }
  }
  static bool is_among(int buffer, const std::vector<int>& list) {
    return std::find(list.begin(), list.end(), buffer) != list.end();
  }
  static bool is_elementwise(const Step& step) {
    const Launch* launch = std::get_if<Launch>(&step.work);
    return launch && launch->is_elementwise;
  }

  void check_boundary() {
    std::vector<int> made(plan_.outputs.size(), 0);
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer& of = plan_.buffers[i];
      if (of.storage == Storage::kOutput)
        made[static_cast<size_t>(of.index)] += lives_[i].is_written;
    }
    for (size_t i = 0; i < made.size(); ++i)
      if (made[i] != 1)
        broken("output ", plan_.outputs[i].name, " is made by ", made[i], " buffers");
  }

  void check_arena() {
    std::vector<size_t> used;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer& of = plan_.buffers[i];
      if (of.storage != Storage::kArena || lives_[i].first > lives_[i].last || of.bytes == 0)
        continue;
      if (of.offset % kOwnAlign != 0) broken(of.name, " is not aligned to ", kOwnAlign, " bytes");
      lives_[i].end = of.offset + (of.bytes + kOwnAlign - 1) / kOwnAlign * kOwnAlign;
      if (lives_[i].end > plan_.arena_bytes) broken(of.name, " ends behind the arena");
      used.push_back(i);
    }
    for (size_t a : used)
      for (size_t b : used)
        if (a < b && overlap(a, b))
          broken(plan_.buffers[a].name, " and ", plan_.buffers[b].name, " lie in one place");
    check_peak(used);
  }
  bool overlap(size_t a, size_t b) const {
    const Life &one = lives_[a], &other = lives_[b];
    bool in_time = one.first <= other.last && other.first <= one.last;
    return in_time && plan_.buffers[a].offset < other.end && plan_.buffers[b].offset < one.end;
  }

  void check_peak(const std::vector<size_t>& used) {
    uint64_t most = 0;
    std::string at;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      uint64_t alive = 0;
      for (size_t i : used)
        if (lives_[i].first <= s && s <= lives_[i].last)
          alive += lives_[i].end - plan_.buffers[i].offset;
      if (alive <= most) continue;
      most = alive;
      at = plan_.steps[s].name;
    }
    if (most != plan_.arena_lower_bound || at != plan_.peak_step)
      broken("the peak is ", most, " bytes at step ", at, ", the plan says ",
             plan_.arena_lower_bound, " at ", plan_.peak_step);
  }

  const Plan& plan_;
  std::vector<Life> lives_;  // by buffer
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> broken_properties(const Plan& plan) {
  return Checker(plan).run();
}

}  // namespace tenon::cuda::test
