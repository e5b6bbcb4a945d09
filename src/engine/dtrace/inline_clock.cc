// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/inline_clock.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "target/process.h"

namespace clew::engine {
namespace {

std::optional<target::Mapping> vdso_of(pid_t pid) {
  const auto maps = target::read_memory_map(pid);
  if (!maps) return std::nullopt;
  const auto found = std::find_if(maps->begin(), maps->end(),
                                  [](const target::Mapping& map) { return map.path == "[vdso]"; });
  return found == maps->end() ? std::nullopt : std::optional(*found);
}

// (CLOCK_MONOTONIC there) - (that of the machine), as lines of /proc/PID/timens_offsets say it.
int64_t time_offset_ns(const std::string& who) {
  std::ifstream file(fmt::format("/proc/{}/timens_offsets", who));
  std::string name;
  int64_t seconds = 0;
  int64_t nanoseconds = 0;
  while (file >> name >> seconds >> nanoseconds) {
    if (name == "monotonic") return seconds * 1'000'000'000 + nanoseconds;
  }
  return 0;
}

std::string name_space(const std::string& who) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/ns/time", who), error).string();
}

}  // namespace

// The kernel maps one and the same vDSO into all 64-bit processes.
uint64_t find_process_clock(pid_t pid) {
  void* const library = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  const auto clock = reinterpret_cast<uint64_t>(dlsym(library, "__vdso_clock_gettime"));
  (void)dlclose(library);
  const auto ours = vdso_of(getpid());
  const auto theirs = vdso_of(pid);
  if (!ours || !theirs || !ours->contains(clock) || ours->size_bytes() != theirs->size_bytes()) {
    return 0;
  }
  std::vector<uint8_t> bytes(theirs->size_bytes());
  if (!target::read_memory(pid, theirs->start, bytes)) return 0;
  const auto* const own = reinterpret_cast<const uint8_t*>(ours->start);
  if (!std::equal(bytes.begin(), bytes.end(), own)) return 0;
  return theirs->start + (clock - ours->start);
}

bool counter_is_the_clock() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  file >> source;
  return source == "tsc" || source == "kvm-clock" || source == "hyperv_clocksource_tsc_page";
}

// The kernel's programs read the machine's own clock, as we do.
uint64_t clock_offset_ns(pid_t pid) {
  if (name_space(std::to_string(pid)) == name_space("self")) return 0;
  return static_cast<uint64_t>(-time_offset_ns(std::to_string(pid)));
}

}  // namespace clew::engine
