// SPDX-License-Identifier: Apache-2.0
// The names of a module: what its file is called and what leads to it. Internal to target/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "target/pattern.h"
#include "target/process.h"

namespace clew::target {

// Looks for symbolic links to one file, in the root of the process that runs it.
class LinkFinder {
 public:
  // `root` is "/proc/PID/root", or "" for our own.
  LinkFinder(std::string root, const ProcessModule& module);

  // Whether `directory`/`name`, in the process's root, opens the module's file.
  [[nodiscard]] bool leads_to_module(std::string_view directory, std::string_view name) const;
  // Whether some link that the pattern matches does, in the file's own directory and in those of
  // `search_path` (separated by ':').
  [[nodiscard]] bool has_link(const Pattern& pattern, std::string_view search_path) const;
  [[nodiscard]] bool has_link(std::string_view name, std::string_view search_path) const;

 private:
  template <typename Check>
  bool any_directory(std::string_view search_path, Check check) const;
  [[nodiscard]] bool directory_has_link(std::string_view directory, const Pattern& pattern) const;

  std::string root_;
  std::string own_directory_;
  FileDescriptor root_directory_;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
};

// What the main program was called: "redis-server" for the argument "/usr/bin/redis-server *:6379"
// (programs rewrite it to show their state). Empty when there is none.
std::string_view called_name(const Process& process);

// Whether the pattern matches the file name, the soname, or these without ".so…"; or the path, if
// the pattern has a '/'.
bool matches_file(const Pattern& pattern, std::string_view path, std::string_view soname);

std::string_view file_name(std::string_view path);

}  // namespace clew::target
