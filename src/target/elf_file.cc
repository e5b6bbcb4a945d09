// SPDX-License-Identifier: Apache-2.0
#include "target/elf_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error_text.h"
#include "target/byte_reader.h"
#include "target/read_log.h"

namespace clew::target {

namespace {

constexpr uint64_t kNotesMaxBytes = uint64_t{1} << 20;
constexpr uint64_t kSectionNamesMaxBytes = uint64_t{64} << 20;

Expected<void> read_exactly(int fd, uint64_t offset, std::span<uint8_t> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::Io, fmt::format("pread: {}", error_text(errno)));
    if (count == 0) return fail(ErrorCode::Io, "the file ends before a part that it promises");
    done += static_cast<size_t>(count);
  }
  return {};
}

Expected<void> check_identity(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return fail(ErrorCode::Refused, "it is not an ELF file");
  }
  if (header.e_ident[EI_CLASS] == ELFCLASS32) {
    return fail(ErrorCode::Refused, "it is a 32-bit program; clew traces 64-bit x86 programs only");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != EM_X86_64) {
    return fail(ErrorCode::Refused, "it is not an ELF file for 64-bit x86");
  }
  if (header.e_type != ET_DYN && header.e_type != ET_EXEC) {
    return fail(ErrorCode::Refused, "it is an ELF file, but not a program or a shared library");
  }
  return {};
}

int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

FileIdentity identity_of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size_bytes = static_cast<uint64_t>(status.st_size),
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim)};
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace

Expected<ElfFile> ElfFile::open(const std::string& path) {
  ElfFile result;
  result.file_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!result.file_.valid()) {
    const auto code = errno == ENOENT || errno == ENOTDIR ? ErrorCode::NotFound : ErrorCode::Io;
    return fail(code, fmt::format("cannot open {}: {}", path, error_text(errno)));
  }
  struct stat status {};
  if (fstat(result.file_.get(), &status) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot stat {}: {}", path, error_text(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::Refused, fmt::format("{}: it is not a regular file", path));
  }
  result.size_bytes_ = static_cast<uint64_t>(status.st_size);
  result.identity_ = identity_of(status);
  result.owner_ = {.user = status.st_uid,
                   .group = status.st_gid,
                   .group_writes = (status.st_mode & S_IWGRP) != 0,
                   .others_write = (status.st_mode & S_IWOTH) != 0};
  if (auto read = result.read_header(); !read) {
    return fail(read.error().code, fmt::format("{}: {}", path, read.error().message));
  }
  return result;
}

Expected<ElfFile> ElfFile::from_buffer(Buffer buffer) {
  ElfFile result;
  result.buffer_ = std::move(buffer);
  result.size_bytes_ = result.buffer_.view().size();
  CLEW_TRY(result.read_header());
  return result;
}

std::optional<FileIdentity> identity_at(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return identity_of(status);
}

Expected<void> ElfFile::log_to(ReadLog& log, uint64_t number) {
  log_ = &log;
  log_number_ = number;
  segments_.clear();
  sections_.clear();
  problems_.clear();
  section_names_ = {};
  return read_header();
}

Expected<void> ElfFile::read_header() {
  if (size_bytes_ < sizeof(Elf64_Ehdr)) return fail(ErrorCode::Refused, "it is not an ELF file");
  const Buffer bytes = CLEW_TRY(read(0, sizeof(Elf64_Ehdr)));
  header_ = ByteReader(bytes.view()).read<Elf64_Ehdr>();
  CLEW_TRY(check_identity(header_));
  read_segments();
  read_sections();
  if (segments_.empty() && sections_.empty()) {
    return fail(ErrorCode::Refused, "it has neither segments nor sections; is it truncated?");
  }
  return {};
}

void ElfFile::read_segments() {
  if (header_.e_phoff == 0 || header_.e_phnum == 0) return;
  const uint64_t size = uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr);
  auto bytes = read(header_.e_phoff, size);
  if (header_.e_phentsize != sizeof(Elf64_Phdr) || !bytes) {
    problems_.emplace_back("the program headers are broken");
    return;
  }
  segments_.resize(header_.e_phnum);
  std::memcpy(segments_.data(), bytes->view().data(), size);
}

void ElfFile::read_sections() {
  if (header_.e_shoff == 0) return;
  auto first = read(header_.e_shoff, sizeof(Elf64_Shdr));
  if (header_.e_shentsize != sizeof(Elf64_Shdr) || !first) {
    problems_.emplace_back("the section headers are broken");
    return;
  }
  // With 0xff00 sections or more the counts are in the first header (gABI, "ELF Header").
  const auto zero = ByteReader(first->view()).read<Elf64_Shdr>();
  const uint64_t count = header_.e_shnum != 0 ? header_.e_shnum : zero.sh_size;
  const uint32_t names = header_.e_shstrndx == SHN_XINDEX ? zero.sh_link : header_.e_shstrndx;
  if (count == 0) return;
  if (count > size_bytes_ / sizeof(Elf64_Shdr)) {
    problems_.emplace_back("the section headers are broken");
    return;
  }
  auto bytes = read(header_.e_shoff, count * sizeof(Elf64_Shdr));
  if (!bytes) {
    problems_.emplace_back("the section headers are broken");
    return;
  }
  std::vector<Elf64_Shdr> headers(count);
  std::memcpy(headers.data(), bytes->view().data(), count * sizeof(Elf64_Shdr));
  name_sections(headers, names);
}

