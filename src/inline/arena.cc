// SPDX-License-Identifier: Apache-2.0
// Making, joining and removing an arena. The order of steps matters: at each of them the target may
// be left alone for ever.
#include "inline/arena.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error_text.h"
#include "inline/arena_layout.h"
#include "inline/brief_wait.h"

namespace clew::inline_ {
namespace {

constexpr uint32_t kSlotsMin = 64;
// The low block ends where windows of up to 256 MiB behind it still have 31-bit addresses.
constexpr uint64_t kLowBlockTop = 0x7000'0000;
constexpr uint64_t kCodeProtection = PROT_READ | PROT_EXEC;

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
// nothing fills it later. A program that has forbidden itself to make memory executable
// (PR_SET_MDWE, or a policy of the machine) may still map memory that is: that is filled, then.
Expected<uint64_t> map_unlocked(StoppedTarget& target, const MapRequest& request) {
  MapRequest empty = request;
  empty.protection = PROT_NONE;
  const uint64_t address = CLEW_TRY(map_remote(target, empty));
  (void)target.call({.number = SYS_munlock, .arguments = {address, request.size}});
  const RemoteCall open = {.number = SYS_mprotect,
                           .arguments = {address, request.size, request.protection}};
  const int64_t opened = CLEW_TRY(target.call(open));
  if (opened == 0) return address;
  (void)target.call({.number = SYS_munmap, .arguments = {address, request.size}});
  const uint64_t mapped = CLEW_TRY(map_remote(target, request));
  (void)target.call({.number = SYS_munlock, .arguments = {mapped, request.size}});
  return mapped;
}

// Maps the large parts of an arena, with as few calls as it takes: a call of a process that shares
// its processor with others takes long, and all its threads stand still meanwhile.
class PartMapper {
 public:
  // Where the kernel locks what the process maps (VmLck of proc_pid_status(5) grows by it).
  PartMapper(StoppedTarget& target, bool locks) : target_(target), locks_(locks) {}

  Expected<uint64_t> map(const MapRequest& request) {
    const uint64_t address =
        CLEW_TRY(locks_ ? map_unlocked(target_, request) : map_remote(target_, request));
    parts_.push_back({address, address + request.size});
    return address;
  }

  // All of them at once, where they lie side by side.
  void leave_out_of_dumps() {
    std::sort(parts_.begin(), parts_.end());
    for (size_t i = 0; i < parts_.size();) {
      auto [begin, end] = parts_[i];
      for (++i; i < parts_.size() && parts_[i].first == end; ++i)
        end = parts_[i].second;
      advise(target_, begin, end - begin, MADV_DONTDUMP);
    }
  }

