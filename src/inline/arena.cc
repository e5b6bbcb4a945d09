// SPDX-License-Identifier: Apache-2.0
// Making, joining and removing an arena. The order of steps matters: at each of them the target may
// be left alone for ever.
#include "inline/arena.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error_text.h"
#include "inline/arena_layout.h"
#include "inline/brief_wait.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace clew::inline_ {
namespace {

constexpr uint32_t kSlotsMin = 64;
// The low block ends where windows of up to 256 MiB behind it still have 31-bit addresses.
constexpr uint64_t kLowBlockTop = 0x7000'0000;
constexpr uint32_t kRegionSizeLog2Max = 26;
constexpr uint64_t kWriteExecuteFlags = PROT_READ | PROT_EXEC;

Expected<uint64_t> create_file(StoppedTarget& target) {
  const uint64_t name = CLEW_TRY(target.scratch());
  const std::string text(kArenaName);
  CLEW_TRY(target.write(name, {reinterpret_cast<const uint8_t*>(text.c_str()), text.size() + 1}));
  // The flag MFD_EXEC is needed where vm.memfd_noexec is set, and unknown to kernels before 6.3.
  const uint64_t flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const RemoteCall call = {.number = SYS_memfd_create, .arguments = {name, flags | MFD_EXEC}};
  const int64_t fd = CLEW_TRY(target.call(call));
  if (fd >= 0) return static_cast<uint64_t>(fd);
  return target.checked_call("memfd_create",
                             {.number = SYS_memfd_create, .arguments = {name, flags}});
}

Expected<FileDescriptor> take_file(pid_t pid, uint64_t fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.valid()) return file;
  return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
}

struct MapRequest {
  const char* what;
  uint64_t address = 0;  // 0 = anywhere.
  uint64_t size = 0;
  uint64_t protection = 0;
  uint64_t flags = 0;
  uint64_t fd = ~uint64_t{0};
  uint64_t offset = 0;
};

Expected<uint64_t> map_remote(StoppedTarget& target, const MapRequest& request) {
  const uint64_t fixed = request.address != 0 ? MAP_FIXED_NOREPLACE : 0;
  const uint64_t address = CLEW_TRY(target.checked_call(
      request.what,
      {.number = SYS_mmap,
       .arguments = {request.address, request.size, request.protection,
                     request.flags | fixed | MAP_NORESERVE, request.fd, request.offset}}));
  // Kernels before 4.17 take NOREPLACE for a hint.
  if (request.address == 0 || address == request.address) return address;
  (void)target.call({.number = SYS_munmap, .arguments = {address, request.size}});
  return fail(ErrorCode::Io, fmt::format("{}: the kernel chose another address", request.what));
}

// A program that locks all memory it will ever map (mlockall(2), MCL_FUTURE) would get every page
// of the arena at once. Nothing fills memory that nobody may read, and once it is not locked
// nothing fills it later.
Expected<uint64_t> map_unlocked(StoppedTarget& target, const MapRequest& request) {
  MapRequest empty = request;
  empty.protection = PROT_NONE;
  const uint64_t address = CLEW_TRY(map_remote(target, empty));
  (void)target.call({.number = SYS_munlock, .arguments = {address, request.size}});
  const RemoteCall open = {.number = SYS_mprotect,
                           .arguments = {address, request.size, request.protection}};
  const auto opened = target.checked_call(request.what, open);
  if (opened) return address;
  (void)target.call({.number = SYS_munmap, .arguments = {address, request.size}});
  return tl::unexpected(opened.error());
}

// The same inode as the mapping's, among the descriptors of a process.
FileDescriptor open_from(pid_t holder, uint64_t inode) {
  const std::string folder = fmt::format("/proc/{}/fd", holder);
  DIR* const listing = opendir(folder.c_str());
  if (listing == nullptr) return {};
  FileDescriptor found;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is our own.
  while (const dirent* entry = readdir(listing)) {
    struct stat info = {};
    const std::string path = fmt::format("{}/{}", folder, entry->d_name);
    std::string link(128, '\0');
    const ssize_t length = readlink(path.c_str(), link.data(), link.size());
    const bool named =
        length > 0 && link.substr(0, static_cast<size_t>(length)).find(kArenaName) != link.npos;
    if (!named || stat(path.c_str(), &info) != 0 || info.st_ino != inode) continue;
    found = FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (found.valid()) break;
  }
  closedir(listing);
  return found;
}

