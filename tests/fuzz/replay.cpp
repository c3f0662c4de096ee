// SPDX-License-Identifier: Apache-2.0
// Drives a fuzz target where the compiler has no libFuzzer: every seed as it is, then damaged seeds
// for some seconds. Nothing guides the damage, and its order is fixed. The input of the moment is
// in a file that stays when the process dies of it.
// usage: replay_TARGET CORPUS SECONDS
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> seeds_in(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Bytes> out;
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

// One to four small edits of a seed; one of four takes a piece of another seed.
Bytes damaged(const std::vector<Bytes>& seeds, std::mt19937& random) {
  auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random()) % n; };
  auto place = [](Bytes& bytes, size_t i) { return bytes.begin() + static_cast<ptrdiff_t>(i); };
  Bytes bytes = seeds[below(seeds.size())];
  for (size_t edits = 1 + below(4); edits > 0; --edits) {
    size_t kind = below(4);
    size_t at = below(bytes.size() + 1);
    size_t length = std::min(bytes.size() - at, 1 + below(16));
    if (kind == 0 && at < bytes.size()) {
      bytes[at] = static_cast<uint8_t>(random());
    } else if (kind == 1) {
      bytes.erase(place(bytes, at), place(bytes, at + length));
    } else if (kind == 2) {
      Bytes piece(place(bytes, at), place(bytes, at + length));
      bytes.insert(place(bytes, below(bytes.size() + 1)), piece.begin(), piece.end());
    } else {
      Bytes other = seeds[below(seeds.size())];
      size_t from = below(other.size());
      size_t end = std::min(other.size(), from + 1 + below(32));
      bytes.insert(place(bytes, at), place(other, from), place(other, end));
    }
  }
  return bytes;
}

class Runner {
 public:
  explicit Runner(const std::string& target)
      : path_(std::filesystem::temp_directory_path() / name_for(target)),
        file_(std::fopen(path_.c_str(), "wb")) {
    if (!file_) std::abort();
    std::printf("the input of the moment is in %s\n", path_.c_str());
    std::fflush(stdout);
  }
  Runner(const Runner&) = delete;
  ~Runner() {
    std::fclose(file_);
    std::filesystem::remove(path_);
  }
  void run(const Bytes& input) {
    int fd = fileno(file_);
    auto size = static_cast<off_t>(input.size());
    if (ftruncate(fd, size) != 0 || pwrite(fd, input.data(), input.size(), 0) != size) std::abort();
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++n_inputs;
  }
  uint64_t n_inputs = 0;

 private:
  static std::string name_for(const std::string& target) {
    return target + "_" + std::to_string(getpid()) + ".input";
  }
  std::filesystem::path path_;
  FILE* file_;
};

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc != 3) return std::fputs("usage: replay_TARGET CORPUS SECONDS\n", stderr), 2;
  std::vector<Bytes> seeds = seeds_in(argv[1]);
  if (seeds.empty()) return std::fprintf(stderr, "replay: %s: no seeds\n", argv[1]), 1;
  Clock::time_point end = Clock::now() + std::chrono::seconds(std::atoi(argv[2]));
  Runner runner(std::filesystem::path(argv[0]).filename());
  for (const Bytes& seed : seeds)
    runner.run(seed);
  std::mt19937 random(1);
  while (Clock::now() < end)
    runner.run(damaged(seeds, random));
  std::printf("%llu inputs\n", static_cast<unsigned long long>(runner.n_inputs));
  return 0;
}
