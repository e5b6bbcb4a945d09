// SPDX-License-Identifier: Apache-2.0
#include "target/symbol_cache.h"

#include <algorithm>
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
#include "target/byte_reader.h"
#include "target/elf_file.h"

namespace clew::target {

namespace {

// | offset | size | content                                              |
// |      0 |    8 | magic "clewimg\n"                                    |
// |      8 |    8 | version                                              |
// |     16 |    8 | checksum of everything behind it                     |
// |     24 |      | blocks: size in bytes (8), content, padding to 8     |
// The blocks, in order: identity, scalars, text, sections, functions, names, cold, fdes,
// landing pads, code pointers, ifunc slots, restartable sequences, problems.
constexpr uint64_t kMagic = 0x0a676d6977656c63;  // "clewimg\n"
constexpr uint64_t kVersion = 1;  // Goes up with every change of a record or of its meaning.
constexpr size_t kHeaderBytes = 24;
constexpr uint64_t kFileMaxBytes = uint64_t{4} << 30;

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
  BlockWriter() { bytes_.resize(kHeaderBytes); }

  void add(std::span<const uint8_t> content) {
    append(static_cast<uint64_t>(content.size()));
    bytes_.insert(bytes_.end(), content.begin(), content.end());
    bytes_.resize((bytes_.size() + 7) & ~size_t{7});
  }
  template <typename T>
  void add(const std::vector<T>& records) {
    static_assert(std::is_trivially_copyable_v<T>);
    add({reinterpret_cast<const uint8_t*>(records.data()), records.size() * sizeof(T)});
  }
  void add(std::string_view text) {
    add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }

  std::vector<uint8_t> finish() {
    const std::span<const uint8_t> content(bytes_);
    const uint64_t header[3] = {kMagic, kVersion, checksum(content.subspan(kHeaderBytes))};
    std::memcpy(bytes_.data(), header, sizeof(header));
    return std::move(bytes_);
  }

 private:
  void append(uint64_t value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(value));
  }

  std::vector<uint8_t> bytes_;
};

class BlockReader {
 public:
  explicit BlockReader(std::span<const uint8_t> bytes) : reader_(bytes) {}

  std::span<const uint8_t> block() {
    const auto size = reader_.read<uint64_t>();
    const auto content = reader_.read_bytes(size);
    reader_.skip(-size & 7);
    return content;
  }
  template <typename T>
  bool read(std::vector<T>& records) {
    const auto content = block();
    if (reader_.failed() || content.size() % sizeof(T) != 0) return false;
    records.resize(content.size() / sizeof(T));
    if (!records.empty()) std::memcpy(records.data(), content.data(), content.size());
    return true;
  }
  bool read(std::string& text) {
    const auto content = block();
    text.assign(reinterpret_cast<const char*>(content.data()), content.size());
    return !reader_.failed();
  }
  [[nodiscard]] bool at_end() const { return !reader_.failed() && reader_.at_end(); }

 private:
  ByteReader reader_;
};

std::optional<ImageTables> decode(std::span<const uint8_t> bytes, const std::string& identity) {
  ByteReader header(bytes);
  const bool is_ours = header.read<uint64_t>() == kMagic && header.read<uint64_t>() == kVersion;
  const auto sum = header.read<uint64_t>();
  if (!is_ours || header.failed()) return std::nullopt;
  if (sum != checksum(bytes.subspan(kHeaderBytes))) return std::nullopt;
  BlockReader blocks(bytes.subspan(kHeaderBytes));
  ImageTables tables;
  std::string made_from;
  std::vector<Scalars> scalars;
  std::string problems;
  if (!blocks.read(made_from) || made_from != identity) return std::nullopt;
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
  for (std::string_view rest = problems; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    tables.problems.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!is_consistent(tables)) return std::nullopt;
  return tables;
}

std::vector<uint8_t> encode(const ImageTables& tables, const std::string& identity) {
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
  BlockWriter writer;
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
  return writer.finish();
}

// Someone else's file could make a tracer that runs as root believe anything about its target.
bool is_trusted(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<Buffer> read_trusted_file(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0 || !is_trusted(status)) return std::nullopt;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size < kHeaderBytes || size > kFileMaxBytes) return std::nullopt;
  Buffer bytes(size);
  for (size_t done = 0; done < size;) {
    const ssize_t count = read(file.get(), bytes.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return bytes;
}

bool write_file(const std::string& path, std::span<const uint8_t> bytes) {
  const FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file.valid()) return false;
  while (!bytes.empty()) {
    const ssize_t count = write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
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
  const auto bytes = read_trusted_file(path_of(identity));
  if (!bytes) return std::nullopt;
  return decode(bytes->view(), identity_text(identity));
}

void SymbolCache::store(const Identity& identity, const ImageTables& tables) const {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return;
  const std::string path = path_of(identity);
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  (void)unlink(temporary.c_str());  // Of an earlier process with this pid that was killed.
  const bool written = write_file(temporary, encode(tables, identity_text(identity))) &&
                       rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) (void)unlink(temporary.c_str());
}

}  // namespace clew::target
