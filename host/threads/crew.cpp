// SPDX-License-Identifier: Apache-2.0
#include "threads/crew.hpp"

#include <algorithm>
#include <utility>

#include <pthread.h>
#include <signal.h>

#include "threads/standing.hpp"
#include "threads/waiting.hpp"

namespace tenon::host::team {
namespace {

constexpr uint32_t kCallerSleeps = uint32_t{1} << 31;

// A worker looks for its next id so long in a loop before it sleeps. On a quiet machine that spans
// what the caller does between two regions, under load waking is the scheduler's business.
constexpr uint64_t kIdleSpinNs = 2'000'000;
// Kept apart from its caller, a worker has a share of a CPU of its own: short gaps between two
// regions are better spent there than on waking. On the caller's CPU it would be in the way.
constexpr uint64_t kIdleSpinApartNs = 20'000;
// The caller waits for ids that were begun before its own were done: they end about now, unless
// their thread has lost its CPU.
constexpr uint64_t kJoinSpinNs = 500'000;
constexpr uint64_t kJoinSpinUnderLoadNs = 15'000;
constexpr uint64_t kBarrierSpinUnderLoadNs = 50'000;

bool is_open(uint64_t ticket) {
  return ticket % 2 == 0;
}

}  // namespace

Crew::Crew(int n_ids, Activity& activity)
    : n_ids_(n_ids), activity_(activity), seats_(new Seat[static_cast<size_t>(n_ids - 1)]) {
  for (int id = 1; id < n_ids; ++id) {
    seats_[id - 1].id = id;
    seats_[id - 1].crew = this;
  }
}

void Crew::open(Body body, void* arg, int n, bool ids_meet) {
  arrange(watch_.region(activity_.load));
  body_ = body;
  arg_ = arg;
  n_ = n;
  ticket_ += 2;
  pending_.store(static_cast<uint32_t>(n - 1), std::memory_order_relaxed);
  const uint32_t mode = float_mode();
  for (int id = 1; id < n; ++id) {
    Seat& seat = seats_[id - 1];
    seat.body.store(body, std::memory_order_relaxed);
    seat.arg.store(arg, std::memory_order_relaxed);
    seat.n.store(n, std::memory_order_relaxed);
    seat.float_mode.store(mode, std::memory_order_relaxed);
    // Sequentially consistent, as `asleep` is: either the worker sees the ticket before it sleeps,
    // or call() sees that it sleeps.
    seat.ticket.store(ticket_, std::memory_order_seq_cst);
  }
  for (int id = 1; id < n; ++id) {
    // Ids that meet run at once, or never.
    seats_[id - 1].placement.move(ids_meet ? Place::kAnywhere : arrangement_.place());
    call(seats_[id - 1], ids_meet);
  }
}

void Crew::arrange(const CallerWatch::Sample& sample) {
  if (sample.now == 0) return;
  const bool load_is_high = activity_.load.is_high(sample.now);
  const bool was_steady = arrangement_.is_steady();
  arrangement_.look(load_is_high, sample);
  if (!was_steady && arrangement_.is_steady()) workers_waited(sample.now);  // a window begins
  if (arrangement_.is_window_full())
    arrangement_.end_window(sample.now, workers_waited(sample.now));
  if (load_is_high && arrangement_.is_unhindered()) activity_.load.is_over(sample.now);
}

// Since it was last asked: of the worker that waited for a CPU most, the share of the time.
double Crew::workers_waited(uint64_t now) {
  uint64_t most_ns = 0;
  for (int id = 1; id < n_ids_; ++id) {
    Seat& seat = seats_[id - 1];
    const uint64_t waited_ns = seat.placement.waited_ns();
    most_ns = std::max(most_ns, waited_ns - std::min(seat.waited_ns, waited_ns));
    seat.waited_ns = waited_ns;
  }
  const uint64_t since_ns = now - std::exchange(waits_read_, now);
  return static_cast<double>(most_ns) / static_cast<double>(since_ns);
}

void Crew::call(Seat& seat, bool must) {
  const bool within_budget = activity_.active.load(std::memory_order_relaxed) < activity_.budget;
  if (!must && !within_budget) return;
  if (!seat.has_worker.load(std::memory_order_acquire)) {
    start_worker(seat);
  } else if (seat.asleep.load(std::memory_order_seq_cst) != 0) {
    wake(seat);
  }
}

void Crew::wake(Seat& seat) {
  if (seat.asleep.exchange(0) == 0) return;
  activity_.active.fetch_add(1, std::memory_order_relaxed);
  wake_one(seat.asleep);
}

bool Crew::start_worker(Seat& seat) {
  if (seat.has_worker.exchange(true)) return true;
  activity_.active.fetch_add(1, std::memory_order_relaxed);
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool is_started = pthread_create(&thread, nullptr, work, &seat) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (is_started) {
    pthread_setname_np(thread, "tenon team");
    pthread_detach(thread);
  } else {
    activity_.active.fetch_sub(1, std::memory_order_relaxed);
    seat.has_worker.store(false, std::memory_order_release);
  }
  return is_started;
}

bool Crew::has_all_threads(int n) {
  for (int id = 1; id < n; ++id)
    if (!start_worker(seats_[id - 1])) return false;
  return true;
}

void* Crew::work(void* argument) {
  Seat& own = *static_cast<Seat*>(argument);
  Crew& crew = *own.crew;
  own.placement.begin();
  for (;;) {
    const uint64_t ticket = crew.wait_for_ticket(own);
    if (!crew.try_seat(own, ticket, own)) continue;
    // Ids of the same region whose own workers are late. As one of its ids is done, none of them
    // waits for another one that has not begun; of the next region that is not known.
    for (int id = 1; id < crew.n_ids_; ++id)
      crew.try_seat(crew.seats_[id - 1], ticket, own);
  }
  return nullptr;
}

uint64_t Crew::wait_for_ticket(Seat& seat) {
  for (;;) {
    {
      WaitClock clock(activity_.load);
      const bool is_apart = seat.placement.place() == Place::kApart;
      const uint64_t patience =
          !clock.load_is_high() ? kIdleSpinNs : (is_apart ? kIdleSpinApartNs : 0);
      do {
        const uint64_t ticket = seat.ticket.load(std::memory_order_acquire);
        if (is_open(ticket)) return ticket;
      } while (clock.turn() < patience &&
               activity_.active.load(std::memory_order_relaxed) <= activity_.budget);
    }
    seat.asleep.store(1, std::memory_order_seq_cst);
    activity_.active.fetch_sub(1, std::memory_order_relaxed);
    if (is_open(seat.ticket.load(std::memory_order_seq_cst))) wake(seat);
    while (seat.asleep.load(std::memory_order_acquire) != 0)
      sleep_on(seat.asleep, 1);
  }
}

bool Crew::try_seat(Seat& seat, uint64_t ticket, Seat& own) {
  if (seat.ticket.load(std::memory_order_acquire) != ticket) return false;
  const Body body = seat.body.load(std::memory_order_relaxed);
  void* const arg = seat.arg.load(std::memory_order_relaxed);
  const int n = seat.n.load(std::memory_order_relaxed);
  const uint32_t mode = seat.float_mode.load(std::memory_order_relaxed);
  if (!seat.ticket.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel))
    return false;
  set_float_mode(mode);
  standing() = {this, seat.id, n};
  own.is_at_work.store(true, std::memory_order_relaxed);
  body(arg);
  own.is_at_work.store(false, std::memory_order_relaxed);
  standing() = {};
  one_done();
  return true;
}

