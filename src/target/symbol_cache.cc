// SPDX-License-Identifier: Apache-2.0
#include "target/symbol_cache.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_descriptor.h"

namespace clew::target {

namespace {

// | offset | size | content                                                       |
// |      0 |    8 | magic "clewimg\n"                                             |
// |      8 |    8 | version                                                       |
// |     16 |      | blocks: size in bytes (8), checksum (8), content; packed       |
// The blocks, in order: identity, scalars, text, sections, functions, names, cold, fdes,
// landing pads, code pointers, ifunc slots, restartable sequences, problems. A block is written
// from and read into the array itself, so a large module is never in memory twice.
constexpr uint64_t kMagic = 0x0a676d6977656c63;  // "clewimg\n"
constexpr uint64_t kVersion = 2;  // Goes up with every change of a record or of its meaning.
constexpr uint64_t kBlockMaxBytes = uint64_t{4} << 30;

struct Scalars {
  TextRecord soname;
  TextRecord build_id;
  TextRecord debug_file;
  uint64_t entry_address = 0;
  uint64_t is_position_independent = 0;
};

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

// Against damage, not against malice: words are mixed by multiplication, so that every bit of the
// input reaches the result. Four lanes, since one waits for its own multiplication.
uint64_t checksum(std::span<const uint8_t> bytes) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t lanes[4] = {bytes.size(), 1, 2, 3};
  const auto mix = [](uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * kOdd;
    return lane ^ (lane >> 29);
  };
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof(words));
    for (size_t i = 0; i < 4; ++i) {
      lanes[i] = mix(lanes[i], words[i]);
    }
  }
  for (; at < bytes.size(); ++at) {
    lanes[at % 4] = mix(lanes[at % 4], bytes[at]);
  }
  return mix(mix(mix(mix(0, lanes[0]), lanes[1]), lanes[2]), lanes[3]);
}

std::string identity_text(const SymbolCache::Identity& identity) {
  return fmt::format("{}\n{}\n{} {}\n{}\n{} {}\n", identity.build_id, identity.module_name,
                     identity.file_size_bytes, identity.file_modified_ns, identity.debug_file,
                     identity.debug_size_bytes, identity.debug_modified_ns);
}

class BlockWriter {
 public:
  explicit BlockWriter(int fd) : fd_(fd) {}

  void write(std::span<const uint8_t> bytes) {
    while (good_ && !bytes.empty()) {
      const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      good_ = count > 0;
      if (good_) bytes = bytes.subspan(static_cast<size_t>(count));
    }
  }
  void add(std::span<const uint8_t> content) {
    const std::array<uint64_t, 2> header = {content.size(), checksum(content)};
    write({reinterpret_cast<const uint8_t*>(header.data()), sizeof(header)});
    write(content);
  }
  template <typename T>
  void add(const std::vector<T>& records) {
    static_assert(std::is_trivially_copyable_v<T>);
    add({reinterpret_cast<const uint8_t*>(records.data()), records.size() * sizeof(T)});
  }
  void add(std::string_view text) {
    add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  [[nodiscard]] bool good() const { return good_; }

 private:
  int fd_;
  bool good_ = true;
};

class BlockReader {
 public:
  BlockReader(int fd, uint64_t size_bytes) : fd_(fd), remaining_(size_bytes) {}