 private:
  StoppedTarget& target_;
  bool locks_;
  std::vector<std::pair<uint64_t, uint64_t>> parts_;
};

Expected<void> read_process(pid_t pid, uint64_t address, std::span<uint8_t> bytes) {
  return target::read_memory(pid, address, bytes);
}

// Who may have descriptors of the files: the tracers of the sessions, then the process itself.
std::vector<pid_t> holders_of(pid_t pid, uint64_t low_address) {
  std::vector<pid_t> holders;
  abi::ArenaHeader header = {};
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(&header), sizeof header);
  if (!read_process(pid, low_address + abi::kHeaderOffset, bytes)) return holders;
  for (const abi::SessionEntry& session : header.sessions) {
    if (session.state != 0) holders.push_back(static_cast<pid_t>(session.tracer_pid));
  }
  holders.push_back(pid);
  return holders;
}

// Maps one of an arena's files; none when it may not be opened.
Expected<std::optional<MappedFile>> map_file_of(pid_t pid, const target::Mapping& mapping,
                                                std::span<const pid_t> holders) {
  FileDescriptor file = open_file_of(pid, mapping, holders);
  if (!file.valid()) return std::optional<MappedFile>();
  struct stat info = {};
  if (!is_sealed_file_of(file.get(), pid) || fstat(file.get(), &info) != 0 || info.st_size <= 0) {
    return fail(ErrorCode::Refused, fmt::format("process {} holds an arena that is damaged", pid));
  }
  return std::optional(
      CLEW_TRY(MappedFile::map(std::move(file), static_cast<uint64_t>(info.st_size))));
}

bool is_sound(const abi::ArenaHeader& header, uint64_t low_address) {
  return header.magic == abi::kArenaMagic && header.version == abi::kArenaVersion &&
         header.low_address == low_address && header.slot_count != 0 &&
         header.slot_count <= abi::kSlotsMax && header.journal_file_offset == kJournalOffset &&
         header.code_file_offset == kCodeOffset && header.code_size_bytes == kCodeSize &&
         header.slots_file_offset == kSlotsOffset && header.slot_stride != 0 &&
         header.slot_stride % kPage == 0 && header.bases <= abi::SegmentBases::Tracer &&
         header.slot_stride <= (uint64_t{1} << 32);
}

bool is_sound(const abi::JournalHeader& journal) {
  return journal.magic == abi::kJournalMagic && journal.version == abi::kJournalVersion &&
         journal.extent_count <= abi::kExtentsMax && journal.site_count <= abi::kSitesMax &&
         journal.layer_count <= abi::kLayersMax;
}

// Descriptors of the target.
struct Files {
  uint64_t code;  // Opened for reading.
  uint64_t slots;
};

// Everything of the target's address space that one arena needs besides the low block.
Expected<void> map_parts(StoppedTarget& target, abi::ArenaHeader& header, const Files& files,
                         bool locks) {
  PartMapper parts(target, locks);
  header.journal_address = CLEW_TRY(parts.map({.what = "mapping the journal",
                                               .size = abi::kJournalSizeBytes,
                                               .protection = PROT_READ,
                                               .flags = MAP_SHARED,
                                               .fd = files.code,
                                               .offset = kJournalOffset}));
  header.code_address = CLEW_TRY(parts.map({.what = "mapping the code area",
                                            .size = kCodeSize,
                                            .protection = kCodeProtection,
                                            .flags = MAP_SHARED,
                                            .fd = files.code,
                                            .offset = kCodeOffset}));
  // Limited address space: fewer slots.
  for (uint32_t count = header.slot_count;; count /= 2) {
    const uint64_t size = count * header.slot_stride;
    const auto address = parts.map({.what = "mapping the slots",
                                    .size = size,
                                    .protection = PROT_READ | PROT_WRITE,
                                    .flags = MAP_SHARED,
                                    .fd = files.slots,
                                    .offset = kSlotsOffset});
    if (address) {
      header.slot_count = count;
      header.slots_address = *address;
      advise(target, *address, size, MADV_NOHUGEPAGE);
      break;
    }
    if (count <= kSlotsMin) return tl::unexpected(address.error());
  }
  parts.leave_out_of_dumps();
  return {};
}

// As the process itself knows it.
Expected<uint32_t> inner_pid(pid_t pid) {
  const target::ProcessFacts facts = CLEW_TRY(target::read_facts(pid));
  const pid_t inner = facts.namespace_pids.empty() ? 0 : facts.namespace_pids.back();
  return static_cast<uint32_t>(inner);
}

// The header first: by it the low block is recognised, at once, and readable as it is.
Expected<uint64_t> map_low_block(StoppedTarget& target, const Files& files) {
  const auto maps = CLEW_TRY(target::read_memory_map(target.pid()));
  const auto low = find_gap(
      maps,
      {.low = 0, .high = kLowBlockTop, .size = abi::kLowBlockSizeBytes + kPage, .from_top = true});
  if (!low) {
    return fail(ErrorCode::Refused, fmt::format("process {} has no free memory below 2 GiB "
                                                "[no-low-memory]",
                                                target.pid()));
  }
  const auto locked_before = target::read_locked_bytes(target.pid());
  CLEW_TRY(map_remote(target, {.what = "mapping the header",
                               .address = *low + abi::kHeaderOffset,
                               .size = kPage,
                               .protection = PROT_READ,
                               .flags = MAP_SHARED,
                               .fd = files.code}));
  const auto locked = target::read_locked_bytes(target.pid());
  const bool locks = !locked || !locked_before || *locked != *locked_before;
  const MapRequest directory = {.what = "mapping the directory",
                                .address = *low + abi::kDirectoryOffset,
                                .size = kSlotsOffset,
                                .protection = PROT_READ | PROT_WRITE,
                                .flags = MAP_SHARED,
                                .fd = files.slots};
  CLEW_TRY(locks ? map_unlocked(target, directory) : map_remote(target, directory));
  CLEW_TRY(map_remote(target, {.what = "mapping the private pages",
                               .address = *low,
                               .size = abi::kPrivateSizeBytes,
                               .protection = PROT_READ | PROT_WRITE,
                               .flags = MAP_PRIVATE | MAP_ANONYMOUS}));
  CLEW_TRY(target.checked_call(
      "madvise(MADV_WIPEONFORK)",
      {.number = SYS_madvise, .arguments = {*low, abi::kPrivateSizeBytes, MADV_WIPEONFORK}}));
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
  header.keeps_self_pointer = options.traits.keeps_self_pointer ? 1 : 0;
  header.bases = options.traits.bases;
  header.tid_offset = options.traits.tid_offset;
  header.pid = static_cast<uint32_t>(pid);
}

}  // namespace