Expected<void> read_process(pid_t pid, uint64_t address, std::span<uint8_t> bytes) {
  return target::read_memory(pid, address, bytes);
}

FileDescriptor open_shared_file(pid_t pid, const ArenaMapping& mapping) {
  // Needs CAP_CHECKPOINT_RESTORE.
  const target::Mapping& first = mapping.mappings.front();
  const std::string path = fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, first.start, first.end);
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.valid()) return file;
  abi::ArenaHeader header = {};
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(&header), sizeof header);
  if (!read_process(pid, mapping.low_address + abi::kHeaderOffset, bytes)) return {};
  for (const abi::SessionEntry& session : header.sessions) {
    if (session.state == 0) continue;
    file = open_from(static_cast<pid_t>(session.tracer_pid), mapping.inode);
    if (file.valid()) return file;
  }
  return open_from(pid, mapping.inode);
}

bool is_sound(const abi::ArenaHeader& header, uint64_t low_address) {
  return header.magic == abi::kArenaMagic && header.version == abi::kArenaVersion &&
         header.low_address == low_address && header.slot_count != 0 &&
         header.slot_count <= abi::kSlotsMax && header.journal_file_offset == kJournalOffset &&
         header.code_file_offset == kCodeOffset && header.code_size_bytes == kCodeSize &&
         header.slots_file_offset == kSlotsOffset && header.slot_stride != 0 &&
         header.slot_stride % kPage == 0 && header.slot_stride <= (uint64_t{1} << 32);
}

bool is_sound(const abi::JournalHeader& journal) {
  return journal.magic == abi::kJournalMagic && journal.version == abi::kJournalVersion &&
         journal.extent_count <= abi::kExtentsMax && journal.site_count <= abi::kSitesMax &&
         journal.layer_count <= abi::kLayersMax;
}

// A file that can shrink would be a SIGBUS for us whenever its owner likes.
bool is_sealed(int file) {
  constexpr int kWanted = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & kWanted) == kWanted;
}

// The file is the target's own: made by it, or by root before it gave its rights away.
bool is_owned(int file, pid_t pid) {
  struct stat info = {};
  const auto facts = target::read_facts(pid);
  if (!facts || fstat(file, &info) != 0) return false;
  return info.st_uid == facts->uid || info.st_uid == 0;
}

// Everything of the target's address space that one arena needs besides the low block.
Expected<void> map_parts(StoppedTarget& target, abi::ArenaHeader& header, uint64_t fd) {
  header.journal_address = CLEW_TRY(map_unlocked(target, {.what = "mapping the journal",
                                                          .size = abi::kJournalSizeBytes,
                                                          .protection = PROT_READ,
                                                          .flags = MAP_SHARED,
                                                          .fd = fd,
                                                          .offset = kJournalOffset}));
  header.code_address = CLEW_TRY(map_unlocked(target, {.what = "mapping the code area",
                                                       .size = kCodeSize,
                                                       .protection = kWriteExecuteFlags,
                                                       .flags = MAP_SHARED,
                                                       .fd = fd,
                                                       .offset = kCodeOffset}));
  // Limited address space: fewer slots.
  for (uint32_t count = header.slot_count;; count /= 2) {
    const uint64_t size = count * header.slot_stride;
    const auto address = map_unlocked(target, {.what = "mapping the slots",
                                               .size = size,
                                               .protection = PROT_READ | PROT_WRITE,
                                               .flags = MAP_SHARED,
                                               .fd = fd,
                                               .offset = kSlotsOffset});
    if (address) {
      header.slot_count = count;
      header.slots_address = *address;
      advise(target, *address, size, MADV_DONTDUMP);
      advise(target, *address, size, MADV_NOHUGEPAGE);
      break;
    }
    if (count <= kSlotsMin) return tl::unexpected(address.error());
  }
  advise(target, header.journal_address, abi::kJournalSizeBytes, MADV_DONTDUMP);
  advise(target, header.code_address, kCodeSize, MADV_DONTDUMP);
  return {};
}

// As the process itself knows it.
Expected<uint32_t> inner_pid(pid_t pid) {
  const target::ProcessFacts facts = CLEW_TRY(target::read_facts(pid));
  const pid_t inner = facts.namespace_pids.empty() ? 0 : facts.namespace_pids.back();
  return static_cast<uint32_t>(inner);
}

