// SPDX-License-Identifier: Apache-2.0
#include "code/kept_analysis.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/log.h"
#include "target/file_identity.h"

namespace clew::code {

namespace {

constexpr uint64_t kVersion = 1;  // Of the file's form; what it means belongs to the program.

template <typename T>
std::span<const uint8_t> bytes_of(const std::vector<T>& records) {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  return {reinterpret_cast<const uint8_t*>(records.data()), records.size() * sizeof(T)};
}

// The parts with their sizes, so that none can pass for the end of another.
class TextHash {
 public:
  void add(std::span<const uint8_t> bytes) {
    number(bytes.size());
    hash_.add(bytes);
  }
  void number(uint64_t value) {
    hash_.add({reinterpret_cast<const uint8_t*>(&value), sizeof value});
  }
  target::Digest finish() { return hash_.finish(); }

 private:
  target::Sha256 hash_;
};

struct FunctionRecord {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t owner = 0;
  uint64_t flags = 0;
};
constexpr uint64_t kUnnamed = 1;
constexpr uint64_t kMidFrame = 2;
constexpr uint64_t kUnsafe = 4;

}  // namespace

// Writes and reads what analyse() makes; the sections themselves are the text's.
class AnalysisFile {
 public:
  static bool write(const ModuleCode& code, int fd);
  // False when it is damaged or of another text.
  static bool read(target::BlockReader& blocks, ModuleCode& code);