void advise(StoppedTarget& target, uint64_t address, uint64_t size, int advice) {
  (void)target.call(
      {.number = SYS_madvise, .arguments = {address, size, static_cast<uint64_t>(advice)}});
}

bool traces_others(std::span<const target::Mapping> maps) {
  const std::string code = fmt::format("/memfd:{}", kArenaName);
  return std::any_of(maps.begin(), maps.end(), [&code](const target::Mapping& map) {
    return map.shared && map.writable && map.path == code;
  });
}

// Of a tracer that is traced itself, what it has of others is not its own. Whoever is traced has
// both files in its low block.
std::optional<ArenaMapping> find_arena(std::span<const target::Mapping> maps) {
  ArenaMapping found;
  const std::string code = fmt::format("/memfd:{}", kArenaName);
  const std::string slots = fmt::format("/memfd:{}", kSlotsFileName);
  std::optional<uint64_t> slots_inode;
  for (const target::Mapping& map : maps) {
    if (!map.shared || (map.path != code && map.path != slots)) continue;
    if (map.path == code && map.file_offset == 0 && map.start < kLowBlockTop) {
      found.low_address = map.start - abi::kHeaderOffset;
      found.inode = map.inode;
    }
    if (map.path == slots && map.start < kLowBlockTop) slots_inode = map.inode;
    found.mappings.push_back(map);
  }
  if (traces_others(maps)) {
    std::erase_if(found.mappings, [&](const target::Mapping& map) {
      return map.path == code ? map.inode != found.inode : map.inode != slots_inode;
    });
  }
  if (found.mappings.empty()) return std::nullopt;
  const auto order = [&code](const target::Mapping& map) {
    return std::pair(map.path != code, map.file_offset);
  };
  std::sort(found.mappings.begin(), found.mappings.end(),
            [&order](const auto& a, const auto& b) { return order(a) < order(b); });
  return found;
}

Expected<Arena> Arena::create(StoppedTarget& target, const ArenaOptions& options) {
  const uint64_t stride = round_to_pages(options.slot_stride);
  SharedFile code = CLEW_TRY(make_shared_file(target, kArenaName, kCodeFileSize));
  SharedFile slots =
      CLEW_TRY(make_shared_file(target, kSlotsFileName, kSlotsOffset + abi::kSlotsMax * stride));
  code.theirs = CLEW_TRY(reopen_for_reading(target, code));
  Arena arena;
  arena.code_ = std::move(code.ours);
  arena.slots_ = std::move(slots.ours);
  abi::ArenaHeader& header = arena.header();
  write_header(header, options, target.pid());
  arena.target_page().process_count = 1;
  arena.journal().magic = abi::kJournalMagic;
  arena.journal().version = abi::kJournalVersion;
  const Files files = {.code = code.theirs.number(), .slots = slots.theirs.number()};
  const auto locked_before = target::read_locked_bytes(target.pid());
  const auto low = map_low_block(target, files);
  const auto locked = target::read_locked_bytes(target.pid());
  const bool locks = !locked || !locked_before || *locked != *locked_before;
  const auto parts = low ? map_parts(target, header, files, locks) : Expected<void>();
  // While the arena is unfinished, others know that descriptors may have been left.
  code.theirs.close();
  slots.theirs.close();
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
  CLEW_TRY(arena.map_files(pid, mapping));
  if (!arena.shared()) CLEW_TRY(arena.map_copy(pid, mapping));
  if (arena.take_shape()) return arena;
  return fail(ErrorCode::Refused,
              fmt::format("process {} holds an arena that is damaged or of another version", pid));
}

// Both or none.
Expected<void> Arena::map_files(pid_t pid, const ArenaMapping& mapping) {
  const std::string name = fmt::format("/memfd:{}", kSlotsFileName);
  const auto slots = std::find_if(mapping.mappings.begin(), mapping.mappings.end(),
                                  [&](const target::Mapping& map) { return map.path == name; });
  if (slots == mapping.mappings.end()) return {};
  const std::vector<pid_t> holders = holders_of(pid, mapping.low_address);
  auto code_file = CLEW_TRY(map_file_of(pid, mapping.mappings.front(), holders));
  auto slots_file = CLEW_TRY(map_file_of(pid, *slots, holders));
  if (!code_file || !slots_file) return {};
  code_ = std::move(*code_file);
  slots_ = std::move(*slots_file);
  return {};
}

