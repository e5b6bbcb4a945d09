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
  uint64_t threads = 0;
  uint64_t bytes = 0;
};

double mebibytes(uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
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
                      mebibytes(demand.room.limit_bytes), mebibytes(demand.bytes),
                      mebibytes(thread_bytes), demand.threads)};
}

}  // namespace

Expected<void> check_memory(std::span<const pid_t> pids, const abi::RegionLayout& region) {
  const uint64_t thread_bytes = abi::kSlotControlSizeBytes + (uint64_t{1} << region.size_log2);
  std::map<std::string, Demand> demands;  // By group: its processes share what is left.
  for (const pid_t pid : pids) {
    target::MemoryRoom room = target::memory_room(pid);
    const auto threads = target::list_threads(pid);
    Demand& demand = demands[room.group];
    if (demand.first == 0) demand.first = pid;
    demand.room = std::move(room);
    const uint64_t count = threads ? std::min<uint64_t>(threads->size(), abi::kSlotsMax) : 1;
    demand.threads += count;
    const uint64_t objects = region.contexts.offset != 0 ? sizeof(abi::TargetPage::objects[0]) : 0;
    demand.bytes += kProcessBytes + objects + count * thread_bytes;
  }
  for (const auto& [group, demand] : demands) {
    // Where not even the machine's room can be read, it is something else that there is too little
    // of.
    const bool is_known = !group.empty() || demand.room.limit_bytes != 0;
    if (is_known && demand.bytes > demand.room.left_bytes) {
      return tl::unexpected(refusal(demand, thread_bytes));
    }
  }
  return {};
}

}  // namespace clew::engine
