// SPDX-License-Identifier: Apache-2.0
#include "recorder/sidecar.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "abi/recorder.h"
#include "base/log.h"
#include "code/both_ways.h"
#include "code/displace.h"
#include "copy/kept_copy.h"
#include "target/file_identity.h"

namespace clew::recorder {

namespace {

constexpr uint64_t kSidecarMagic = 0x0a65646973776c63;  // "clwside\n"
constexpr uint64_t kSidecarVersion = 2;                 // Of the file's form.
constexpr uint64_t kAddressMax = uint64_t{1} << 47;

struct HeadRecord {
  uint64_t magic = kSidecarMagic;
  uint64_t version = kSidecarVersion;
  SidecarKey key{};

  bool operator==(const HeadRecord&) const = default;
};

static_assert(sizeof(InstallableCounts) == 20);

// code::Window, and the ways of PlannedEntry. Its instructions follow from its bytes.
struct EntryRecord {
  uint64_t address = 0;
  uint64_t hop_address = 0;
  std::array<uint64_t, 2> copy_offsets{};
  std::array<uint32_t, 2> probe_ends{};  // In the bytes of all probes; each begins at the last end.
  std::array<uint8_t, code::kWindowSizeMax> original{};
  std::array<uint8_t, code::kJumpSizeBytes> hop_original{};
  uint8_t size_bytes = 0;
  uint8_t window_class = 0;
  uint8_t kept_bytes = 0;
  uint8_t falls_through = 0;
  std::array<uint8_t, 7> reserved{};
};
static_assert(sizeof(EntryRecord) == 88 && std::is_trivially_copyable_v<EntryRecord>);
static_assert(sizeof(EntryId) == 8);

struct CursorRecord {
  uint32_t offset = 0;
  uint32_t home = kInMemory;  // abi::Register

  static constexpr uint32_t kInMemory = 16;
};
static_assert(sizeof(CursorRecord) == 8);

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::Refused, fmt::format("its {} not right", what));
}

EntryRecord record_of(const PlannedEntry& entry, std::vector<uint8_t>& probes) {
  const code::Window& window = entry.window;
  EntryRecord record = {.address = window.address,
                        .hop_address = window.hop_address,
                        .copy_offsets = {entry.first.copy_offset, entry.second.copy_offset},
                        .original = window.original,
                        .hop_original = window.hop_original,
                        .size_bytes = window.size_bytes,
                        .window_class = static_cast<uint8_t>(window.window_class),
                        .kept_bytes = window.kept_bytes,
                        .falls_through = static_cast<uint8_t>(window.falls_through ? 1 : 0)};
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<uint8_t>& probe = (i == 0 ? entry.first : entry.second).probe;
    probes.insert(probes.end(), probe.begin(), probe.end());
    record.probe_ends[i] = static_cast<uint32_t>(probes.size());
  }
  return record;
}

bool is_sound(const code::Window& window) {
  const uint8_t first = window.instructions.front().length;
  const bool is_kept_whole = window.kept_bytes == 0 || window.kept_bytes == first;
  const bool is_near = window.address <= kAddressMax && window.hop_address <= kAddressMax;
  if (!is_kept_whole || !is_near || window.kept_bytes >= window.size_bytes) return false;
  if (window.window_class != code::WindowClass::BothWays) {
    return window.kept_bytes == 0 || window.window_class == code::WindowClass::OwnBytes;
  }
  return window.kept_bytes == 0 && window.instructions.size() >= 2 &&
         code::can_serve_both(std::span(window.original).first(window.size_bytes));
}

class EntryReader {
 public:
  EntryReader(const copy::ModuleCopy& copy, std::span<const uint8_t> probes)
      : copy_(copy), probes_(probes) {}

  bool read(const EntryRecord& record, PlannedEntry& entry) {
    return read_window(record, entry.window) && read_way(record, 0, entry.first) &&
           read_way(record, 1, entry.second);
  }
  [[nodiscard]] bool at_end() const { return begin_ == probes_.size(); }

 private:
  static bool read_window(const EntryRecord& record, code::Window& window) {
    constexpr auto kLast = static_cast<uint8_t>(code::WindowClass::BothWays);
    if (record.window_class > kLast || record.falls_through > 1) return false;
    window.address = record.address;
    window.size_bytes = record.size_bytes;
    window.window_class = static_cast<code::WindowClass>(record.window_class);
    window.kept_bytes = record.kept_bytes;
    window.falls_through = record.falls_through != 0;
    window.hop_address = record.hop_address;
    window.original = record.original;
    window.hop_original = record.hop_original;
    return code::find_displaced(window) && is_sound(window);
  }

