// SPDX-License-Identifier: Apache-2.0
#include "target/dynamic.h"

#include <algorithm>
#include <vector>

#include "target/byte_reader.h"

namespace clew::target {

namespace {

constexpr uint64_t kDynamicMaxBytes = uint64_t{1} << 20;
constexpr uint64_t kSonameMaxBytes = 4096;
constexpr uint64_t kLastChainMaxBytes = 65536;
// DT_RELR came with glibc 2.36 (gABI, "Dynamic Section"); elf.h may be older.
constexpr int64_t kTagRelr = 36;
constexpr int64_t kTagRelrSize = 35;

void put(DynamicTable& table, const Elf64_Dyn& entry) {
  const uint64_t value = entry.d_un.d_val;
  switch (entry.d_tag) {
    case DT_STRTAB:
      table.string_table = value;
      return;
    case DT_STRSZ:
      table.string_table_bytes = value;
      return;
    case DT_SYMTAB:
      table.symbol_table = value;
      return;
    case DT_HASH:
      table.hash = value;
      return;
    case DT_GNU_HASH:
      table.gnu_hash = value;
      return;
    case DT_RELA:
      table.rela = value;
      return;
    case DT_RELASZ:
      table.rela_bytes = value;
      return;
    case DT_JMPREL:
      table.plt_rela = value;
      return;
    case DT_PLTRELSZ:
      table.plt_rela_bytes = value;
      return;
    case kTagRelr:
      table.relr = value;
      return;
    case kTagRelrSize:
      table.relr_bytes = value;
      return;
    case DT_SONAME:
      table.soname_offset = value;
      return;
    default:
      return;  // Foreign numbers: most do not concern us.
  }
}

// From the address to the end of the segment's file part, `limit` bytes at most.
Buffer read_from(const ElfFile& file, uint64_t address, uint64_t limit) {
  const auto place = file.place_of(address);
  if (!place) return {};
  auto bytes = file.read(place->offset, std::min(place->available_bytes, limit));
  return bytes ? std::move(*bytes) : Buffer();
}

// The last chain's end is the last symbol (glibc, dl-lookup.c; there is no other record of it).
// Layout: bucket count, first hashed symbol, bloom words, bloom shift, bloom (8 bytes each),
// buckets, chains (4 bytes each, the lowest bit set at the end of a chain).
uint64_t count_by_gnu_hash(const ElfFile& file, uint64_t address) {
  const Buffer header = read_from(file, address, 16);
  ByteReader reader(header.view());
  const auto bucket_count = reader.read<uint32_t>();
  const auto first_symbol = reader.read<uint32_t>();
  const auto bloom_words = reader.read<uint32_t>();
  if (reader.failed()) return 0;
  const uint64_t buckets = address + 16 + uint64_t{bloom_words} * 8;
  auto bytes = file.read_at_address(buckets, uint64_t{bucket_count} * 4);
  if (!bytes) return 0;
  uint32_t last = 0;
  ByteReader bucket_reader(bytes->view());
  while (bucket_reader.remaining() >= 4) {
    last = std::max(last, bucket_reader.read<uint32_t>());
  }
  if (last < first_symbol) return first_symbol;
  const uint64_t chains = buckets + uint64_t{bucket_count} * 4;
  const Buffer chain =
      read_from(file, chains + (uint64_t{last} - first_symbol) * 4, kLastChainMaxBytes);
  ByteReader chain_reader(chain.view());
  for (uint64_t count = uint64_t{last} + 1; chain_reader.remaining() >= 4; ++count) {
    if ((chain_reader.read<uint32_t>() & 1) != 0) return count;
  }
  return 0;
}

}  // namespace

DynamicTable read_dynamic_table(const ElfFile& file) {
  DynamicTable table;
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_DYNAMIC || segment.p_filesz > kDynamicMaxBytes) continue;
    auto bytes = file.read(segment.p_offset, segment.p_filesz);
    if (!bytes) continue;
    ByteReader reader(bytes->view());
    while (reader.remaining() >= sizeof(Elf64_Dyn)) {
      const auto entry = reader.read<Elf64_Dyn>();
      if (entry.d_tag == DT_NULL) break;
      put(table, entry);
    }
  }
  return table;
}

std::string read_soname(const ElfFile& file, const DynamicTable& dynamic) {
  if (!dynamic.is_there() || dynamic.soname_offset == 0) return {};
  const Buffer bytes =
      read_from(file, dynamic.string_table + dynamic.soname_offset, kSonameMaxBytes);
  ByteReader reader(bytes.view());
  return std::string(reader.read_string());
}

uint64_t count_dynamic_symbols(const ElfFile& file, const DynamicTable& dynamic) {
  if (dynamic.hash != 0) {
    const Buffer header = read_from(file, dynamic.hash, 8);
    ByteReader reader(header.view());
    reader.skip(4);
    const auto chain_count = reader.read<uint32_t>();
    if (!reader.failed()) return chain_count;
  }
  return dynamic.gnu_hash == 0 ? 0 : count_by_gnu_hash(file, dynamic.gnu_hash);
}

}  // namespace clew::target