// The header first: by it the low block is recognised, at once, and readable as it is.
Expected<uint64_t> map_low_block(StoppedTarget& target, uint64_t fd) {
  const auto maps = CLEW_TRY(target::read_memory_map(target.pid()));
  const auto low = find_gap(
      maps,
      {.low = 0, .high = kLowBlockTop, .size = abi::kLowBlockSizeBytes + kPage, .from_top = true});
  if (!low) {
    return fail(ErrorCode::Refused, fmt::format("process {} has no free memory below 2 GiB "
                                                "[no-low-memory]",
                                                target.pid()));
  }
  CLEW_TRY(map_remote(target, {.what = "mapping the header",
                               .address = *low + abi::kHeaderOffset,
                               .size = kSharedLowSize,
                               .protection = PROT_READ | PROT_WRITE,
                               .flags = MAP_SHARED,
                               .fd = fd}));
  CLEW_TRY(map_remote(target, {.what = "mapping the private page",
                               .address = *low,
                               .size = kPage,
                               .protection = PROT_READ | PROT_WRITE,
                               .flags = MAP_PRIVATE | MAP_ANONYMOUS}));
  CLEW_TRY(
      target.checked_call("madvise(MADV_WIPEONFORK)",
                          {.number = SYS_madvise, .arguments = {*low, kPage, MADV_WIPEONFORK}}));
  abi::PrivatePage page{};
  page.cookie = uint64_t{1} << 48;
  page.pid = CLEW_TRY(inner_pid(target.pid()));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&page);
  CLEW_TRY(target.write(*low, {bytes, sizeof page}));
  return *low;
}

void write_header(abi::ArenaHeader& header, const ArenaOptions& options, pid_t pid) {
  header.version = abi::kArenaVersion;
  header.slot_count = abi::kSlotsMax;
  header.slot_stride = round_to_pages(options.slot_stride);
  header.slots_file_offset = kSlotsOffset;
  header.journal_file_offset = kJournalOffset;
  header.code_file_offset = kCodeOffset;
  header.code_size_bytes = kCodeSize;
  header.fork_policy = options.fork_policy;
  header.system_calls_allowed = options.traits.system_calls_allowed ? 1 : 0;
  header.fs_base_instruction = options.traits.fs_base_instruction ? 1 : 0;
  header.tid_offset = options.traits.tid_offset;
  header.process_count = 1;
  header.processes[0].pid = static_cast<uint32_t>(pid);
}

}  // namespace

void advise(StoppedTarget& target, uint64_t address, uint64_t size, int advice) {
  (void)target.call(
      {.number = SYS_madvise, .arguments = {address, size, static_cast<uint64_t>(advice)}});
}

std::optional<ArenaMapping> find_arena(std::span<const target::Mapping> maps) {
  ArenaMapping found;
  const std::string name = fmt::format("/memfd:{}", kArenaName);
  for (const target::Mapping& map : maps) {
    if (!map.shared || map.path != name) continue;
    if (map.file_offset == 0 && map.start < kLowBlockTop) {
      found.low_address = map.start - abi::kHeaderOffset;
      found.inode = map.inode;
    }
    found.mappings.push_back(map);
  }
  if (found.mappings.empty()) return std::nullopt;
  std::sort(found.mappings.begin(), found.mappings.end(),
            [](const target::Mapping& a, const target::Mapping& b) {
              return a.file_offset < b.file_offset;
            });
  return found;
}