void ElfFile::name_sections(std::span<const Elf64_Shdr> headers, uint32_t names_index) {
  if (names_index < headers.size() && headers[names_index].sh_size <= kSectionNamesMaxBytes) {
    auto names = read(headers[names_index].sh_offset, headers[names_index].sh_size);
    if (names) section_names_ = std::move(*names);
  }
  sections_.reserve(headers.size());
  for (const Elf64_Shdr& header : headers) {
    ByteReader names(section_names_.view(), header.sh_name);
    const std::string_view name = names.read_string();
    sections_.push_back({.name = names.failed() ? std::string_view() : name, .header = header});
  }
}

const ElfSection* ElfFile::find_section(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const ElfSection& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

const ElfSection* ElfFile::find_section_of_type(uint32_t type) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(),
                   [&](const ElfSection& section) { return section.header.sh_type == type; });
  return found == sections_.end() ? nullptr : &*found;
}

Expected<Buffer> ElfFile::read(uint64_t offset, uint64_t size_bytes) const {
  if (offset > size_bytes_ || size_bytes > size_bytes_ - offset) {
    return fail(ErrorCode::Io, "the file ends before a part that it promises");
  }
  Buffer result(size_bytes);
  if (file_.valid()) {
    const auto read = read_exactly(file_.get(), offset, result.writable());
    if (!read && log_ != nullptr) log_->note_failure();
    CLEW_TRY(read);
  } else if (size_bytes != 0) {
    std::memcpy(result.data(), buffer_.view().data() + offset, size_bytes);
  }
  if (log_ != nullptr) log_->add({log_number_, offset, size_bytes}, result.view());
  return result;
}

Expected<Buffer> ElfFile::read(const ElfSection& section) const {
  if (section.header.sh_type == SHT_NOBITS) return Buffer();
  if ((section.header.sh_flags & SHF_COMPRESSED) != 0) {
    return fail(ErrorCode::Refused, fmt::format("the section {} is compressed", section.name));
  }
  return read(section.header.sh_offset, section.header.sh_size);
}

std::optional<ElfFile::FilePlace> ElfFile::place_of(uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_) {
    const uint64_t within = address - segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && within < segment.p_filesz) {
      return FilePlace{.offset = segment.p_offset + within,
                       .available_bytes = segment.p_filesz - within};
    }
  }
  return std::nullopt;
}

Expected<Buffer> ElfFile::read_at_address(uint64_t address, uint64_t size_bytes) const {
  const auto place = place_of(address);
  if (!place || place->available_bytes < size_bytes) {
    return fail(ErrorCode::Io, fmt::format("address {:#x} is not in the file", address));
  }
  return read(place->offset, size_bytes);
}

std::string ElfFile::build_id() const {
  for (const ElfSection& section : sections_) {
    if (section.header.sh_type != SHT_NOTE) continue;
    std::string id = build_id_in(section.header.sh_offset, section.header.sh_size);
    if (!id.empty()) return id;
  }
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_NOTE) continue;
    std::string id = build_id_in(segment.p_offset, segment.p_filesz);
    if (!id.empty()) return id;
  }
  return {};
}

std::string ElfFile::build_id_in(uint64_t offset, uint64_t size_bytes) const {
  if (size_bytes > kNotesMaxBytes) return {};
  auto notes = read(offset, size_bytes);
  return notes ? find_build_id(notes->view()) : std::string();
}

// A note: name size, descriptor size, type (4 bytes each), name, descriptor; both padded to 4 bytes
// (gABI, "Note Section"; the 8-byte padding of .note.gnu.property does not matter to a scan that
// stops at a note that makes no sense).
std::string find_build_id(std::span<const uint8_t> notes) {
  constexpr uint32_t kBuildIdMaxBytes = 64;
  ByteReader reader(notes);
  while (reader.remaining() >= sizeof(Elf64_Nhdr)) {
    const auto note = reader.read<Elf64_Nhdr>();
    const auto name = reader.read_bytes(align_up(note.n_namesz, 4));
    const auto descriptor = reader.read_bytes(note.n_descsz);
    reader.skip(std::min<uint64_t>(align_up(note.n_descsz, 4) - note.n_descsz, reader.remaining()));
    if (reader.failed()) return {};
    const bool is_gnu = note.n_namesz == 4 && std::memcmp(name.data(), "GNU", 4) == 0;
    if (!is_gnu || note.n_type != NT_GNU_BUILD_ID || note.n_descsz > kBuildIdMaxBytes) continue;
    std::string id;
    for (const uint8_t byte : descriptor) {
      id += fmt::format("{:02x}", byte);
    }
    return id;
  }
  return {};
}

}  // namespace clew::target
