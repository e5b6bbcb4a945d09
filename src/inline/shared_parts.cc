// SPDX-License-Identifier: Apache-2.0
// How descriptors reach the target: it makes a pair of sockets, one end of which we take
// (pidfd_getfd(2)); we send the descriptors, and it receives and maps them. All that it opens
// closes itself when the process executes another program, should we die before we close it.
#include "inline/shared_parts.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/log.h"
#include "inline/arena_layout.h"
#include "inline/attachment_state.h"
#include "target/process.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

namespace clew::inline_ {
namespace {

constexpr uint64_t kLowEnd = 0x7fff'0000;
constexpr uint64_t kHighBegin = uint64_t{1} << 32;

using Descriptors = std::vector<uint64_t>;  // Of the target.

template <typename Value>
std::span<uint8_t> bytes_of(Value& value) {
  return {reinterpret_cast<uint8_t*>(&value), sizeof value};
}

void close_remote(StoppedTarget& target, uint64_t descriptor) {
  (void)target.call({.number = SYS_close, .arguments = {descriptor}});
}

Expected<abi::SharedRecord*> record(const Arena& arena, const abi::SharedRecord& part) {
  for (abi::SharedRecord& slot : arena.journal().shared) {
    if (copy_once(slot).address != 0) continue;
    slot.session = part.session;
    slot.size_bytes = part.size_bytes;
    slot.identity = part.identity;
    slot.kind = part.kind;
    __atomic_store_n(&slot.address, part.address, __ATOMIC_RELEASE);
    return &slot;
  }
  return fail(ErrorCode::Limit, "the sessions on this process share too much memory");
}

// Of the BPF map that a descriptor stands for; 0 = none.
uint64_t map_of(const std::string& process, const std::string& descriptor) {
  std::ifstream file(fmt::format("/proc/{}/fdinfo/{}", process, descriptor));
  std::string name;
  uint64_t value = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (words >> name >> value && name == "map_id:") return value;
  }
  return 0;
}

std::string link_of(pid_t pid, const std::string& descriptor) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", pid, descriptor), error)
      .string();
}

// A pair of sockets of the target, in the journal while it is there.
class SocketPair {
 public:
  // Without an arena there is no journal yet.
  static Expected<SocketPair> make(StoppedTarget& target, const Arena* arena, uint32_t session) {
    const uint64_t at = CLEW_TRY(target.scratch());
    CLEW_TRY(target.checked_call(
        "socketpair",
        {.number = SYS_socketpair, .arguments = {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, at}}));
    SocketPair pair;
    CLEW_TRY(target.read(at, bytes_of(pair.descriptors)));
    for (size_t i = 0; arena != nullptr && i < pair.records.size(); ++i) {
      const auto end = static_cast<uint64_t>(pair.descriptors[i]);
      const auto recorded = record(*arena, {.address = end + 1,
                                            .size_bytes = 0,
                                            .identity = inode_of(target.pid(), end),
                                            .session = session,
                                            .kind = abi::SharedKind::Socket});
      pair.records[i] = recorded ? *recorded : nullptr;
    }
    return pair;
  }

  void close(StoppedTarget& target, size_t end) {
    close_remote(target, static_cast<uint64_t>(descriptors[end]));
    if (records[end] != nullptr) *records[end] = {};
  }

  static uint64_t inode_of(pid_t pid, uint64_t descriptor) {
    constexpr std::string_view kSocket = "socket:[";
    const std::string link = link_of(pid, std::to_string(descriptor));
    return link.starts_with(kSocket) ? std::strtoull(link.c_str() + kSocket.size(), nullptr, 10)
                                     : 0;
  }

  std::array<int, 2> descriptors{};
  std::array<abi::SharedRecord*, 2> records{};
};

// The rights to descriptors as recvmsg(2) and sendmsg(2) have them: a cmsghdr, which has no fixed
// size, then the descriptors.
struct RightsMessage {
  uint64_t length = 0;
  int level = 0;
  int type = 0;
  std::array<int, kSharedPartsAtOnceMax> descriptors{};

  static constexpr size_t size_bytes(size_t count) { return CMSG_SPACE(count * sizeof(int)); }
};
static_assert(offsetof(RightsMessage, descriptors) == CMSG_LEN(0));
static_assert(sizeof(RightsMessage) == CMSG_SPACE(kSharedPartsAtOnceMax * sizeof(int)));