Expected<Arena> Arena::create(StoppedTarget& target, const ArenaOptions& options) {
  const uint64_t fd = CLEW_TRY(create_file(target));
  Arena arena;
  arena.file_ = CLEW_TRY(take_file(target.pid(), fd));
  const uint64_t stride = round_to_pages(options.slot_stride);
  CLEW_TRY(arena.map_file(kSlotsOffset + abi::kSlotsMax * stride));
  (void)fcntl(arena.file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  abi::ArenaHeader& header = arena.header();
  write_header(header, options, target.pid());
  arena.journal().magic = abi::kJournalMagic;
  arena.journal().version = abi::kJournalVersion;
  const auto low = map_low_block(target, fd);
  const auto parts = low ? map_parts(target, header, fd) : Expected<void>();
  (void)target.call({.number = SYS_close, .arguments = {fd}});
  if (!low || !parts) {
    (void)unmap(target);
    return tl::unexpected(low ? parts.error() : low.error());
  }
  header.low_address = *low;
  arena.low_address_ = *low;
  header.magic = abi::kArenaMagic;
  if (arena.take_shape()) return arena;
  return fail(ErrorCode::Io, fmt::format("process {} changes its arena", target.pid()));
}

Expected<Arena> Arena::join(pid_t pid, const ArenaMapping& mapping) {
  Arena arena;
  arena.low_address_ = mapping.low_address;
  if (mapping.low_address == 0) {
    return fail(ErrorCode::Refused, fmt::format("process {} holds a damaged arena", pid));
  }
  arena.file_ = open_shared_file(pid, mapping);
  struct stat info = {};
  if (!arena.file_.valid()) {
    CLEW_TRY(arena.map_copy(pid, mapping));
  } else if (fstat(arena.file_.get(), &info) == 0 && is_sealed(arena.file_.get()) &&
             is_owned(arena.file_.get(), pid) &&
             static_cast<uint64_t>(info.st_size) > kSlotsOffset) {
    CLEW_TRY(arena.map_file(static_cast<uint64_t>(info.st_size)));
  }
  if (arena.base_ != nullptr && arena.take_shape()) return arena;
  return fail(ErrorCode::Refused,
              fmt::format("process {} holds an arena that is damaged or of another version", pid));
}

// False when header or journal make no sense.
bool Arena::take_shape() {
  const abi::ArenaHeader header = copy_once(this->header());
  const abi::JournalHeader journal = copy_once(this->journal());
  if (!is_sound(header, low_address_) || !is_sound(journal)) return false;
  if (shared() && size_ - kSlotsOffset < header.slot_count * header.slot_stride) return false;
  shape_ = {.slot_count = header.slot_count,
            .slot_stride = header.slot_stride,
            .slots_address = header.slots_address,
            .code_address = header.code_address,
            .fs_base_instruction = header.fs_base_instruction != 0};
  return extents().count == journal.extent_count;
}

Expected<void> Arena::map_file(uint64_t size) {
  struct stat info = {};
  const bool grow = fstat(file_.get(), &info) == 0 && static_cast<uint64_t>(info.st_size) < size;
  if (grow && ftruncate(file_.get(), static_cast<off_t>(size)) != 0) {
    return fail(ErrorCode::Io, fmt::format("arena of {} bytes: {}", size, error_text(errno)));
  }
  void* const at =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  if (at == MAP_FAILED) {
    return fail(ErrorCode::Io, fmt::format("mapping the arena: {}", error_text(errno)));
  }
  (void)madvise(at, size, MADV_DONTDUMP);
  base_ = static_cast<uint8_t*>(at);
  size_ = size;
  slots_offset_ = kSlotsOffset;
  return {};
}

// Header, journal header, and the records in use, at the offsets they have in the file.
Expected<void> Arena::map_copy(pid_t pid, const ArenaMapping& mapping) {
  void* const at = mmap(nullptr, kCodeOffset, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return fail(ErrorCode::Io, "no memory for a copy of the arena");
  base_ = static_cast<uint8_t*>(at);
  size_ = kCodeOffset;
  const auto part = [&](uint64_t offset, uint64_t size) { return std::span(base_ + offset, size); };
  CLEW_TRY(read_process(pid, mapping.low_address + abi::kHeaderOffset,
                        part(0, sizeof(abi::ArenaHeader))));
  const uint64_t journal_address = header().journal_address;
  CLEW_TRY(read_process(pid, journal_address, part(kJournalOffset, sizeof(abi::JournalHeader))));
  const uint64_t sites = std::min(journal().site_count, abi::kSitesMax) * sizeof(abi::SiteRecord);
  const uint64_t layers =
      std::min(journal().layer_count, abi::kLayersMax) * sizeof(abi::LayerRecord);
  CLEW_TRY(read_process(pid, journal_address + abi::kJournalSitesOffset,
                        part(kJournalOffset + abi::kJournalSitesOffset, sites)));
  return read_process(pid, journal_address + abi::kJournalLayersOffset,
                      part(kJournalOffset + abi::kJournalLayersOffset, layers));
}

Arena::Arena(Arena&& other) noexcept
    : file_(std::move(other.file_)),
      base_(std::exchange(other.base_, nullptr)),
      size_(other.size_),
      slots_offset_(other.slots_offset_),
      low_address_(other.low_address_),
      shape_(other.shape_) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this != &other) {
    if (base_ != nullptr) munmap(base_, size_);
    file_ = std::move(other.file_);
    base_ = std::exchange(other.base_, nullptr);
    size_ = other.size_;
    slots_offset_ = other.slots_offset_;
    low_address_ = other.low_address_;
    shape_ = other.shape_;
  }
  return *this;
}

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, size_);
}