// False when header or journal make no sense.
bool Arena::take_shape() {
  if (shared() && (code_.size() < kCodeFileSize || slots_.size() < kSlotsOffset)) return false;
  const abi::ArenaHeader header = copy_once(this->header());
  const abi::JournalHeader journal = copy_once(this->journal());
  if (!is_sound(header, low_address_) || !is_sound(journal)) return false;
  if (shared() && slots_.size() - kSlotsOffset < header.slot_count * header.slot_stride)
    return false;
  shape_ = {.slot_count = header.slot_count,
            .slot_stride = header.slot_stride,
            .slots_address = header.slots_address,
            .code_address = header.code_address,
            .keeps_self_pointer = header.keeps_self_pointer != 0,
            .bases = header.bases};
  return extents().count == journal.extent_count;
}

// Header, journal header, and the records in use, at the offsets they have in the file.
Expected<void> Arena::map_copy(pid_t pid, const ArenaMapping& mapping) {
  code_ = CLEW_TRY(MappedFile::without_file(kCodeOffset));
  const auto part = [&](uint64_t offset, uint64_t size) {
    return std::span(code_.base() + offset, size);
  };
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

abi::ArenaHeader& Arena::header() const {
  return *reinterpret_cast<abi::ArenaHeader*>(code_.base());
}

abi::TargetPage& Arena::target_page() const {
  return *reinterpret_cast<abi::TargetPage*>(slots_.base() + kTargetPageFileOffset);
}

uint64_t Arena::slots_file_offset() {
  return kSlotsOffset;
}

abi::JournalHeader& Arena::journal() const {
  return *reinterpret_cast<abi::JournalHeader*>(code_.base() + kJournalOffset);
}

std::span<abi::SiteRecord> Arena::sites() const {
  auto* const at = code_.base() + kJournalOffset + abi::kJournalSitesOffset;
  return {reinterpret_cast<abi::SiteRecord*>(at), abi::kSitesMax};
}

std::span<abi::LayerRecord> Arena::layers() const {
  auto* const at = code_.base() + kJournalOffset + abi::kJournalLayersOffset;
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
  if (fstat(code_.file(), &info) != 0) return true;
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
  // The private pages are recognised by their place, so the header goes last; the journal before
  // that, as it says how the rest is removed.
  for (const target::Mapping& map : maps) {
    const bool is_private = found->low_address != 0 &&
                            map.end - abi::kPrivateSizeBytes == found->low_address &&
                            map.inode == 0 && map.writable && !map.shared;
    if (!is_private) continue;
    CLEW_TRY(target.checked_call(
        "munmap",
        {.number = SYS_munmap, .arguments = {found->low_address, abi::kPrivateSizeBytes}}));
  }
  for (size_t i = found->mappings.size(); i-- > 0;) {
    const target::Mapping& map = found->mappings[i];
    CLEW_TRY(target.checked_call(
        "munmap", {.number = SYS_munmap, .arguments = {map.start, map.size_bytes()}}));
  }
  return {};
}

namespace {

// What the kernel adds to times since boot that it shows us (time_namespaces(7)).
int64_t boot_offset_ticks() {
  std::ifstream file("/proc/self/timens_offsets");
  std::string clock;
  int64_t seconds = 0;
  int64_t ns = 0;
  while (file >> clock >> seconds >> ns) {
    constexpr int64_t kNsPerSecond = 1'000'000'000;
    const int64_t ticks = sysconf(_SC_CLK_TCK);
    if (clock == "boottime") return seconds * ticks + ns * ticks / kNsPerSecond;
  }
  return 0;
}

}  // namespace

uint64_t start_time_of(pid_t pid) {
  const auto process = target::read_process(pid);
  const bool is_there = process && process->state != 'Z' && process->state != 'X';
  if (!is_there) return 0;
  const auto since_boot = static_cast<int64_t>(process->incarnation.start_ticks);
  const int64_t start = since_boot - boot_offset_ticks();
  return start == 0 ? 1 : static_cast<uint64_t>(start);
}

bool is_start_time(pid_t pid, uint64_t noted) {
  const uint64_t now = start_time_of(pid);
  const auto apart = static_cast<int64_t>(now - noted);
  return now != 0 && noted != 0 && apart >= -1 && apart <= 1;
}

}  // namespace clew::inline_
