// SPDX-License-Identifier: Apache-2.0
#include "target/module_names.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace clew::target {

namespace {

// Opens a path as the process would, absolute links included: a container's link to "/bin/busybox"
// is meant in the container.
FileDescriptor open_in_root(int root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  const auto fd = syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how));
  return FileDescriptor(static_cast<int>(fd));
}

std::string_view without_so(std::string_view name) {
  const size_t at = name.find(".so");
  const bool ends = at != std::string_view::npos && (at + 3 == name.size() || name[at + 3] == '.');
  return ends ? name.substr(0, at) : name;
}

}  // namespace

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0: all of it.
}

LinkFinder::LinkFinder(std::string root, const ProcessModule& module) : root_(std::move(root)) {
  const size_t slash = module.path.rfind('/');
  own_directory_ = slash == std::string::npos ? "." : module.path.substr(0, slash + 1);
  const std::string root_path = root_.empty() ? "/" : root_;
  root_directory_ = FileDescriptor(open(root_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (stat(module.open_path.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

bool LinkFinder::leads_to_module(std::string_view directory, std::string_view name) const {
  if (inode_ == 0 || name.empty() || name.find('/') != std::string_view::npos) return false;
  const std::string path = fmt::format("{}/{}", directory, name);
  const bool relative = !path.starts_with('/');
  const FileDescriptor file = relative ? FileDescriptor(open(path.c_str(), O_PATH | O_CLOEXEC))
                                       : open_in_root(root_directory_.get(), path);
  struct stat status {};
  return file.valid() && fstat(file.get(), &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

template <typename Check>
bool LinkFinder::any_directory(std::string_view search_path, Check check) const {
  if (check(std::string_view(own_directory_))) return true;
  while (!search_path.empty()) {
    const size_t end = std::min(search_path.find(':'), search_path.size());
    const std::string_view directory = search_path.substr(0, end);
    if (directory.starts_with('/') && check(directory)) return true;
    search_path.remove_prefix(std::min(end + 1, search_path.size()));
  }
  return false;
}

bool LinkFinder::has_link(std::string_view name, std::string_view search_path) const {
  return any_directory(
      search_path, [&](std::string_view directory) { return leads_to_module(directory, name); });
}

bool LinkFinder::has_link(const Pattern& pattern, std::string_view search_path) const {
  if (pattern.is_literal()) return has_link(pattern.text(), search_path);
  return any_directory(search_path, [&](std::string_view directory) {
    return directory_has_link(directory, pattern);
  });
}

bool LinkFinder::directory_has_link(std::string_view directory, const Pattern& pattern) const {
  std::error_code error;
  std::filesystem::directory_iterator entry(fmt::format("{}{}", root_, directory), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::error_code ignored;
    const bool candidate = pattern.matches(name) && entry->is_symlink(ignored);
    if (candidate && leads_to_module(directory, name)) return true;
  }
  return false;
}

std::string_view called_name(const Process& process) {
  if (process.arguments.empty()) return {};
  std::string_view name = process.arguments[0];
  name = name.substr(0, name.find(' '));
  name = file_name(name);
  if (name.ends_with(':')) name.remove_suffix(1);    // "nginx: master process"
  if (name.starts_with('-')) name.remove_prefix(1);  // A login shell.
  return name;
}

bool matches_file(const Pattern& pattern, std::string_view path, std::string_view soname) {
  if (pattern.text().find('/') != std::string::npos) return pattern.matches(path);
  for (const std::string_view name : {file_name(path), soname}) {
    if (name.empty()) continue;
    if (pattern.matches(name) || pattern.matches(without_so(name))) return true;
  }
  return false;
}

}  // namespace clew::target
