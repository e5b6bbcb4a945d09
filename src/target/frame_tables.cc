// SPDX-License-Identifier: Apache-2.0
#include "target/frame_tables.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "target/eh_frame.h"
#include "target/elf_file.h"
#include "target/file_memory.h"
#include "target/image_tables.h"

namespace clew::target {

namespace {

std::vector<uint8_t> copy_of(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

// Work on tables of all entries together is bounded by the file's size, as many entries of a
// hostile one may name one table.
class Budget {
 public:
  explicit Budget(uint64_t bytes) : left_(bytes) {}
  bool take(uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  uint64_t left_;
};

// One language-specific data area:
//
//     base of landing pads, distance to the types' end, size of the call sites
//     call sites       start, length, landing pad, action
//     actions          filter, distance to the next one of the chain
//     types            from the end on, downwards
//     specifications   behind the end: lists of types, each up to a 0
class ExceptionReader {
 public:
  ExceptionReader(const Placed& block, uint64_t function, Budget& budget)
      : block_(block), reader_(block.bytes), function_(function), budget_(budget) {}

  ExceptionTable read() {
    table_.is_understood = read_head() && read_sites() && read_chains() && read_types();
    return table_.is_understood ? std::move(table_) : ExceptionTable();
  }

 private:
  bool read_head() {
    const auto base_encoding = reader_.read<uint8_t>();
    const auto base = read_eh_pointer(reader_, block_, base_encoding);
    if (base_encoding != kEhOmit && !base) return false;
    landing_base_ = base.value_or(function_);
    type_encoding_ = reader_.read<uint8_t>();
    if (type_encoding_ != kEhOmit) {
      const uint64_t distance = reader_.read_uleb128();
      if (reader_.failed() || distance > reader_.remaining()) return false;
      types_end_ = reader_.offset() + distance;
    }
    site_encoding_ = reader_.read<uint8_t>();
    const uint64_t size = reader_.read_uleb128();
    if (reader_.failed() || size > reader_.remaining() || !budget_.take(size)) return false;
    actions_ = reader_.offset() + size;
    return (site_encoding_ & ~0x0f) == 0;
  }

  bool read_sites() {
    uint64_t end = 0;
    while (reader_.offset() < actions_) {
      CallSite site;
      site.begin = function_ + read_eh_format(reader_, site_encoding_);
      site.end = site.begin + read_eh_format(reader_, site_encoding_);
      const uint64_t pad = read_eh_format(reader_, site_encoding_);
      if (pad != 0) site.landing_pad = landing_base_ + pad;
      site.action = reader_.read_uleb128();
      // Readers look for the first that covers a place, and give up at one behind it.
      if (reader_.failed() || site.begin < end || site.end < site.begin) return false;
      end = site.end;
      table_.sites.push_back(site);
    }
    return reader_.offset() == actions_;
  }

  bool read_chains() {
    for (const CallSite& site : table_.sites) {
      if (site.action != 0 && !read_chain(site.action - 1)) return false;
    }
    const size_t size = actions_end_ == 0 ? 0 : actions_end_ - actions_;
    if (!budget_.take(size)) return false;
    table_.actions = copy_of(block_.bytes.subspan(actions_, size));
    return true;
  }

  // Up to where another one has been.
  bool read_chain(uint64_t place) {
    const size_t size = block_.bytes.size() - actions_;
    while (place < size && budget_.take(2)) {
      if (!seen_.insert(place).second) return true;
      ByteReader reader(block_.bytes, actions_ + place);
      const int64_t filter = reader.read_sleb128();
      const uint64_t from = reader.offset() - actions_;
      const int64_t next = reader.read_sleb128();
      if (reader.failed() || !take_filter(filter)) return false;
      actions_end_ = std::max(actions_end_, reader.offset());
      if (next == 0) return true;
      place = from + static_cast<uint64_t>(next);
    }
    return false;
  }

  bool take_filter(int64_t filter) {
    if (filter >= 0) return note_type(static_cast<uint64_t>(filter));
    if (type_encoding_ == kEhOmit) return false;
    const uint64_t distance = ~static_cast<uint64_t>(filter);  // -filter - 1
    if (distance > block_.bytes.size() - types_end_) return false;
    ByteReader reader(block_.bytes, types_end_ + distance);
    for (uint64_t type = reader.read_uleb128(); type != 0; type = reader.read_uleb128()) {
      if (!note_type(type) || !budget_.take(1)) return false;
    }
    specifications_end_ = std::max(specifications_end_, reader.offset());
    return !reader.failed();
  }

  bool note_type(uint64_t type) {
    if (type != 0 && (type_encoding_ == kEhOmit || type > types_end_)) return false;
    types_ = std::max(types_, type);
    return true;
  }

  bool read_types() {
    if (types_ == 0 && specifications_end_ == 0) return true;
    const std::optional<uint64_t> size = read_type_form();
    if (!size || types_ > (types_end_ - actions_) / *size || types_end_ < actions_end_)
      return false;
    if (!budget_.take(types_ * *size)) return false;
    for (uint64_t type = 1; type <= types_; ++type) {
      ByteReader reader(block_.bytes, types_end_ - type * *size);
      const auto direct = static_cast<uint8_t>(type_encoding_ & ~kEhIndirect);
      const auto address = read_eh_pointer(reader, block_, direct);
      if (!address) return false;
      table_.types.push_back({*address, *address != 0 && (type_encoding_ & kEhIndirect) != 0});
    }
    if (specifications_end_ == 0) return true;
    const size_t bytes = specifications_end_ - types_end_;
    if (!budget_.take(bytes)) return false;
    table_.specifications = copy_of(block_.bytes.subspan(types_end_, bytes));
    return true;
  }

  // Bytes of each.
  std::optional<uint64_t> read_type_form() {
    const unsigned format = type_encoding_ & 0x0f;
    const bool is_relative = (type_encoding_ & kEhRelativeMask) == kEhRelativeToItself;
    if (is_relative && format == 0x0b) {
      table_.type_form = TypeForm::Relative;
      return 4;
    }
    if ((type_encoding_ & kEhRelativeMask) != 0) return std::nullopt;
    const bool is_short = format == 0x03 || format == 0x0b;
    if (!is_short && format != 0x00 && format != 0x04 && format != 0x0c) return std::nullopt;
    table_.type_form = is_short ? TypeForm::Absolute32 : TypeForm::Absolute64;
    return is_short ? 4 : 8;
  }

  Placed block_;
  ByteReader reader_;
  uint64_t function_;
  Budget& budget_;
  ExceptionTable table_;
  uint64_t landing_base_ = 0;
  uint8_t type_encoding_ = kEhOmit;
  uint8_t site_encoding_ = 0;
  size_t actions_ = 0;  // Where they begin, in the block, and so the next three.
  size_t actions_end_ = 0;
  size_t types_end_ = 0;
  size_t specifications_end_ = 0;
  uint64_t types_ = 0;  // The highest filter.
  std::unordered_set<uint64_t> seen_;
};

class TableReader {
 public:
  TableReader(const ElfFile& file, const ImageTables& image)
      : image_(image), memory_(file, image.sections), budget_(budget_of(image)) {
    result_.problems = file.problems();
    EhFrame frame(find_eh_frame(file, memory_), result_.problems);
    frame.for_each([this](const EhEntry& entry) { take(entry); });
  }

  FrameTables finish() {
    std::vector<FrameEntry>& entries = result_.entries;
    std::stable_sort(entries.begin(), entries.end(), [](const FrameEntry& a, const FrameEntry& b) {
      return a.address < b.address;
    });
    uint64_t end = 0;
    const auto overlaps = [&end](const FrameEntry& entry) {
      if (entry.address < end) return true;
      end = entry.end();
      return false;
    };
    // In order: std::remove_if may ask in any.
    auto kept = entries.begin();
    for (FrameEntry& entry : entries) {
      if (overlaps(entry)) continue;
      if (&*kept != &entry) *kept = std::move(entry);
      ++kept;
    }
    entries.erase(kept, entries.end());
    return std::move(result_);
  }

 private:
  // Some parts are looked at twice.
  static uint64_t budget_of(const ImageTables& image) {
    uint64_t bytes = 0;
    for (const SectionRecord& section : image.sections)
      bytes += section.file_size_bytes;
    return 4 * bytes;
  }

  void take(const EhEntry& entry) {
    // Code that the linker dropped leaves an entry with address or size 0.
    const SectionRecord* const section = image_.code_section_at(entry.address);
    if (section == nullptr || entry.size_bytes == 0) return;
    const uint64_t room = section->address + section->size_bytes - entry.address;
    if (entry.size_bytes > room) return;
    FrameEntry taken;
    taken.common = index_of(*entry.common);
    taken.address = entry.address;
    taken.size_bytes = entry.size_bytes;
    taken.instructions = copy_of(entry.instructions);
    if (entry.common->lsda_encoding != kEhOmit) take_exceptions(entry, taken);
    result_.entries.push_back(std::move(taken));
  }

  void take_exceptions(const EhEntry& entry, FrameEntry& taken) {
    if (entry.lsda && *entry.lsda == 0) return;
    ExceptionTable table;
    if (entry.lsda) {
      const Placed block{memory_.from(*entry.lsda), *entry.lsda};
      table = ExceptionReader(block, entry.address, budget_).read();
    }
    if (!table.is_understood) report(entry);
    taken.exceptions = static_cast<uint32_t>(result_.exceptions.size());
    result_.exceptions.push_back(std::move(table));
  }

  void report(const EhEntry& entry) {
    if (std::exchange(is_reported_, true)) return;
    result_.problems.push_back(fmt::format(
        "the exception table of {:#x} cannot be read (and perhaps more)", entry.address));
  }

  uint32_t index_of(const EhCommon& common) {
    const auto [known, is_new] =
        commons_.try_emplace(&common, static_cast<uint32_t>(result_.commons.size()));
    if (!is_new) return known->second;
    FrameCommon taken;
    taken.has_personality = common.personality_encoding != kEhOmit;
    if (common.personality) {
      taken.personality =
          FramePointer{*common.personality, (common.personality_encoding & kEhIndirect) != 0};
    }
    taken.is_signal_frame = common.is_signal_frame;
    taken.code_alignment = common.code_alignment;
    taken.data_alignment = common.data_alignment;
    taken.return_column = common.return_column;
    taken.instructions = copy_of(common.instructions);
    result_.commons.push_back(std::move(taken));
    return known->second;
  }

  const ImageTables& image_;
  FileMemory memory_;
  Budget budget_;
  std::unordered_map<const EhCommon*, uint32_t> commons_;
  bool is_reported_ = false;
  FrameTables result_;
};

}  // namespace

Expected<FrameTables> frame_tables_of(const ElfFile& file) {
  ImageTables image;
  read_section_records(file, image);
  return TableReader(file, image).finish();
}

Expected<FrameTables> read_frame_tables(const std::string& path) {
  const ElfFile file = CLEW_TRY(ElfFile::open(path));
  return frame_tables_of(file);
}

Expected<FrameTables> read_frame_tables(std::span<const uint8_t> image) {
  Buffer copy(image.size());
  std::copy(image.begin(), image.end(), copy.data());
  const ElfFile file = CLEW_TRY(ElfFile::from_buffer(std::move(copy)));
  return frame_tables_of(file);
}

}  // namespace clew::target
