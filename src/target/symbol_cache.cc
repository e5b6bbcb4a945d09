// SPDX-License-Identifier: Apache-2.0
#include "target/symbol_cache.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

namespace clew::target {

namespace {

// | offset | size | content                                                       |
// |      0 |    8 | magic "clewimg\n"                                             |
// |      8 |    8 | version                                                       |
// |     16 |      | blocks (cache_folder.h)                                       |
// The blocks, in order: identity, reads, their digest, scalars, text, sections, functions, names,
// cold, fdes, landing pads, code pointers, ifunc slots, restartable sequences, problems.
constexpr uint64_t kMagic = 0x0a676d6977656c63;  // "clewimg\n"
constexpr uint64_t kVersion = 4;  // Goes up with every change of a record or of its meaning.

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

std::string identity_text(const SymbolCache::Entry& entry) {
  std::string text =
      fmt::format("{}\n{}\n{}\n", entry.build_id, entry.module_name, entry.debug_path);
  for (const ElfFile* file : entry.files)
    text += fmt::format("{}\n", file == nullptr ? 0 : file->size_bytes());
  return text;
}

std::string name_of(const SymbolCache::Entry& entry) {
  return fmt::format("{}-{:016x}.image", entry.build_id, fnv1a(entry.module_name));
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool was_made_from(BlockReader& blocks, const SymbolCache::Entry& entry) {
  std::string identity;
  std::vector<ReadRange> reads;
  std::vector<uint8_t> digest;
  if (!blocks.read(identity) || identity != identity_text(entry)) return false;
  if (!blocks.read(reads) || !blocks.read(digest)) return false;
  const std::optional<Digest> now = read_again(reads, entry.files);
  return now && std::equal(now->begin(), now->end(), digest.begin(), digest.end());
}

std::optional<ImageTables> decode(BlockReader& blocks, const SymbolCache::Entry& entry) {
  std::array<uint64_t, 2> header{};
  const std::span<uint8_t> header_bytes(reinterpret_cast<uint8_t*>(header.data()), sizeof(header));
  const bool is_ours =
      blocks.read_bytes(header_bytes) && header[0] == kMagic && header[1] == kVersion;
  if (!is_ours || !was_made_from(blocks, entry)) return std::nullopt;
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

struct MadeFrom {
  std::string identity;
  std::span<const ReadRange> reads;
  Digest digest;
};

bool encode(const ImageTables& tables, const MadeFrom& from, int fd) {
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
  writer.add(std::string_view(from.identity));
  writer.add({reinterpret_cast<const uint8_t*>(from.reads.data()), from.reads.size_bytes()});
  writer.add(from.digest);
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
             text_is_valid(name.plain) && name.binding <= SymbolBinding::Local;
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

std::optional<ImageTables> SymbolCache::load(const Entry& entry) const {
  const auto file = folder_.open(name_of(entry));
  if (!file) return std::nullopt;
  BlockReader blocks(file->descriptor.get(), file->size_bytes);
  return decode(blocks, entry);
}

void SymbolCache::store(const Entry& entry, ReadLog& log, const ImageTables& tables) const {
  const MadeFrom from{
      .identity = identity_text(entry), .reads = log.ranges(), .digest = log.finish()};
  folder_.store(name_of(entry), [&](int fd) { return encode(tables, from, fd); });
}

}  // namespace clew::target