Expected<void> send_descriptors(const FileDescriptor& socket, std::span<const SharedPart> parts) {
  RightsMessage rights;
  rights.length = CMSG_LEN(parts.size() * sizeof(int));
  rights.level = SOL_SOCKET;
  rights.type = SCM_RIGHTS;
  for (size_t i = 0; i < parts.size(); ++i)
    rights.descriptors[i] = parts[i].descriptor;
  uint8_t byte = 0;
  iovec content = {.iov_base = &byte, .iov_len = 1};
  msghdr message = {};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = &rights;
  message.msg_controllen = RightsMessage::size_bytes(parts.size());
  if (sendmsg(socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) return {};
  return fail(ErrorCode::Io, fmt::format("sending descriptors: {}", error_text(errno)));
}

// What recvmsg(2) needs, in the target's scratch area.
struct ReceiveArea {
  msghdr message{};
  iovec content{};
  uint64_t byte = 0;
  RightsMessage rights;
};
static_assert(sizeof(ReceiveArea) <= StoppedTarget::kScratchBytes);

Expected<Descriptors> receive_descriptors(StoppedTarget& target, uint64_t socket, size_t count) {
  const uint64_t at = CLEW_TRY(target.scratch());
  const auto pointer = [at](size_t offset) { return reinterpret_cast<void*>(at + offset); };
  ReceiveArea area;
  area.content = {.iov_base = pointer(offsetof(ReceiveArea, byte)), .iov_len = 1};
  area.message.msg_iov = static_cast<iovec*>(pointer(offsetof(ReceiveArea, content)));
  area.message.msg_iovlen = 1;
  area.message.msg_control = pointer(offsetof(ReceiveArea, rights));
  area.message.msg_controllen = RightsMessage::size_bytes(count);
  CLEW_TRY(target.write(at, bytes_of(area)));
  CLEW_TRY(target.checked_call(
      "recvmsg",
      {.number = SYS_recvmsg, .arguments = {socket, at, MSG_CMSG_CLOEXEC | MSG_DONTWAIT}}));
  CLEW_TRY(target.read(at, bytes_of(area)));
  const bool is_ours = area.rights.level == SOL_SOCKET && area.rights.type == SCM_RIGHTS &&
                       area.message.msg_controllen >= CMSG_LEN(0);
  const size_t length = is_ours ? area.rights.length : CMSG_LEN(0);
  const size_t came =
      length < CMSG_LEN(0) ? 0 : std::min((length - CMSG_LEN(0)) / sizeof(int), count);
  Descriptors received;
  for (size_t i = 0; i < came; ++i)
    received.push_back(static_cast<uint64_t>(area.rights.descriptors[i]));
  if (came == count) return received;
  for (const uint64_t descriptor : received)
    close_remote(target, descriptor);
  return fail(ErrorCode::Limit,
              fmt::format("process {} takes no {} more descriptors", target.pid(), count));
}

// One of a process's own descriptors. A first thread that has ended has none; then another one is
// asked (PIDFD_THREAD, Linux 6.9).
FileDescriptor take_descriptor(pid_t pid, int descriptor) {
  constexpr unsigned kThread = O_EXCL;
  const pid_t holder = target::memory_holder(pid);
  const FileDescriptor process(
      static_cast<int>(syscall(SYS_pidfd_open, holder, holder == pid ? 0 : kThread)));
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), descriptor, 0)));
}

Expected<Descriptors> pass(StoppedTarget& target, SocketPair pair,
                           std::span<const SharedPart> parts) {
  const FileDescriptor ours = take_descriptor(target.pid(), pair.descriptors[0]);
  const int error = errno;
  pair.close(target, 0);
  Expected<void> sent;
  if (ours.valid()) {
    sent = send_descriptors(ours, parts);
  } else {
    sent = fail(ErrorCode::Refused,
                fmt::format("a socket of process {}: {}", target.pid(), error_text(error)));
  }
  const auto theirs = static_cast<uint64_t>(pair.descriptors[1]);
  Expected<Descriptors> received = sent ? receive_descriptors(target, theirs, parts.size())
                                        : Expected<Descriptors>(tl::unexpected(sent.error()));
  pair.close(target, 1);
  return received;
}

// Addresses for all parts, a free page between them.
Expected<std::vector<uint64_t>> choose_places(pid_t pid, const Arena& arena,
                                              std::span<const SharedPart> parts) {
  std::array<uint64_t, 2> sizes = {kPage, kPage};  // High ones, low ones.
  for (const SharedPart& part : parts)
    sizes[part.is_low ? 1 : 0] += part.size_bytes + kPage;
  const auto maps = CLEW_TRY(target::read_memory_map(pid));
  const auto high = find_gap(
      maps,
      {.low = kHighBegin, .high = arena.shape().slots_address, .size = sizes[0], .from_top = true});
  const auto low = find_gap(maps, {.low = 0, .high = kLowEnd, .size = sizes[1], .from_top = true});
  if (!high || !low) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} has no free address space [no-memory]", pid));
  }
  std::array<uint64_t, 2> next = {*high + kPage, *low + kPage};
  std::vector<uint64_t> places;
  for (const SharedPart& part : parts) {
    uint64_t& place = next[part.is_low ? 1 : 0];
    places.push_back(place);
    place += part.size_bytes + kPage;
  }
  return places;
}

