// SPDX-License-Identifier: Apache-2.0
// ElfFile: the outer form of an ELF file: its header, program headers, section headers and notes,
// checked against the size of the file, and bounded reads of its parts. Internal to target/; what
// is inside the parts is read by symbols, unwind and relocations.
//
// A file is read with pread and not mapped (module_image.h says why), or it is a buffer (the
// decompressed .gnu_debugdata, a test).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "target/file_identity.h"

namespace clew::target {

// Uninitialised memory for a part of a file: a vector would write it twice.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size_bytes)
      : bytes_(std::make_unique_for_overwrite<uint8_t[]>(size_bytes)), size_bytes_(size_bytes) {}

  [[nodiscard]] uint8_t* data() { return bytes_.get(); }
  [[nodiscard]] std::span<const uint8_t> view() const { return {bytes_.get(), size_bytes_}; }
  [[nodiscard]] std::span<uint8_t> writable() { return {bytes_.get(), size_bytes_}; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t size_bytes_ = 0;
};

struct ElfSection {
  std::string_view name;
  Elf64_Shdr header{};
};

class ReadLog;

// Who may write it.
struct FileOwner {
  uint32_t user = 0;
  uint32_t group = 0;
  bool group_writes = false;
  bool others_write = false;
};

class ElfFile {
 public:
  // NotFound, Io, or Refused when it is not a little-endian ELF64 x86-64 program, library or debug
  // file.
  static Expected<ElfFile> open(const std::string& path);
  static Expected<ElfFile> from_buffer(Buffer buffer);

  [[nodiscard]] const Elf64_Ehdr& header() const { return header_; }
  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] const FileIdentity& identity() const { return identity_; }  // All 0 for a buffer.
  [[nodiscard]] const FileOwner& owner() const { return owner_; }
  [[nodiscard]] std::span<const Elf64_Phdr> segments() const { return segments_; }
  // In the order of the file; empty when it has none, or when the table is broken.
  [[nodiscard]] std::span<const ElfSection> sections() const { return sections_; }
  [[nodiscard]] const ElfSection* find_section(std::string_view name) const;
  [[nodiscard]] const ElfSection* find_section_of_type(uint32_t type) const;
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

  // `size_bytes` of the file at `offset`; Io when it does not have them.
  [[nodiscard]] Expected<Buffer> read(uint64_t offset, uint64_t size_bytes) const;
  // What the section has in the file (nothing for SHT_NOBITS); Refused when it is compressed.
  [[nodiscard]] Expected<Buffer> read(const ElfSection& section) const;
  // Bytes at a virtual address, through the loadable segments; fails when they are not all in one
  // segment's file part.
  [[nodiscard]] Expected<Buffer> read_at_address(uint64_t address, uint64_t size_bytes) const;
  // Where a virtual address is in the file, and how many bytes of its segment's file part follow.
  struct FilePlace {
    uint64_t offset = 0;
    uint64_t available_bytes = 0;
  };
  [[nodiscard]] std::optional<FilePlace> place_of(uint64_t address) const;

  // Lower-case hex; empty when there is none.
  [[nodiscard]] std::string build_id() const;

  // Reads the header and what follows from it once more; from now on all that is read is noted in
  // the log, which is borrowed, as of this number.
  Expected<void> log_to(ReadLog& log, uint64_t number);
  void end_log() { log_ = nullptr; }
  [[nodiscard]] ReadLog* log() const { return log_; }

 private:
  Expected<void> read_header();
  void read_segments();
  void read_sections();
  void name_sections(std::span<const Elf64_Shdr> headers, uint32_t names_index);
  [[nodiscard]] std::string build_id_in(uint64_t offset, uint64_t size_bytes) const;

  FileDescriptor file_;
  Buffer buffer_;
  uint64_t size_bytes_ = 0;
  FileIdentity identity_;
  FileOwner owner_;
  ReadLog* log_ = nullptr;
  uint64_t log_number_ = 0;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<ElfSection> sections_;
  Buffer section_names_;
  std::vector<std::string> problems_;
};

// The NT_GNU_BUILD_ID among notes, as hex.
std::string find_build_id(std::span<const uint8_t> notes);

}  // namespace clew::target
