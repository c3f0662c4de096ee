// SPDX-License-Identifier: Apache-2.0
#include "terminal.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <set>

#include <sys/ioctl.h>
#include <unistd.h>

#include "tenon/cxx/terminal.hpp"

namespace tenon::command {
namespace {

using Clock = std::chrono::steady_clock;

// A signal handler gets no argument, so what it stops must be global.
std::atomic<tn_cancel*> stoppable{nullptr};
std::atomic<bool> interrupted{false};

void on_interrupt(int signal_number) {
  tn_cancel* cancel = stoppable.exchange(nullptr);
  if (cancel) {
    interrupted = true;
    tenon_cancel_request(cancel);
  } else {
    std::signal(signal_number, SIG_DFL);
    std::raise(signal_number);
  }
}

// Bars appear for tasks of more than a second and are redrawn ten times a second at most. The host
// calls one at a time.
class Bars {
 public:
  void seen(uint64_t task, tn_str title, uint64_t done, uint64_t total) {
    Clock::time_point now = Clock::now();
    if (done == UINT64_MAX) {
      started_.erase(task);
      clear();
      return;
    }
    Clock::time_point since = started_.try_emplace(task, now).first->second;
    if (now - since < std::chrono::seconds(1) || now - drawn_ < std::chrono::milliseconds(100))
      return;
    drawn_ = now;
    draw(cxx::view(title), done, total, std::chrono::duration<double>(now - since).count());
  }
  void clear() {
    if (visible_) std::fputs("\r\033[K", stderr);
    visible_ = false;
  }

 private:
  // How fast, and at this rate how long still: "120/s, 1:05 left".
  static std::string pace(uint64_t done, uint64_t total, double seconds) {
    if (done == 0) return "";
    double rate = static_cast<double>(done) / seconds;
    auto left = static_cast<int64_t>(static_cast<double>(total - done) / rate + 0.5);
    char text[64];
    std::snprintf(text, sizeof text, ", %.3g/s, %lld:%02lld left", rate,
                  static_cast<long long>(left / 60), static_cast<long long>(left % 60));
    return text;
  }

  // As the terminal is wide: of what goes on in a second row the first one would stay.
  static std::string shortened(const std::string& line) {
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return line;
    size_t at = 0, length = 1;
    for (int column = 1; at < line.size() && column < size.ws_col; ++column, at += length)
      cxx::first_character(std::string_view(line).substr(at), &length);
    return line.substr(0, at);
  }

  void draw(std::string_view title, uint64_t done, uint64_t total, double seconds) {
    constexpr uint64_t kCells = 30;
    std::string line = cxx::visible(title, cxx::Lines::kOne) + " ";
    if (total) {
      done = std::min(done, total);
      auto share = static_cast<double>(done) / static_cast<double>(total);
      auto full = static_cast<uint64_t>(share * kCells);
      line += "[" + std::string(full, '#') + std::string(kCells - full, '.') + "] " +
              std::to_string(static_cast<int>(share * 100)) + " %" + pace(done, total, seconds);
    } else {
      line += std::to_string(done);
    }
    std::fputs(("\r\033[K" + shortened(line)).c_str(), stderr);
    std::fflush(stderr);
    visible_ = true;
  }
  std::map<uint64_t, Clock::time_point> started_;
  Clock::time_point drawn_;
  bool visible_ = false;
};

Bars& bars() {
  static Bars one;  // the process has one terminal
  return one;
}
bool verbose_log = false;
std::string last_line;  // of the log

void TN_CALL on_progress(void*, uint64_t task, tn_str title, uint64_t done, uint64_t total) {
  bars().seen(task, title, done, total);
}
// A recipe that tries five ranges is informed of the same things five times. A warning counts as
// said while nothing else was printed since: it may be of another file. What a script says twice it
// means twice.
bool is_new(const std::string& line, uint32_t level) {
  constexpr size_t kAtMost = 1000;  // lines of a long training are all different
  static std::set<std::string> said;
  if (said.size() == kAtMost) said.clear();
  return said.insert(line).second || (level > TN_LOG_INFO && line != last_line);
}

void TN_CALL on_log(void*, uint32_t level, tn_str who, tn_str message) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  if (level < (verbose_log ? TN_LOG_DEBUG : TN_LOG_INFO) || level > TN_LOG_ERROR) return;
  bars().clear();
  // What the command itself says, or a script of it, needs no name in front.
  bool is_own = cxx::view(who) == "embedder";
  std::string from = is_own ? "" : cxx::cat(cxx::view(who), ": ");
  std::string line = for_users(cxx::cat(kNames[level], ": ", from, cxx::view(message)));
  if (!is_own && !verbose_log && !is_new(line, level)) return;
  last_line = line;
  cxx::complain_of(line);
}

}  // namespace

void watch_terminal(const cxx::Session& session, bool verbose) {
  verbose_log = verbose;
  tenon_on_log(session.raw(), on_log, nullptr);
  if (cxx::is_terminal()) tenon_on_progress(session.raw(), on_progress, nullptr);
  stoppable = session.cancel();
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write
}

namespace {

// Where in one of our own recipes an error was raised: PATH/recipes/NAME.lua:LINE: in front of it.
void erase_recipe_line(std::string& text) {
  static constexpr std::string_view kFolder = "share/tenon/recipes/", kLine = ".lua:";
  size_t folder = text.find(kFolder);
  size_t line = folder == std::string::npos ? folder : text.find(kLine, folder);
  if (line == std::string::npos) return;
  size_t end = text.find_first_not_of("0123456789", line + kLine.size());
  if (end == std::string::npos || text.compare(end, 2, ": ") != 0) return;
  size_t begin = text.rfind(' ', folder) + 1;  // 0 where there is none
  text.erase(begin, end + 2 - begin);
}

// Erases `before`, a name and `after` wherever the three stand together.
void erase_named(std::string& text, std::string_view before, std::string_view after) {
  static constexpr std::string_view kOfNames =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    size_t name = at + before.size();
    size_t end = text.find_first_not_of(kOfNames, name);
    if (end != std::string::npos && text.compare(end, after.size(), after) == 0)
      text.erase(at, end + after.size() - at);
    else
      at = name;
  }
}

}  // namespace

std::string for_users(std::string text) {
  if (verbose_log) return text;
  erase_recipe_line(text);
  // What names the plugin's side of it: the reader of a message has no use for it.
  erase_named(text, "cannot be created (role tenon.", "/1): ");
  erase_named(text, " (component ", ")");
  erase_named(text, " (role tenon.", "/1)");
  erase_named(text, " (function ", ")");
  erase_named(text, " of role tenon.", "/1");
  return text;
}

bool was_interrupted() {
  return interrupted;
}

void clear_progress() {
  bars().clear();
}

void leave_terminal() {
  stoppable = nullptr;
  bars().clear();
}

}  // namespace tenon::command