  bool read_way(const EntryRecord& record, size_t index, EntryWay& way) {
    const uint32_t end = record.probe_ends[index];
    const bool is_right = end >= begin_ && end <= probes_.size() &&
                          end - begin_ <= copy::kInsertionBytesMax &&
                          record.copy_offsets[index] < copy_.code_size;
    if (!is_right) return false;
    const auto probe = probes_.subspan(begin_, end - begin_);
    way.copy_offset = record.copy_offsets[index];
    way.probe.assign(probe.begin(), probe.end());
    begin_ = end;
    return true;
  }

  const copy::ModuleCopy& copy_;
  std::span<const uint8_t> probes_;
  uint32_t begin_ = 0;
};

// Words in so many bytes that do not overlap.
bool are_words(const std::vector<uint32_t>& offsets, uint64_t size) {
  uint64_t free_from = 0;
  return std::all_of(offsets.begin(), offsets.end(), [&](uint64_t offset) {
    const bool is_right = offset >= free_from && offset + sizeof(uint32_t) <= size;
    free_from = offset + sizeof(uint32_t);
    return is_right;
  });
}

void write_unwind(target::BlockWriter& file, const copy::UnwindBytes& unwind,
                  const copy::ModuleCopy& copy) {
  file.add(std::vector<uint64_t>{unwind.address - copy.address, unwind.header});
  file.add(unwind.bytes);
  file.add(unwind.outward);
}

bool read_unwind(target::BlockReader& file, copy::UnwindBytes& unwind,
                 const copy::ModuleCopy& copy) {
  constexpr uint64_t kBetweenMax = 64;  // Between the copy and them.
  std::vector<uint64_t> numbers;
  const bool is_whole = file.read(numbers) && file.read(unwind.bytes) && file.read(unwind.outward);
  if (!is_whole || numbers.size() != 2) return false;
  const uint64_t distance = numbers[0];
  const uint64_t size = unwind.bytes.size();
  const uint64_t copied = copy.bytes.size();
  if (distance < copied || distance - copied > kBetweenMax || numbers[1] > size) return false;
  unwind.address = copy.address + distance;
  unwind.header = static_cast<uint32_t>(numbers[1]);
  return size <= std::numeric_limits<int32_t>::max() && are_words(unwind.outward, size);
}

void write_cursor_map(target::BlockWriter& file, const CursorMap& map) {
  std::vector<CursorRecord> records;
  records.reserve(map.places().size());
  for (const CursorMap::Place& place : map.places()) {
    records.push_back(
        {place.offset, place.home ? static_cast<uint32_t>(*place.home) : CursorRecord::kInMemory});
  }
  file.add(records);
}

std::optional<CursorMap> read_cursor_map(target::BlockReader& file, const copy::ModuleCopy& copy) {
  std::vector<CursorRecord> records;
  if (!file.read(records)) return std::nullopt;
  std::vector<CursorMap::Place> places;
  places.reserve(records.size());
  uint32_t last = 0;
  for (const CursorRecord& record : records) {
    if (record.offset < last || record.offset >= copy.code_size) return std::nullopt;
    if (record.home > CursorRecord::kInMemory) return std::nullopt;
    last = record.offset;
    const bool in_memory = record.home == CursorRecord::kInMemory;
    places.push_back({record.offset, in_memory ? kMemory : Home(abi::Register(record.home))});
  }
  return CursorMap(std::move(places));
}

bool are_ids(const std::vector<EntryId>& ids, const EntryPlan& plan) {
  return std::all_of(ids.begin(), ids.end(), [&](const EntryId& id) {
    if (id.entry >= plan.entries.size() || id.second > 1) return false;
    const PlannedEntry& entry = plan.entries[id.entry];
    const std::vector<uint8_t>& probe = (id.second != 0 ? entry.second : entry.first).probe;
    return id.offset + sizeof(uint32_t) <= probe.size();
  });
}

}  // namespace