Expected<void> map_part(StoppedTarget& target, const SharedPart& part, uint64_t address,
                        uint64_t descriptor) {
  const uint64_t writable = part.is_writable ? PROT_WRITE : 0;
  const uint64_t got = CLEW_TRY(target.checked_call(
      "mapping the session's memory",
      {.number = SYS_mmap,
       .arguments = {address, part.size_bytes, PROT_READ | writable,
                     MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, descriptor, 0}}));
  if (got != address) {
    (void)target.call({.number = SYS_munmap, .arguments = {got, part.size_bytes}});
    return fail(ErrorCode::Io, "mapping the session's memory: the kernel chose another address");
  }
  // Nearly all of it was never touched: a core file would have it as so many zeros.
  advise(target, address, part.size_bytes, MADV_DONTDUMP);
  if (!part.is_writable || part.is_inherited) return {};
  // A forked child may have fewer rights, and runs no probe that would want it (ForkPolicy::Mute).
  CLEW_TRY(target.checked_call(
      "madvise(MADV_DONTFORK)",
      {.number = SYS_madvise, .arguments = {address, part.size_bytes, MADV_DONTFORK}}));
  return {};
}

Expected<uint16_t> read_semaphore(const StoppedTarget& target, uint64_t address) {
  uint16_t value = 0;
  CLEW_TRY(target.read(address, bytes_of(value)));
  return value;
}

// Of this session, in modules that are gone, or came back with nobody listening.
void forget_semaphores(const Arena& arena, uint32_t session, std::span<const target::Mapping> maps,
                       std::span<const uint64_t> raised_anew) {
  for (abi::SharedRecord& slot : arena.journal().shared) {
    const abi::SharedRecord part = copy_once(slot);
    const bool is_ours =
        part.address != 0 && part.session == session && part.kind == abi::SharedKind::Semaphore;
    const bool is_old =
        std::find(raised_anew.begin(), raised_anew.end(), part.address) != raised_anew.end() ||
        !is_there(maps, part);
    if (is_ours && is_old) slot = {};
  }
}

Expected<void> raise_one(const StoppedTarget& target, const Arena& arena, uint32_t session,
                         const target::Mapping& mapping, uint64_t address) {
  const uint16_t value = CLEW_TRY(read_semaphore(target, address));
  if (value == UINT16_MAX) return {};
  abi::SharedRecord* const slot =
      CLEW_TRY(record(arena, {.address = address,
                              .size_bytes = mapping.inode,
                              .identity = value,
                              .session = session,
                              .kind = abi::SharedKind::SemaphoreChanging}));
  auto raised = static_cast<uint16_t>(value + 1);
  CLEW_TRY(target.write(address, bytes_of(raised)));
  std::atomic_ref(slot->kind).store(abi::SharedKind::Semaphore, std::memory_order_release);
  return {};
}

}  // namespace

Expected<uint64_t> hand_over(StoppedTarget& target, int descriptor) {
  const SocketPair pair = CLEW_TRY(SocketPair::make(target, nullptr, 0));
  const SharedPart part = {.descriptor = descriptor};
  return CLEW_TRY(pass(target, pair, {&part, 1})).front();
}

bool is_there(std::span<const target::Mapping> maps, const abi::SharedRecord& semaphore) {
  const target::Mapping* const map = mapping_at(maps, semaphore.address);
  return map != nullptr && map->writable && !map->shared && map->inode != 0 &&
         map->inode == semaphore.size_bytes && map->contains(semaphore.address + 1);
}

Expected<void> lower_semaphore(const StoppedTarget& target, const abi::SharedRecord& part,
                               abi::SharedRecord* journaled) {
  const uint16_t value = CLEW_TRY(read_semaphore(target, part.address));
  const bool is_changing = part.kind == abi::SharedKind::SemaphoreChanging;
  if (value == 0 || (is_changing && value == part.identity)) return {};
  auto lowered = static_cast<uint16_t>(value - 1);
  if (journaled != nullptr) {
    journaled->identity = lowered;
    std::atomic_ref(journaled->kind)
        .store(abi::SharedKind::SemaphoreChanging, std::memory_order_release);
  }
  return target.write(part.address, bytes_of(lowered));
}

