// SPDX-License-Identifier: Apache-2.0
#include "engine/open_calls.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "abi/region.h"

namespace clew::engine {
namespace {

// The thread's id in the innermost namespace, which is what it knows itself.
std::optional<uint32_t> own_id(pid_t pid, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/status", pid, tid));
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream ids(line.substr(line.find(':') + 1));
    uint32_t last = 0;
    while (ids >> last) {
    }
    return last;
  }
  return std::nullopt;
}

// "NR a1 … a6 SP PC", or "-1 SP PC" outside of a call; "running" says nothing.
std::optional<uint64_t> waiting_stack(pid_t pid, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/syscall", pid, tid));
  std::vector<std::string> words;
  std::string word;
  while (file >> word)
    words.push_back(word);
  constexpr size_t kWordsMin = 3;
  if (words.size() < kWordsMin) return std::nullopt;
  return std::stoull(words[words.size() - 2], nullptr, 16);
}

}  // namespace

std::optional<target::Incarnation> incarnation_of(pid_t pid) {
  const auto facts = target::read_facts(pid);
  return facts ? std::optional(facts->incarnation) : std::nullopt;
}

std::optional<target::Incarnation> sharer_of(int file, pid_t pid) {
  struct stat wanted = {};
  if (fstat(file, &wanted) != 0) return std::nullopt;
  auto life = incarnation_of(pid);  // Before the maps: who came since has not these.
  const auto maps = target::read_memory_map(pid).value_or(std::vector<target::Mapping>{});
  const bool has_it = std::any_of(maps.begin(), maps.end(), [&](const target::Mapping& map) {
    return map.shared && map.inode == wanted.st_ino &&
           makedev(map.device_major, map.device_minor) == wanted.st_dev;
  });
  return has_it ? life : std::nullopt;
}

// The pid may have changed hands until the memory was read, so it is looked at after that.
bool ReadMemory::read(uint64_t process, uint64_t address, std::span<uint8_t> bytes) {
  const auto found = processes_.find(process);
  return found != processes_.end() &&
         target::read_memory(found->second.pid, address, bytes).has_value() &&
         incarnation_of(found->second.pid) == found->second;
}

OpenRecordCheck::OpenRecordCheck(const ProcessIds& processes) {
  for (const auto& [index, life] : processes)
    processes_[index] = look_at(life.pid);
}

OpenRecordCheck::Process OpenRecordCheck::look_at(pid_t pid) {
  Process process{.pid = pid, .threads = {}, .mappings = {}};
  for (const pid_t tid : target::list_threads(pid).value_or(std::vector<pid_t>{})) {
    const std::optional<uint32_t> own = own_id(pid, tid);
    if (own) process.threads[*own] = waiting_stack(pid, tid);
  }
  process.mappings = target::read_memory_map(pid).value_or(std::vector<target::Mapping>{});
  return process;
}

// call rel32, or call through a register or memory, of 2 to 7 bytes.
bool OpenRecordCheck::follows_call(const Process& process, uint64_t address) {
  const bool is_code = std::any_of(
      process.mappings.begin(), process.mappings.end(),
      [&](const auto& mapping) { return mapping.executable && mapping.contains(address); });
  constexpr size_t kCallBytesMax = 7;
  std::array<uint8_t, kCallBytesMax> before{};
  if (!is_code || !target::read_memory(process.pid, address - before.size(), before)) return false;
  constexpr uint8_t kCallNear = 0xe8;
  constexpr size_t kCallNearBytes = 5;
  if (before[kCallBytesMax - kCallNearBytes] == kCallNear) return true;
  constexpr uint8_t kGroup5 = 0xff;
  constexpr uint8_t kCallInGroup = 2;
  for (size_t i = 0; i + 1 < before.size(); ++i) {
    if (before[i] == kGroup5 && (before[i + 1] >> 3 & 7) == kCallInGroup) return true;
  }
  return false;
}

bool OpenRecordCheck::is_open(const collect::OpenRecord& record, const plan::RecordShape& shape) {
  const auto process = processes_.find(record.process);
  if (process == processes_.end()) return false;
  const auto& threads = process->second.threads;
  const auto thread = threads.find(record.tid);
  const bool is_known = record.tid != 0;  // It may have been forbidden to ask for it.
  if (threads.empty() || (is_known && thread == threads.end())) return false;
  const uint64_t stack = is_known ? thread->second.value_or(0) : 0;
  if (record.frame < stack && stack - record.frame < abi::kStackSpanBytes) return false;
  std::array<uint8_t, 8> bytes{};
  if (!target::read_memory(process->second.pid, record.frame, bytes)) return false;
  const auto now = std::bit_cast<uint64_t>(bytes);
  if (shape.caller_word) return record.payload.at(*shape.caller_word) == now;
  return follows_call(process->second, now);
}

}  // namespace clew::engine