std::optional<SidecarKey> sidecar_key(const target::Digest& file, const Recipe& recipe) {
  if (recipe.front_end == FrontEnd::Guards) return std::nullopt;
  const auto own = target::identity_at("/proc/self/exe");
  if (!own) return std::nullopt;
  std::vector<uint64_t> numbers = {own->device,
                                   own->inode,
                                   own->size_bytes,
                                   static_cast<uint64_t>(own->modified_ns),
                                   static_cast<uint64_t>(own->changed_ns),
                                   kSidecarVersion,
                                   recipe.cursor,
                                   static_cast<uint64_t>(recipe.loops)};
  for (const KnownImport& import : recipe.imports)
    numbers.insert(numbers.end(), {import.slot, import.own});
  numbers.push_back(recipe.imports.size());
  for (const StampedImport& import : recipe.stamped) {
    numbers.insert(numbers.end(),
                   {import.slot, static_cast<uint64_t>(import.where), transfer_bits(import)});
  }
  target::Sha256 sum;
  sum.add(file);
  sum.add({reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size() * sizeof(uint64_t)});
  return sum.finish();
}

void SidecarFile::write_head(target::BlockWriter& file, const SidecarKey& key) {
  file.add(std::vector<HeadRecord>{{.key = key}});
}

bool SidecarFile::write(int fd, const SidecarKey& key, const Installable& module) {
  target::BlockWriter file(fd);
  write_head(file, key);
  file.add(std::vector<InstallableCounts>{module.counts_});
  copy::KeptCopy::write(file, module.copy_);
  write_unwind(file, module.unwind_, module.copy());
  file.add(module.ids_);
  write_cursor_map(file, module.cursor_map_);
  std::vector<EntryRecord> entries;
  std::vector<uint8_t> probes;
  entries.reserve(module.entries_.entries.size());
  for (const PlannedEntry& entry : module.entries_.entries)
    entries.push_back(record_of(entry, probes));
  file.add(entries);
  file.add(probes);
  file.add(module.entry_ids_);
  return file.good();
}

Expected<Installable> SidecarFile::read(int fd, uint64_t size_bytes, const SidecarKey& key) {
  target::BlockReader file(fd, size_bytes);
  std::vector<HeadRecord> head;
  std::vector<InstallableCounts> counts;
  const HeadRecord expected = {.key = key};
  if (!file.read(head) || head.size() != 1 || head[0] != expected) return damaged("head is");
  if (!file.read(counts) || counts.size() != 1) return damaged("counts are");
  auto copy = copy::KeptCopy::read(file);
  if (!copy) return damaged("copy is");
  Installable made(std::move(*copy));
  made.counts_ = counts[0];
  if (made.counts_.ids > abi::kDagIdMax) return damaged("counts are");
  if (!read_unwind(file, made.unwind_, made.copy())) return damaged("unwinding is");
  if (!file.read(made.ids_) || !are_words(made.ids_, made.copy().code_size))
    return damaged("ids are");
  auto cursor_map = read_cursor_map(file, made.copy());
  if (!cursor_map) return damaged("cursor's map is");
  made.cursor_map_ = std::move(*cursor_map);
  std::vector<EntryRecord> entries;
  std::vector<uint8_t> probes;
  if (!file.read(entries) || !file.read(probes)) return damaged("entries are");
  EntryReader reader(made.copy(), probes);
  made.entries_.entries.resize(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!reader.read(entries[i], made.entries_.entries[i])) return damaged("entries are");
  }
  const bool has_ids =
      reader.at_end() && file.read(made.entry_ids_) && are_ids(made.entry_ids_, made.entries_);
  if (!has_ids || !file.at_end()) return damaged("entries' ids are");
  return made;
}

std::optional<Installable> Sidecars::find(const SidecarKey& key, std::string_view name) const {
  if (!is_on_) return std::nullopt;
  const std::string file_name = target::hex_of(key) + ".side";
  const auto file = folder_.open(file_name);
  if (!file) return std::nullopt;
  const StepTime time;
  auto module = SidecarFile::read(file->descriptor.get(), file->size_bytes, key);
  if (!module) {
    log_detail(0, "{}: the side file {} is not used: {}", name, file_name, module.error().message);
    return std::nullopt;
  }
  log_detail(0, "{}: took the side file {} ({:.1f} ms)", name, file_name, time.ms());
  return std::move(*module);
}

void Sidecars::store(const SidecarKey& key, const Installable& module) const {
  if (!is_on_) return;
  folder_.store(target::hex_of(key) + ".side",
                [&](int fd) { return SidecarFile::write(fd, key, module); });
}

}  // namespace clew::recorder