  bool read_bytes(std::span<uint8_t> bytes) {
    if (bytes.size() > remaining_) return false;
    remaining_ -= bytes.size();
    while (!bytes.empty()) {
      const ssize_t count = ::read(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
    return true;
  }
  template <typename Container>
  bool read(Container& records) {
    using Record = typename Container::value_type;
    static_assert(std::is_trivially_copyable_v<Record>);
    std::array<uint64_t, 2> header{};
    if (!read_bytes({reinterpret_cast<uint8_t*>(header.data()), sizeof(header)})) return false;
    const uint64_t size = header[0];
    if (size > std::min(remaining_, kBlockMaxBytes) || size % sizeof(Record) != 0) return false;
    records.resize(size / sizeof(Record));
    const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(records.data()), size);
    return read_bytes(bytes) && checksum(bytes) == header[1];
  }
  [[nodiscard]] bool at_end() const { return remaining_ == 0; }

 private:
  int fd_;
  uint64_t remaining_;
};

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<ImageTables> decode(BlockReader& blocks, const std::string& identity) {
  std::array<uint64_t, 2> header{};
  const std::span<uint8_t> header_bytes(reinterpret_cast<uint8_t*>(header.data()), sizeof(header));
  const bool is_ours =
      blocks.read_bytes(header_bytes) && header[0] == kMagic && header[1] == kVersion;
  std::string made_from;
  if (!is_ours || !blocks.read(made_from) || made_from != identity) return std::nullopt;
  ImageTables tables;
  std::vector<Scalars> scalars;
  std::string problems;
  const bool complete =
      blocks.read(scalars) && blocks.read(tables.text) && blocks.read(tables.sections) &&
      blocks.read(tables.functions) && blocks.read(tables.names) && blocks.read(tables.cold) &&
      blocks.read(tables.fdes) && blocks.read(tables.landing_pads) &&
      blocks.read(tables.code_pointers) && blocks.read(tables.ifunc_slots) &&
      blocks.read(tables.restartable_sequences) && blocks.read(problems) && blocks.at_end();
  if (!complete || scalars.size() != 1) return std::nullopt;
  tables.soname = scalars[0].soname;
  tables.build_id = scalars[0].build_id;
  tables.debug_file = scalars[0].debug_file;
  tables.entry_address = scalars[0].entry_address;
  tables.is_position_independent = scalars[0].is_position_independent != 0;
  tables.problems = split_lines(problems);
  if (!is_consistent(tables)) return std::nullopt;
  return tables;
}

bool encode(const ImageTables& tables, const std::string& identity, int fd) {
  const std::vector<Scalars> scalars = {
      {.soname = tables.soname,
       .build_id = tables.build_id,
       .debug_file = tables.debug_file,
       .entry_address = tables.entry_address,
       .is_position_independent = tables.is_position_independent ? 1U : 0U}};
  std::string problems;
  for (const std::string& problem : tables.problems) {
    problems += problem + "\n";
  }
  BlockWriter writer(fd);
  const std::array<uint64_t, 2> header = {kMagic, kVersion};
  writer.write({reinterpret_cast<const uint8_t*>(header.data()), sizeof(header)});
  writer.add(std::string_view(identity));
  writer.add(scalars);
  writer.add(std::string_view(tables.text));
  writer.add(tables.sections);
  writer.add(tables.functions);
  writer.add(tables.names);
  writer.add(tables.cold);
  writer.add(tables.fdes);
  writer.add(tables.landing_pads);
  writer.add(tables.code_pointers);
  writer.add(tables.ifunc_slots);
  writer.add(tables.restartable_sequences);
  writer.add(std::string_view(problems));
  return writer.good();
}

// Someone else's file could make a tracer that runs as root believe anything about its target.
bool is_trusted(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

class ConsistencyCheck {
 public:
  explicit ConsistencyCheck(const ImageTables& tables) : tables_(tables) {}

  bool run() {
    return text_is_valid(tables_.soname) && text_is_valid(tables_.build_id) &&
           text_is_valid(tables_.debug_file) && sections_are_valid() && names_are_valid() &&
           functions_are_valid() && fdes_are_valid() &&
           std::is_sorted(tables_.code_pointers.begin(), tables_.code_pointers.end());
  }

 private:
  [[nodiscard]] bool text_is_valid(TextRecord record) const {
    return record.offset <= tables_.text.size() &&
           record.size_bytes <= tables_.text.size() - record.offset;
  }
  static bool is_within(uint64_t first, uint64_t count, uint64_t size) {
    return first <= size && count <= size - first;
  }
  [[nodiscard]] bool sections_are_valid() const {
    uint64_t end = 0;
    return std::all_of(tables_.sections.begin(), tables_.sections.end(), [&](const auto& section) {
      const uint64_t start = section.address;
      const bool in_order = start >= end && start + section.size_bytes > start;
      end = start + section.size_bytes;
      return in_order && text_is_valid(section.name);
    });
  }
  [[nodiscard]] bool names_are_valid() const {
    return std::all_of(tables_.names.begin(), tables_.names.end(), [&](const NameRecord& name) {
      return text_is_valid(name.linkage) && text_is_valid(name.demangled) &&
             text_is_valid(name.plain);
    });
  }
  [[nodiscard]] bool functions_are_valid() const {
    const FunctionRecord* previous = nullptr;
    for (const FunctionRecord& function : tables_.functions) {
      const SectionRecord* section = tables_.code_section_at(function.address);
      const bool in_order = previous == nullptr || previous->address < function.address;
      const bool is_valid =
          section != nullptr && in_order && function.size_bytes != 0 && function.name_count != 0 &&
          function.size_bytes <= section->address + section->size_bytes - function.address &&
          function.origin <= FunctionOrigin::UnwindEntry &&
          is_within(function.first_name, function.name_count, tables_.names.size()) &&
          is_within(function.first_cold, function.cold_count, tables_.cold.size());
      if (!is_valid) return false;
      previous = &function;
    }
    return true;
  }
  [[nodiscard]] bool fdes_are_valid() const {
    uint64_t previous = 0;
    return std::all_of(tables_.fdes.begin(), tables_.fdes.end(), [&](const FdeRecord& fde) {
      const bool in_order = fde.address >= previous;
      previous = fde.address;
      return in_order &&
             is_within(fde.first_landing_pad, fde.landing_pad_count, tables_.landing_pads.size());
    });
  }

  const ImageTables& tables_;
};

}  // namespace

bool is_consistent(const ImageTables& tables) {
  return ConsistencyCheck(tables).run();
}

std::string SymbolCache::path_of(const Identity& identity) const {
  return fmt::format("{}/{}-{:016x}.image", directory_, identity.build_id,
                     fnv1a(identity.module_name));
}

std::optional<ImageTables> SymbolCache::load(const Identity& identity) const {
  const FileDescriptor file(
      open(path_of(identity).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0 || !is_trusted(status)) return std::nullopt;
  BlockReader blocks(file.get(), static_cast<uint64_t>(status.st_size));
  return decode(blocks, identity_text(identity));
}

void SymbolCache::store(const Identity& identity, const ImageTables& tables) const {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return;
  const std::string path = path_of(identity);
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  (void)unlink(temporary.c_str());  // Of an earlier process with this pid that was killed.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const FileDescriptor file(open(temporary.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (!file.valid()) return;
  const bool written = encode(tables, identity_text(identity), file.get()) &&
                       rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) (void)unlink(temporary.c_str());
}

}  // namespace clew::target
