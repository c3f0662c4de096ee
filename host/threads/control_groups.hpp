// SPDX-License-Identifier: Apache-2.0
#pragma once
// The control groups that this process is in, of both versions.

#include <fstream>
#include <string>

namespace tenon::host {

// Where the kernel describes control groups; tests write such folders themselves.
struct ControlGroupFiles {
  std::string of_process = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";
};

struct ControlGroup {
  bool is_second;      // version 2, which has one group for all controllers
  std::string name;    // "/user/job"; empty: the root
  std::string folder;  // of its files
};

// Calls visit for each group that `controller` limits this process by, from the innermost to the
// root. In a container a group's path is often outside of what is mounted, and the root is the
// group.
template <class Visit>
void for_each_group(const ControlGroupFiles& files, const std::string& controller, Visit&& visit) {
  std::ifstream lines(files.of_process);
  for (std::string line; std::getline(lines, line);) {  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string of = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_second = of == ",,";
    if (!is_second && of.find("," + controller + ",") == std::string::npos) continue;
    const std::string mounted = is_second ? files.root : files.root + "/" + controller;
    std::string name = line.substr(second + 1);
    while (!name.empty()) {
      if (name != "/") visit(ControlGroup{is_second, name, mounted + name});
      const size_t slash = name.rfind('/');
      name.resize(slash == std::string::npos ? 0 : slash);
    }
    visit(ControlGroup{is_second, name, mounted});
  }
}

}  // namespace tenon::host
