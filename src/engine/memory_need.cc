// SPDX-License-Identifier: Apache-2.0
#include "engine/memory_need.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "abi/arena.h"
#include "abi/slot.h"
#include "target/memory_room.h"
#include "target/process.h"

namespace clew::engine {
namespace {

// The arena's private pages, its directory and page tables (abi/arena.h).
constexpr uint64_t kProcessBytes = uint64_t{1} << 20;

// What is wanted of one group.
struct Demand {
  target::MemoryRoom room;
  pid_t first = 0;
  MemoryNeed need;
};

double mebibytes(uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

uint64_t bytes_of_thread(const abi::RegionLayout& region) {
  return abi::kSlotControlSizeBytes + (uint64_t{1} << region.size_log2);
}

Error refusal(const Demand& demand, uint64_t thread_bytes) {
  const std::string where = demand.room.group.empty()
                                ? std::string("the machine has")
                                : fmt::format("its control group {} has", demand.room.group);
  return {ErrorCode::Refused,
          fmt::format("process {} might be killed for want of memory: {} {:.1f} MiB of {:.1f} "
                      "left, and the session may take {:.1f} MiB ({:.2f} in each of {} threads) "
                      "[memory]",
                      demand.first, where, mebibytes(demand.room.left_bytes),
                      mebibytes(demand.room.limit_bytes), mebibytes(demand.need.bytes),
                      mebibytes(thread_bytes), demand.need.threads)};
}

}  // namespace

MemoryNeed memory_need(std::span<const pid_t> pids, const abi::RegionLayout& region) {
  const uint64_t objects = region.contexts.offset != 0 ? sizeof(abi::TargetPage::objects[0]) : 0;
  MemoryNeed need;
  for (const pid_t pid : pids) {
    const auto threads = target::list_threads(pid);
    const uint64_t count = threads ? std::min<uint64_t>(threads->size(), abi::kSlotsMax) : 1;
    need.threads += count;
    need.bytes += kProcessBytes + objects + count * bytes_of_thread(region);
  }
  return need;
}

Expected<void> check_memory(std::span<const pid_t> pids, const abi::RegionLayout& region) {
  const uint64_t thread_bytes = bytes_of_thread(region);
  std::map<std::string, Demand> demands;  // By group: its processes share what is left.
  for (const pid_t pid : pids) {
    target::MemoryRoom room = target::memory_room(pid);
    Demand& demand = demands[room.group];
    if (demand.first == 0) demand.first = pid;
    demand.room = std::move(room);
    const MemoryNeed need = memory_need({&pid, 1}, region);
    demand.need.threads += need.threads;
    demand.need.bytes += need.bytes;
  }
  for (const auto& [group, demand] : demands) {
    // Where not even the machine's room can be read, it is something else that there is too little
    // of.
    const bool is_known = !group.empty() || demand.room.limit_bytes != 0;
    if (is_known && demand.need.bytes > demand.room.left_bytes) {
      return tl::unexpected(refusal(demand, thread_bytes));
    }
  }
  return {};
}

}  // namespace clew::engine
