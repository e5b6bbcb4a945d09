// SPDX-License-Identifier: Apache-2.0
#include "target/eh_frame.h"

#include <fmt/format.h>

namespace clew::target {

namespace {

// DW_EH_PE_*: the low four bits are the format, the next three what it is relative to.
constexpr uint8_t kFormatMask = 0x0f;
constexpr uint8_t kRelativeToNothing = 0x00;
constexpr uint8_t kRelativeToData = 0x30;

}  // namespace

uint64_t read_eh_format(ByteReader& reader, uint8_t encoding) {
  switch (encoding & kFormatMask) {
    case 0x00:  // absptr
    case 0x04:  // udata8
    case 0x0c:  // sdata8
      return reader.read<uint64_t>();
    case 0x01:
      return reader.read_uleb128();
    case 0x02:
      return reader.read<uint16_t>();
    case 0x03:
      return reader.read<uint32_t>();
    case 0x09:
      return static_cast<uint64_t>(reader.read_sleb128());
    case 0x0a:
      return static_cast<uint64_t>(int64_t{reader.read<int16_t>()});
    case 0x0b:
      return static_cast<uint64_t>(int64_t{reader.read<int32_t>()});
    default:
      reader.skip(UINT64_MAX);  // Fails the reader.
      return 0;
  }
}

std::optional<uint64_t> read_eh_pointer(ByteReader& reader, const Placed& block, uint8_t encoding,
                                        uint64_t data_base) {
  if (encoding == kEhOmit) return std::nullopt;
  const uint64_t at = block.address + reader.offset();
  const uint64_t value = read_eh_format(reader, encoding);
  if (reader.failed() || (encoding & kEhIndirect) != 0) return std::nullopt;
  switch (encoding & kEhRelativeMask) {
    case kRelativeToNothing:
      return value;
    case kEhRelativeToItself:
      return value == 0 ? 0 : at + value;
    case kRelativeToData:
      return data_base + value;
    default:
      return std::nullopt;
  }
}

// One record: its length, its id (0: common) or the distance to what it shares, and the reader
// behind them, bounded to it.
struct EhFrame::Record {
  size_t next_offset = 0;
  size_t id_offset = 0;
  uint32_t id = 0;
  std::span<const uint8_t> body;  // From the block's start to the record's end: offsets stay.
  size_t body_offset = 0;
};

void EhFrame::for_each(const std::function<void(const EhEntry&)>& take) {
  size_t at = 0;
  while (at < block_.bytes.size()) {
    const auto record = read_record(at);
    if (!record) return;
    at = record->next_offset;
    if (record->id == 0) continue;
    const auto entry = read_entry(*record);
    if (entry) {
      take(*entry);
    } else {
      report(record->id_offset);
    }
  }
}

void EhFrame::report(size_t offset) {
  if (reported_) return;
  reported_ = true;
  problems_.push_back(
      fmt::format("an entry of .eh_frame at {:#x} cannot be read (and perhaps more)", offset));
}

// Nothing at the end (a length of zero), or when the rest cannot be read.
std::optional<EhFrame::Record> EhFrame::read_record(size_t at) {
  ByteReader reader(block_.bytes, at);
  uint64_t length = reader.read<uint32_t>();
  if (length == 0) return std::nullopt;
  if (length == UINT32_MAX) length = reader.read<uint64_t>();
  Record record;
  record.id_offset = reader.offset();
  if (reader.failed() || length < 4 || length > reader.remaining()) {
    problems_.push_back(fmt::format(".eh_frame is broken at {:#x}", at));
    return std::nullopt;
  }
  record.next_offset = reader.offset() + length;
  record.id = reader.read<uint32_t>();
  record.body = block_.bytes.first(record.next_offset);
  record.body_offset = reader.offset();
  return record;
}

const EhCommon* EhFrame::find_common(const Record& entry) {
  if (entry.id > entry.id_offset) return nullptr;
  const size_t at = entry.id_offset - entry.id;
  const auto known = commons_.find(at);
  if (known != commons_.end()) return known->second ? &*known->second : nullptr;
  const auto record = read_record(at);
  const bool is_common = record && record->id == 0;
  const auto& common =
      commons_.emplace(at, is_common ? read_common(*record) : std::nullopt).first->second;
  return common.has_value() ? &common.value() : nullptr;
}

std::optional<EhCommon> EhFrame::read_common(const Record& record) {
  ByteReader reader(record.body, record.body_offset);
  EhCommon common;
  const auto version = reader.read<uint8_t>();
  const std::string_view augmentation = reader.read_string();
  if (version != 1 && version != 3) return std::nullopt;
  common.code_alignment = reader.read_uleb128();
  common.data_alignment = reader.read_sleb128();
  common.return_column = version == 1 ? reader.read<uint8_t>() : reader.read_uleb128();
  if (!read_augmentation(augmentation, reader, record, common) || reader.failed()) {
    return std::nullopt;
  }
  common.instructions = record.body.subspan(reader.offset());
  return common;
}

bool EhFrame::read_augmentation(std::string_view augmentation, ByteReader& reader,
                                const Record& record, EhCommon& common) {
  if (augmentation.empty()) return true;
  if (augmentation[0] != 'z') return false;
  common.has_augmentation_data = true;
  const uint64_t size = reader.read_uleb128();
  if (size > reader.remaining()) return false;
  const size_t end = reader.offset() + size;
  for (const char letter : augmentation.substr(1)) {
    if (letter == 'R') {
      common.address_encoding = reader.read<uint8_t>();
    } else if (letter == 'L') {
      common.lsda_encoding = reader.read<uint8_t>();
    } else if (letter == 'P') {
      common.personality_encoding = reader.read<uint8_t>();
      if (common.personality_encoding == kEhOmit) continue;
      const auto direct = static_cast<uint8_t>(common.personality_encoding & ~kEhIndirect);
      common.personality = read_eh_pointer(reader, {record.body, block_.address}, direct);
    } else if (letter == 'S') {
      common.is_signal_frame = true;
    } else if (letter != 'B') {
      break;  // The rest cannot be read, and its size is known.
    }
  }
  reader.seek(end);
  return !reader.failed();
}

std::optional<EhEntry> EhFrame::read_entry(const Record& record) {
  EhEntry entry{
      .common = find_common(record), .offset = record.id_offset, .lsda = {}, .instructions = {}};
  if (entry.common == nullptr) return std::nullopt;
  ByteReader reader(record.body, record.body_offset);
  const Placed block{record.body, block_.address};
  const auto address = read_eh_pointer(reader, block, entry.common->address_encoding);
  entry.size_bytes = read_eh_format(reader, entry.common->address_encoding);
  if (!address || reader.failed()) return std::nullopt;
  entry.address = *address;
  if (entry.common->has_augmentation_data) {
    const uint64_t data_size = reader.read_uleb128();
    const size_t data_at = reader.offset();
    if (data_size != 0) entry.lsda = read_eh_pointer(reader, block, entry.common->lsda_encoding);
    reader.seek(data_at);
    reader.skip(data_size);
  }
  if (reader.failed()) return std::nullopt;
  entry.instructions = record.body.subspan(reader.offset());
  return entry;
}

// Without section headers .eh_frame_hdr leads there: version, encodings of the pointer to
// .eh_frame, of the count and of the table, then that pointer.
Placed find_eh_frame(const ElfFile& file, FileMemory& memory) {
  const ElfSection* section = file.find_section(".eh_frame");
  if (section != nullptr && section->header.sh_type != SHT_NOBITS) {
    return {memory.from(section->header.sh_addr), section->header.sh_addr};
  }
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_GNU_EH_FRAME) continue;
    const Placed header{memory.from(segment.p_vaddr), segment.p_vaddr};
    ByteReader reader(header.bytes);
    const auto version = reader.read<uint8_t>();
    const auto encoding = reader.read<uint8_t>();
    reader.skip(2);
    const auto address = read_eh_pointer(reader, header, encoding, segment.p_vaddr);
    if (version == 1 && address) return {memory.from(*address), *address};
  }
  return {};
}

}  // namespace clew::target
