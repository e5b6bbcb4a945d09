// SPDX-License-Identifier: Apache-2.0
#include "engine/uprobe_places.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "code/decode.h"
#include "inline/attachment.h"
#include "target/process.h"

namespace clew::engine {
namespace {

constexpr uint8_t kInt3 = 0xcc;

struct ProcessText {
  std::vector<inline_::PatchedText> patched;
  std::vector<target::Mapping> maps;
  pid_t debugger = 0;  // Who traces the process.
};

// Maps only where they are needed to say that nothing is in the way.
ProcessText text_of(pid_t pid, bool is_needed = false) {
  ProcessText text{.patched = inline_::patched_text(pid), .maps = {}};
  const auto facts = target::read_facts(pid);
  if (facts) text.debugger = facts->tracer_pid;
  if (!is_needed && text.patched.empty() && text.debugger == 0) return text;
  auto maps = target::read_memory_map(pid);
  if (maps) text.maps = std::move(*maps);
  return text;
}

// Where the place of the probe is in the process; a file may be there more than once.
std::vector<uint64_t> addresses_of(const kernel::Probe& probe, const ProcessText& text) {
  struct stat file = {};
  if (stat(probe.path.c_str(), &file) != 0) return {};
  std::vector<uint64_t> addresses;
  for (const target::Mapping& map : text.maps) {
    const uint64_t distance = probe.offset_bytes - map.file_offset;
    const bool is_here = map.executable && map.inode == file.st_ino &&
                         probe.offset_bytes >= map.file_offset && distance < map.size_bytes();
    if (is_here) addresses.push_back(map.start + distance);
  }
  return addresses;
}

bool is_patched(const ProcessText& text, uint64_t address) {
  return std::any_of(
      text.patched.begin(), text.patched.end(),
      [&](const inline_::PatchedText& one) { return address - one.address < one.size_bytes; });
}

// Of the debugger, or somebody's uprobe; the kernel tells nobody whose it is.
bool has_breakpoint(pid_t pid, const ProcessText& text, uint64_t address) {
  uint8_t byte = 0;
  return text.debugger != 0 && target::read_memory(pid, address, std::span(&byte, 1)) &&
         byte == kInt3;
}

std::vector<uint8_t> file_bytes(const std::string& path, uint64_t offset, size_t size_bytes) {
  std::vector<uint8_t> bytes(size_bytes);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t size =
      file.valid() ? pread(file.get(), bytes.data(), size_bytes, static_cast<off_t>(offset)) : 0;
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return bytes;
}

// But for a trap over its first byte.
bool is_as_in_file(pid_t pid, uint64_t address, const kernel::Probe& probe) {
  std::vector<uint8_t> bytes =
      file_bytes(probe.path, probe.offset_bytes, code::kInstructionSizeMax);
  const auto instruction = code::decode(bytes);
  if (!instruction) return false;
  bytes.resize(instruction->length);
  std::vector<uint8_t> memory(bytes.size());
  if (!target::read_memory(pid, address, memory)) return false;
  if (memory[0] == kInt3) memory[0] = bytes[0];
  return memory == bytes;
}

std::string reason_against(pid_t pid, const ProcessText& text, const kernel::Probe& probe) {
  for (const uint64_t address : addresses_of(probe, text)) {
    if (is_patched(text, address)) {
      return fmt::format(
          "a uprobe would end process {}, since a session has a probe of its own "
          "there (clew ps)",
          pid);
    }
    // The kernel takes its trap for ours, and takes it out when ours goes.
    if (has_breakpoint(pid, text, address)) {
      return fmt::format(
          "process {} (a debugger?) has a breakpoint there in process {}, which "
          "would be lost with a uprobe; delete it first",
          text.debugger, pid);
    }
  }
  return "";
}

// The processes that have jumps of sessions, and those named that a debugger holds.
std::map<pid_t, ProcessText> processes_to_look_at(
    std::span<const kernel::MachineEnabling> enablings) {
  std::set<pid_t> pids;
  for (const inline_::ArenaInfo& arena : inline_::ps())
    pids.insert(arena.pid);
  for (const kernel::MachineEnabling& enabling : enablings) {
    if (enabling.probe.pid != 0) pids.insert(static_cast<pid_t>(enabling.probe.pid));
  }
  std::map<pid_t, ProcessText> processes;
  for (const pid_t pid : pids) {
    ProcessText text = text_of(pid);
    if (!text.maps.empty()) processes.emplace(pid, std::move(text));
  }
  return processes;
}

// One that is everywhere is also in processes that nobody named, and with all that stand for its
// place.
void bar_everywhere(std::span<const kernel::MachineEnabling> enablings,
                    std::set<uint32_t>& barred) {
  using Place = std::tuple<dev_t, ino_t, uint64_t>;
  std::map<Place, std::vector<uint32_t>> places;
  std::set<Place> barred_places;
  const auto processes = processes_to_look_at(enablings);
  for (uint32_t i = 0; i < enablings.size(); ++i) {
    const kernel::Probe& probe = enablings[i].probe;
    struct stat file = {};
    if (!probe.is_everywhere || stat(probe.path.c_str(), &file) != 0) continue;
    const Place place = {file.st_dev, file.st_ino, probe.offset_bytes};
    places[place].push_back(i);
    const bool is_barred =
        barred.contains(i) ||
        std::any_of(processes.begin(), processes.end(), [&](const auto& process) {
          return !reason_against(process.first, process.second, probe).empty();
        });
    if (is_barred) barred_places.insert(place);
  }
  for (const Place& place : barred_places)
    barred.insert(places[place].begin(), places[place].end());
}

}  // namespace

Expected<void> check_uprobe_places(std::span<const kernel::MachineEnabling> enablings,
                                   const std::set<uint32_t>& elsewhere) {
  const std::map<pid_t, ProcessText> processes = processes_to_look_at(enablings);
  for (uint32_t i = 0; i < enablings.size() && !processes.empty(); ++i) {
    const kernel::Probe& probe = enablings[i].probe;
    if (!kernel::needs_uprobe(probe.kind) || elsewhere.contains(i)) continue;
    for (const auto& [pid, text] : processes) {
      const bool is_of_one = probe.pid != 0 && !probe.is_everywhere;
      if (is_of_one && probe.pid != pid) continue;
      const std::string reason = reason_against(pid, text, probe);
      if (reason.empty()) continue;
      return fail(ErrorCode::Refused, fmt::format("{}:{}:{}:{}: {}", probe.provider, probe.module,
                                                  probe.function, probe.name, reason));
    }
  }
  return {};
}

std::set<uint32_t> barred_uprobes(std::span<const kernel::MachineEnabling> enablings) {
  std::map<pid_t, ProcessText> named;
  std::set<uint32_t> barred;
  for (uint32_t i = 0; i < enablings.size(); ++i) {
    const kernel::Probe& probe = enablings[i].probe;
    if (!kernel::needs_uprobe(probe.kind) || probe.pid == 0) continue;
    const auto pid = static_cast<pid_t>(probe.pid);
    const auto known = named.find(pid);
    const ProcessText& text =
        known != named.end() ? known->second : named.emplace(pid, text_of(pid, true)).first->second;
    const std::vector<uint64_t> addresses = addresses_of(probe, text);
    const bool is_free = !addresses.empty() && reason_against(pid, text, probe).empty() &&
                         std::all_of(addresses.begin(), addresses.end(), [&](uint64_t address) {
                           return is_as_in_file(pid, address, probe);
                         });
    if (!is_free) barred.insert(i);
  }
  bar_everywhere(enablings, barred);
  return barred;
}

}  // namespace clew::engine
