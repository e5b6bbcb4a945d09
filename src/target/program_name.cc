// SPDX-License-Identifier: Apache-2.0
// The name by which a program was started. The kernel keeps the path that execve(2) was given above
// the process's stack (AT_EXECFN of its auxiliary vector). It may be a script's, and the process
// may have written over it, so that it counts only where it leads to the executable.
#include <array>
#include <cstring>
#include <optional>

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "target/proc_file.h"
#include "target/process.h"

namespace clew::target {
namespace {

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::optional<uint64_t> address_of_path(pid_t pid) {
  const auto vector = read_proc_file(pid, "auxv");
  if (!vector) return std::nullopt;
  for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= vector->size(); at += sizeof(Elf64_auxv_t)) {
    Elf64_auxv_t entry{};
    std::memcpy(&entry, vector->data() + at, sizeof entry);
    if (entry.a_type == AT_EXECFN) return entry.a_un.a_val;
  }
  return std::nullopt;
}

// It ends shortly below the end of the stack, so that no read crosses a boundary.
std::string read_path(pid_t pid, uint64_t address) {
  constexpr size_t kPathBytesMax = 4096;
  constexpr size_t kPieceBytes = 64;
  std::string path;
  while (path.size() < kPathBytesMax) {
    std::array<uint8_t, kPieceBytes> piece{};
    const uint64_t at = address + path.size();
    const std::span bytes(piece.data(), kPieceBytes - at % kPieceBytes);
    if (!read_memory(pid, at, bytes)) return "";
    for (const uint8_t byte : bytes) {
      if (byte == 0) return path;
      path.push_back(static_cast<char>(byte));
    }
  }
  return "";
}

bool leads_to_executable(pid_t pid, const std::string& path) {
  struct stat there {};
  struct stat executable {};
  const std::string from = proc_path(pid, path.front() == '/' ? "root" : "cwd");
  return stat(fmt::format("{}/{}", from, path).c_str(), &there) == 0 &&
         stat(proc_path(pid, "exe").c_str(), &executable) == 0 &&
         there.st_dev == executable.st_dev && there.st_ino == executable.st_ino;
}

}  // namespace

std::string program_name(const Process& process) {
  if (process.executable.empty()) return process.comm;
  const pid_t holder = memory_holder(process.pid());
  const auto address = address_of_path(holder);
  const std::string path = address ? read_path(holder, *address) : "";
  const bool is_started_so = !path.empty() && leads_to_executable(holder, path);
  return last_part(is_started_so ? path : process.executable);
}

}  // namespace clew::target