abi::ArenaHeader& Arena::header() const {
  return *reinterpret_cast<abi::ArenaHeader*>(base_);
}

abi::JournalHeader& Arena::journal() const {
  return *reinterpret_cast<abi::JournalHeader*>(base_ + kJournalOffset);
}

std::span<abi::SiteRecord> Arena::sites() const {
  auto* const at = base_ + kJournalOffset + abi::kJournalSitesOffset;
  return {reinterpret_cast<abi::SiteRecord*>(at), abi::kSitesMax};
}

std::span<abi::LayerRecord> Arena::layers() const {
  auto* const at = base_ + kJournalOffset + abi::kJournalLayersOffset;
  return {reinterpret_cast<abi::LayerRecord*>(at), abi::kLayersMax};
}

abi::SessionEntry Arena::session(uint32_t index) const {
  abi::SessionEntry entry = copy_once(header().sessions[index]);
  entry.layout.size_log2 = std::min(entry.layout.size_log2, kRegionSizeLog2Max);
  return entry;
}

bool Arena::contains_slot(uint64_t gs_base) const {
  const uint64_t address = gs_base + low_address_;
  return address - shape_.slots_address < shape_.slot_count * shape_.slot_stride;
}

// One that is dead, also if nobody has waited for it yet, has no memory; a process that got its pid
// since has not this file.
bool Arena::is_mapped_by(pid_t pid) const {
  struct stat info = {};
  if (fstat(file_.get(), &info) != 0) return true;
  const auto maps = target::read_memory_map(pid);
  if (!maps) return maps.error().code != ErrorCode::NotFound;
  return std::any_of(maps->begin(), maps->end(), [&](const target::Mapping& map) {
    return map.shared && map.inode == info.st_ino;
  });
}

bool Arena::lock(std::chrono::milliseconds timeout) const {
  if (!shared()) return true;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  constexpr std::chrono::microseconds kPause{1000};
  uint32_t* const owner = &header().lock_owner;
  const auto mine = static_cast<uint32_t>(getpid());
  while (true) {
    uint32_t seen = 0;
    if (__atomic_compare_exchange_n(owner, &seen, mine, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      return true;
    }
    // A dead owner cannot let go.
    const bool dead = !is_mapped_by(static_cast<pid_t>(seen));
    if (dead && __atomic_compare_exchange_n(owner, &seen, mine, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
      return true;
    }
    if (std::chrono::steady_clock::now() > deadline) return false;
    wait_briefly(kPause);
  }
}

void Arena::unlock() const {
  if (shared()) __atomic_store_n(&header().lock_owner, 0U, __ATOMIC_RELEASE);
}

Expected<void> Arena::unmap(StoppedTarget& target) {
  const auto maps = CLEW_TRY(target::read_memory_map(target.pid()));
  const auto found = find_arena(maps);
  if (!found) return {};
  // The private page is recognised by its place, so the header goes last; the journal before that,
  // as it says how the rest is removed.
  for (const target::Mapping& map : maps) {
    const bool is_private_page = found->low_address != 0 && map.end - kPage == found->low_address &&
                                 map.inode == 0 && map.writable && !map.shared;
    if (!is_private_page) continue;
    CLEW_TRY(target.checked_call("munmap",
                                 {.number = SYS_munmap, .arguments = {found->low_address, kPage}}));
  }
  for (size_t i = found->mappings.size(); i-- > 0;) {
    const target::Mapping& map = found->mappings[i];
    CLEW_TRY(target.checked_call(
        "munmap", {.number = SYS_munmap, .arguments = {map.start, map.size_bytes()}}));
  }
  return {};
}

uint64_t start_time_of(pid_t pid) {
  const auto process = target::read_process(pid);
  const bool is_there = process && process->state != 'Z' && process->state != 'X';
  return is_there ? process->incarnation.start_ticks : 0;
}

}  // namespace clew::inline_