void Crew::one_done() {
  // The caller's sleep ends with the last of its ids.
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == (kCallerSleeps | 1)) wake_one(pending_);
}

void Crew::close(int& own_id) {
  uint32_t n_taken = 0;
  for (int id = 1; id < n_; ++id) {
    Seat& seat = seats_[id - 1];
    uint64_t ticket = ticket_;
    if (!seat.ticket.compare_exchange_strong(ticket, ticket_ + 1, std::memory_order_acq_rel))
      continue;
    own_id = id;
    body_(arg_);
    ++n_taken;
  }
  arrangement_.count(static_cast<uint32_t>(n_), n_taken + 1);
  if (pending_.fetch_sub(n_taken, std::memory_order_acq_rel) != n_taken) join();
}

// Others have begun ids that are not done.
void Crew::join() {
  const bool is_apart = arrangement_.place() == Place::kApart;
  for (int id = 1; is_apart && id < n_; ++id) {
    Seat& seat = seats_[id - 1];
    if (seat.is_at_work.load(std::memory_order_relaxed))
      seat.cpu_before_ns = seat.placement.cpu_ns();
  }
  {
    WaitClock clock(activity_.load);
    const uint64_t patience = clock.load_is_high() ? kJoinSpinUnderLoadNs : kJoinSpinNs;
    do {
      if (pending_.load(std::memory_order_acquire) == 0) return;
    } while (clock.turn() < patience);
  }
  if (is_apart) help_out();
  sleep_until_done();
}

// A worker that lost its CPU amid an id gets this one, which the caller is about to leave.
void Crew::help_out() {
  for (int id = 1; id < n_; ++id) {
    Seat& seat = seats_[id - 1];
    if (!seat.is_at_work.load(std::memory_order_relaxed)) continue;
    if (seat.placement.cpu_ns() - seat.cpu_before_ns > kJoinSpinUnderLoadNs / 2) continue;
    arrangement_.count_help();
    return seat.placement.hand_over();
  }
}

void Crew::sleep_until_done() {
  const uint64_t asleep_since = now_ns();
  uint32_t pending = pending_.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
  while (pending != kCallerSleeps) {
    sleep_on(pending_, pending);
    pending = pending_.load(std::memory_order_acquire);
  }
  watch_.slept(now_ns() - asleep_since);
}

void Crew::barrier(int n) {
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(n)) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_seq_cst);
    if (asleep_at_barrier_.load(std::memory_order_seq_cst) != 0) wake_all(generation_);
    return;
  }
  for (int id = 1; id < n; ++id) {
    if (is_open(seats_[id - 1].ticket.load(std::memory_order_acquire))) call(seats_[id - 1], true);
  }
  {
    WaitClock clock(activity_.load);
    const uint64_t patience = clock.load_is_high() ? kBarrierSpinUnderLoadNs : kJoinSpinNs;
    do {
      if (generation_.load(std::memory_order_acquire) != generation) return;
    } while (clock.turn() < patience);
  }
  asleep_at_barrier_.fetch_add(1, std::memory_order_seq_cst);
  while (generation_.load(std::memory_order_seq_cst) == generation)
    sleep_on(generation_, generation);
  asleep_at_barrier_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace tenon::host::team