 private:
  static bool read_functions(target::BlockReader& blocks, ModuleCode& code);
  static bool read_tables(target::BlockReader& blocks, ModuleCode& code);
  static bool is_consistent(const ModuleCode& code);
};

bool AnalysisFile::write(const ModuleCode& code, int fd) {
  target::BlockWriter writer(fd);
  for (const ModuleCode::TextMap& text : code.texts_) {
    writer.add(text.map);
    writer.add(text.targets);
    writer.add(text.foreign_targets);
  }
  std::vector<FunctionRecord> functions;
  functions.reserve(code.functions_.size());
  for (size_t i = 0; i < code.functions_.size(); ++i) {
    const FunctionRange& range = code.functions_[i];
    functions.push_back({.address = range.address,
                         .size_bytes = range.size_bytes,
                         .owner = range.owner,
                         .flags = (range.unnamed ? kUnnamed : 0) |
                                  (range.mid_frame ? kMidFrame : 0) |
                                  (code.unsafe_[i] ? kUnsafe : 0)});
  }
  writer.add(functions);
  writer.add(code.enclosing_);
  writer.add(code.cold_);
  writer.add(code.loop_heads_);
  writer.add(code.indirect_jumps_);
  writer.add(code.table_jumps_);
  std::vector<uint64_t> list_ends;
  std::vector<uint64_t> targets;
  for (const std::vector<uint64_t>& list : code.table_lists_) {
    targets.insert(targets.end(), list.begin(), list.end());
    list_ends.push_back(targets.size());
  }
  writer.add(list_ends);
  writer.add(targets);
  writer.add(code.code_pointers_);
  writer.add(code.rseq_);
  writer.add(code.side_entries_);
  return writer.good();
}

bool AnalysisFile::read_functions(target::BlockReader& blocks, ModuleCode& code) {
  std::vector<FunctionRecord> functions;
  if (!blocks.read(functions)) return false;
  code.functions_.reserve(functions.size());
  for (const FunctionRecord& record : functions) {
    code.functions_.push_back({.address = record.address,
                               .size_bytes = record.size_bytes,
                               .owner = static_cast<uint32_t>(record.owner),
                               .unnamed = (record.flags & kUnnamed) != 0,
                               .mid_frame = (record.flags & kMidFrame) != 0});
    code.unsafe_.push_back((record.flags & kUnsafe) != 0);
  }
  return blocks.read(code.enclosing_) && blocks.read(code.cold_);
}

bool AnalysisFile::read_tables(target::BlockReader& blocks, ModuleCode& code) {
  std::vector<uint64_t> list_ends;
  std::vector<uint64_t> targets;
  const bool complete = blocks.read(code.loop_heads_) && blocks.read(code.indirect_jumps_) &&
                        blocks.read(code.table_jumps_) && blocks.read(list_ends) &&
                        blocks.read(targets);
  if (!complete) return false;
  uint64_t begin = 0;
  for (const uint64_t end : list_ends) {
    if (end < begin || end > targets.size()) return false;
    code.table_lists_.emplace_back(targets.begin() + static_cast<ptrdiff_t>(begin),
                                   targets.begin() + static_cast<ptrdiff_t>(end));
    begin = end;
  }
  return true;
}

bool AnalysisFile::is_consistent(const ModuleCode& code) {
  const size_t count = code.functions_.size();
  const auto is_range = [count](uint32_t index) { return index < count; };
  return code.enclosing_.size() == count &&
         std::all_of(code.enclosing_.begin(), code.enclosing_.end(),
                     [&](uint32_t index) { return index == kNoOwner || is_range(index); }) &&
         std::all_of(code.cold_.begin(), code.cold_.end(), is_range) &&
         std::all_of(code.functions_.begin(), code.functions_.end(),
                     [&](const FunctionRange& range) {
                       return range.owner >= kUnknownOwner || is_range(range.owner);
                     }) &&
         std::all_of(code.table_jumps_.begin(), code.table_jumps_.end(),
                     [&](const auto& jump) { return jump.list < code.table_lists_.size(); });
}

bool AnalysisFile::read(target::BlockReader& blocks, ModuleCode& code) {
  for (ModuleCode::TextMap& text : code.texts_) {
    const size_t bytes = text.map.size();
    const size_t words = text.targets.size();
    const bool same = blocks.read(text.map) && blocks.read(text.targets) &&
                      blocks.read(text.foreign_targets) && text.map.size() == bytes &&
                      text.targets.size() == words && text.foreign_targets.size() == words;
    if (!same) return false;
  }
  return read_functions(blocks, code) && read_tables(blocks, code) &&
         blocks.read(code.code_pointers_) && blocks.read(code.rseq_) &&
         blocks.read(code.side_entries_) && blocks.at_end() && is_consistent(code);
}

std::optional<target::Digest> digest_of(const ModuleText& text) {
  // Which program we are.
  const auto own = target::identity_at("/proc/self/exe");
  if (!own) return std::nullopt;
  TextHash hash;
  const std::array<uint64_t, 6> made_by = {own->device,
                                           own->inode,
                                           own->size_bytes,
                                           static_cast<uint64_t>(own->modified_ns),
                                           static_cast<uint64_t>(own->changed_ns),
                                           kVersion};
  for (const uint64_t value : made_by)
    hash.number(value);
  hash.number(text.position_dependent ? 1 : 0);
  hash.number(text.sections.size());
  for (const Section& section : text.sections) {
    hash.number(section.address);
    hash.number(section.executable ? 1 : 0);
    hash.add(section.bytes);
  }
  std::vector<uint64_t> functions;
  functions.reserve(4 * text.functions.size());
  for (const FunctionRange& range : text.functions) {
    const uint64_t flags = (range.unnamed ? 1U : 0U) | (range.mid_frame ? 2U : 0U);
    functions.insert(functions.end(), {range.address, range.size_bytes, range.owner, flags});
  }
  hash.add(bytes_of(functions));
  hash.add(bytes_of(text.landing_pads));
  hash.add(bytes_of(text.part_links));
  hash.add(bytes_of(text.code_pointers));
  hash.add(bytes_of(text.rseq));
  return hash.finish();
}

ModuleCode KeptAnalyses::analyse(const ModuleText& text) const {
  uint64_t size = 0;
  for (const Section& section : text.sections)
    size += section.executable ? section.bytes.size() : 0;
  if (!is_on_ || size < from_bytes_) return code::analyse(text);
  const auto digest = digest_of(text);
  if (!digest) return code::analyse(text);
  const std::string name = target::hex_of(*digest) + ".code";
  if (const auto file = folder_.open(name)) {
    ModuleCode kept = ModuleCode::of_sections(text);
    target::BlockReader blocks(file->descriptor.get(), file->size_bytes);
    if (AnalysisFile::read(blocks, kept)) {
      log_detail(0, "took the analysis of {} KiB of code from the cache", size >> 10);
      return kept;
    }
  }
  ModuleCode made = code::analyse(text);
  folder_.store(name, [&](int fd) { return AnalysisFile::write(made, fd); });
  return made;
}

}  // namespace clew::code
