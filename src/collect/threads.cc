// SPDX-License-Identifier: Apache-2.0
#include "collect/threads.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>

namespace clew::collect {
namespace {

uint32_t number_of(std::string_view text) {
  uint32_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc() ? number : 0;
}

bool shares_pid_namespace(int pid) {
  struct stat own {};
  struct stat other {};
  if (stat("/proc/self/ns/pid", &own) != 0) return true;
  if (stat(fmt::format("/proc/{}/ns/pid", pid).c_str(), &other) != 0) return true;
  return own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

// The last number of the line "NSpid: outer … inner"; 0 when it cannot be read.
uint32_t inner_tid(int pid, uint32_t tid) {
  std::ifstream status(fmt::format("/proc/{}/task/{}/status", pid, tid));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    const size_t blank = line.find_last_of("\t ");
    return number_of(std::string_view(line).substr(blank + 1));
  }
  return 0;
}

// The numbers in a directory of /proc; `error` says what ended the walk, if not its end.
std::vector<uint32_t> numbers_in(const std::string& path, std::error_code& error) {
  std::vector<uint32_t> numbers;
  std::filesystem::directory_iterator entry(path, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    const uint32_t number = number_of(entry->path().filename().native());
    if (number != 0) numbers.push_back(number);
    entry.increment(error);
  }
  return numbers;
}

}  // namespace

void ProcThreads::watch(uint32_t process, int pid) {
  Watched& watched = watched_[process];
  if (watched.pid == pid) return;
  watched = {.pid = pid, .known = false, .gone = false, .tids = {}};
}

void ProcThreads::refresh() {
  for (auto& [process, watched] : watched_) {
    if (!watched.gone) read_tasks(watched);  // A pid that is seen again is another process.
  }
}

void ProcThreads::read_tasks(Watched& watched) {
  std::error_code error;
  const auto tids = numbers_in(fmt::format("/proc/{}/task", watched.pid), error);
  watched.tids.clear();
  watched.gone =
      error == std::errc::no_such_file_or_directory || error == std::errc::no_such_process;
  watched.known = !error || watched.gone;
  const bool translate = !shares_pid_namespace(watched.pid);
  for (const uint32_t tid : tids) {
    const uint32_t inner = translate ? inner_tid(watched.pid, tid) : tid;
    if (inner == 0) watched.known = false;  // It ended just now, or may not be read.
    watched.tids.insert(inner);
  }
}

bool ProcThreads::alive(uint32_t process, uint32_t tid) const {
  const auto found = watched_.find(process);
  if (found == watched_.end() || !found->second.known) return true;
  return !found->second.gone && found->second.tids.contains(tid);
}

bool ProcThreads::process_alive(uint32_t process) const {
  const auto found = watched_.find(process);
  return found == watched_.end() || !found->second.known || !found->second.gone;
}

}  // namespace clew::collect