Expected<void> Attachment::raise(std::span<const uint64_t> semaphores) {
  if (semaphores.empty()) return {};
  const ProcessLock::Hold hold = CLEW_TRY(state_->lock->hold());
  const ArenaLock lock = CLEW_TRY(ArenaLock::take(state_->arena));
  StoppedTarget target = CLEW_TRY(stop_target(state_->pid, state_->options));
  if (!has_arena(state_->pid, state_->arena)) {
    return fail(ErrorCode::NotFound,
                fmt::format("process {} runs another program now", state_->pid));
  }
  const auto maps = CLEW_TRY(target::read_memory_map(state_->pid));
  forget_semaphores(state_->arena, geometry().session, maps, semaphores);
  for (const uint64_t address : semaphores) {
    const target::Mapping* const mapping = mapping_at(maps, address);
    if (mapping == nullptr) continue;  // Its module is gone already.
    CLEW_TRY(raise_one(target, state_->arena, geometry().session, *mapping, address));
  }
  target.resume();
  state_->note_stop(target);
  log_stop(target, "raise semaphores of static probes");
  return {};
}

std::vector<int> descriptors_left(pid_t process, std::span<const abi::SharedRecord> records) {
  std::vector<int> found;
  std::error_code error;
  const pid_t pid = target::memory_holder(process);
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const auto number = static_cast<uint64_t>(std::strtoull(name.c_str(), nullptr, 10));
    const std::string link = link_of(pid, name);
    if (link.starts_with(fmt::format("/memfd:{}", kSharedFileName))) {
      found.push_back(static_cast<int>(number));
      continue;
    }
    const bool is_map = link == "anon_inode:bpf-map";
    const uint64_t map = is_map ? map_of(std::to_string(pid), name) : 0;
    const bool is_ours =
        std::any_of(records.begin(), records.end(), [&](const abi::SharedRecord& one) {
          if (one.identity == 0) return false;
          if (one.kind == abi::SharedKind::Memory) return one.identity == map;
          return one.kind == abi::SharedKind::Socket && one.address == number + 1 &&
                 one.identity == SocketPair::inode_of(pid, number);
        });
    if (is_ours) found.push_back(static_cast<int>(number));
  }
  return found;
}

bool is_shared_part(const target::Mapping& map) {
  const bool is_named =
      map.path == "anon_inode:bpf-map" || map.path == fmt::format("/memfd:{}", kSharedFileName);
  return map.shared && is_named;
}

std::vector<std::pair<uint32_t, abi::SharedRecord>> Arena::shared_parts() const {
  std::vector<std::pair<uint32_t, abi::SharedRecord>> parts;
  for (uint32_t i = 0; i < abi::kSharedPartsMax; ++i) {
    const abi::SharedRecord part = copy_once(journal().shared[i]);
    if (part.address != 0) parts.emplace_back(i, part);
  }
  return parts;
}

Expected<std::vector<uint64_t>> Attachment::share(std::span<const SharedPart> parts) {
  if (parts.size() > kSharedPartsAtOnceMax) {
    return fail(ErrorCode::Limit, fmt::format("{} descriptors at once", parts.size()));
  }
  const ProcessLock::Hold hold = CLEW_TRY(state_->lock->hold());
  const ArenaLock lock = CLEW_TRY(ArenaLock::take(state_->arena));
  StoppedTarget target = CLEW_TRY(stop_target(state_->pid, state_->options));
  if (!has_arena(state_->pid, state_->arena)) {
    return fail(ErrorCode::NotFound,
                fmt::format("process {} runs another program now", state_->pid));
  }
  target.use_gadgets(state_->gadgets);
  const std::vector<uint64_t> places = CLEW_TRY(choose_places(state_->pid, state_->arena, parts));
  for (size_t i = 0; i < parts.size(); ++i) {
    CLEW_TRY(record(state_->arena, {.address = places[i],
                                    .size_bytes = parts[i].size_bytes,
                                    .identity = map_of("self", std::to_string(parts[i].descriptor)),
                                    .session = geometry().session,
                                    .kind = abi::SharedKind::Memory}));
  }
  const SocketPair pair =
      CLEW_TRY(SocketPair::make(target, &state_->arena, state_->geometry.session));
  const Descriptors descriptors = CLEW_TRY(pass(target, pair, parts));
  Expected<void> done;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (done) done = map_part(target, parts[i], places[i], descriptors[i]);
    close_remote(target, descriptors[i]);
  }
  target.resume();
  state_->note_stop(target);
  log_stop(target, "share memory of the tracer");
  for (size_t i = 0; i < parts.size(); ++i)
    log_detail(pid(), "shares {} KiB at {:#x}", parts[i].size_bytes >> 10, places[i]);
  if (!done) return tl::unexpected(done.error());
  return places;
}

}  // namespace clew::inline_
