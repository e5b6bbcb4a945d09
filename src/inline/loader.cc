// SPDX-License-Identifier: Apache-2.0
// Reads r_debug through the program's DT_DEBUG entry, from outside.
#include "inline/loader.h"

#include <algorithm>
#include <fstream>
#include <span>

#include <elf.h>
#include <fmt/format.h>

#include "target/process.h"

namespace clew::inline_ {
namespace {

constexpr uint32_t kConsistent = 0;  // RT_CONSISTENT
constexpr uint64_t kHeadersMax = 64;
constexpr uint64_t kEntriesMax = 256;

// struct r_debug (link.h).
struct DebugRecord {
  int32_t version;
  uint32_t reserved;
  uint64_t map;
  uint64_t notice;
  uint32_t state;
  uint32_t reserved2;
};

template <typename T>
bool read_object(pid_t pid, uint64_t address, T& object) {
  return target::read_memory(pid, address,
                             std::span(reinterpret_cast<uint8_t*>(&object), sizeof object))
      .has_value();
}

// Address of the program's r_debug; 0 while the loader has not set it.
uint64_t find_debug_record(pid_t pid, const AuxiliaryValues& values) {
  uint64_t bias = 0;
  uint64_t dynamic = 0;
  for (uint64_t i = 0; i < std::min(values.header_count, kHeadersMax); ++i) {
    Elf64_Phdr header = {};
    if (!read_object(pid, values.headers + i * sizeof header, header)) return 0;
    if (header.p_type == PT_PHDR) bias = values.headers - header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) dynamic = header.p_vaddr;
  }
  for (uint64_t i = 0; dynamic != 0 && i < kEntriesMax; ++i) {
    Elf64_Dyn entry = {};
    if (!read_object(pid, bias + dynamic + i * sizeof entry, entry)) return 0;
    if (entry.d_tag == DT_NULL) return 0;
    if (entry.d_tag == DT_DEBUG) return entry.d_un.d_ptr;
  }
  return 0;
}

}  // namespace

std::optional<AuxiliaryValues> read_auxiliary(pid_t pid) {
  std::optional<AuxiliaryValues> values;
  std::ifstream file(fmt::format("/proc/{}/auxv", target::memory_holder(pid)), std::ios::binary);
  uint64_t entry[2] = {};
  while (file.read(reinterpret_cast<char*>(entry), sizeof entry)) {
    if (!values) values.emplace();
    if (entry[0] == AT_BASE) values->loader_base = entry[1];
    if (entry[0] == AT_ENTRY) values->entry = entry[1];
    if (entry[0] == AT_PHDR) values->headers = entry[1];
    if (entry[0] == AT_PHNUM) values->header_count = entry[1];
    if (entry[0] == AT_SECURE) values->is_secure = entry[1] != 0;
  }
  return values;
}

std::optional<LoaderState> read_loader_state(pid_t pid) {
  const auto values = read_auxiliary(pid);
  if (!values) return std::nullopt;
  const uint64_t address = find_debug_record(pid, *values);
  DebugRecord record = {};
  if (address == 0 || !read_object(pid, address, record)) return std::nullopt;
  return LoaderState{.notice_address = record.notice, .consistent = record.state == kConsistent};
}

}  // namespace clew::inline_
