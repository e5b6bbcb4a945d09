// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/libraries.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "engine/dtrace/read_text.h"

namespace clew::engine {
namespace {

constexpr size_t kLibrariesMax = 1000;

struct Dependency {
  std::string kind;  // library, module, provider
  std::string name;
};

std::vector<Dependency> dependencies_of(const std::string& text) {
  std::vector<Dependency> found;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string pragma;
    std::string letter;
    std::string directive;
    Dependency one;
    words >> pragma >> letter >> directive >> one.kind >> one.name;
    const bool is_one = pragma == "#pragma" && letter == "D" && directive == "depends_on";
    if (is_one && !one.name.empty()) found.push_back(std::move(one));
  }
  return found;
}

// Puts the libraries of one directory in order.
class Sorter {
 public:
  Sorter(std::map<std::string, DLibrary> files, const DependencyQuestion& is_there)
      : files_(std::move(files)), is_there_(is_there) {}

  std::vector<DLibrary> run() {
    for (const auto& [name, library] : files_)
      (void)take(name);
    return std::move(sorted_);
  }

 private:
  // False when something that it needs is not there. What depends on itself is taken as it comes.
  bool take(const std::string& name) {
    const auto known = taken_.find(name);
    if (known != taken_.end()) return known->second;
    const auto file = files_.find(name);
    if (file == files_.end()) return true;  // One of D's own.
    taken_[name] = true;
    for (const Dependency& each : dependencies_of(file->second.text)) {
      const bool is_met =
          each.kind == "library" ? take(each.name) : is_there_(each.kind, each.name);
      if (!is_met) return taken_[name] = false;
    }
    sorted_.push_back(file->second);
    return true;
  }

  std::map<std::string, DLibrary> files_;
  const DependencyQuestion& is_there_;
  std::map<std::string, bool> taken_;
  std::vector<DLibrary> sorted_;
};

}  // namespace

Expected<std::vector<DLibrary>> read_libraries(const std::string& directory,
                                               const DependencyQuestion& is_there) {
  std::map<std::string, DLibrary> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".d" || files.size() == kLibrariesMax) continue;
    auto text = read_text(entry->path().string());
    if (!text) continue;  // A directory, say.
    files.emplace(entry->path().filename().string(),
                  DLibrary{entry->path().string(), std::move(*text)});
  }
  if (error) {
    return fail(ErrorCode::Io,
                fmt::format("failed to open library directory {}: {}", directory, error.message()));
  }
  return Sorter(std::move(files), is_there).run();
}

}  // namespace clew::engine
