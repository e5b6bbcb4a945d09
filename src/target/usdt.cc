// SPDX-License-Identifier: Apache-2.0
#include "target/usdt.h"

#include <charconv>
#include <optional>
#include <span>

#include "target/byte_reader.h"
#include "target/elf_file.h"

namespace clew::target {

namespace {

constexpr uint32_t kNoteType = 3;  // NT_STAPSDT
constexpr std::string_view kNoteOwner = "stapsdt";
constexpr size_t kProbesMax = 1U << 16;

uint64_t padded(uint64_t size_bytes) {
  return (size_bytes + 3) & ~uint64_t{3};
}

// The addresses in a note are from before a program that moves sections (prelink) was used: the
// difference is that between what the note and the file say about .stapsdt.base.
class NoteReader {
 public:
  explicit NoteReader(const ElfFile& file) : file_(file) {
    const ElfSection* base = file.find_section(".stapsdt.base");
    if (base != nullptr) base_ = base->header.sh_addr;
  }

  // A description: place, base, semaphore, then three strings.
  [[nodiscard]] std::optional<StaticProbe> read(std::span<const uint8_t> description) const {
    ByteReader reader(description);
    const auto place = reader.read<uint64_t>();
    const auto base = reader.read<uint64_t>();
    const auto semaphore = reader.read<uint64_t>();
    StaticProbe probe;
    probe.provider = reader.read_string();
    probe.name = reader.read_string();
    probe.arguments = reader.read_string();
    if (reader.failed()) return std::nullopt;
    const uint64_t moved = base_ == 0 || base == 0 ? 0 : base_ - base;
    probe.address = place + moved;
    const auto offset = file_.place_of(probe.address);
    if (!offset) return std::nullopt;
    probe.file_offset = offset->offset;
    if (semaphore == 0) return probe;
    const auto counter = file_.place_of(semaphore + moved);
    if (!counter) return std::nullopt;
    probe.semaphore_offset = counter->offset;
    return probe;
  }

 private:
  const ElfFile& file_;
  uint64_t base_ = 0;
};

void read_notes(std::span<const uint8_t> notes, const NoteReader& description,
                std::vector<StaticProbe>& probes) {
  ByteReader reader(notes);
  while (!reader.at_end() && probes.size() < kProbesMax) {
    const auto name_bytes = reader.read<uint32_t>();
    const auto description_bytes = reader.read<uint32_t>();
    const auto type = reader.read<uint32_t>();
    const auto name = reader.read_bytes(padded(name_bytes));
    const auto content = reader.read_bytes(padded(description_bytes));
    if (reader.failed()) return;
    const std::string_view owner(reinterpret_cast<const char*>(name.data()),
                                 name_bytes == 0 ? 0 : name_bytes - 1);
    if (type != kNoteType || owner != kNoteOwner) continue;
    auto probe = description.read(content.first(description_bytes));
    if (probe) probes.push_back(std::move(*probe));
  }
}

}  // namespace

Expected<std::vector<StaticProbe>> read_static_probes(const std::string& path) {
  const ElfFile file = CLEW_TRY(ElfFile::open(path));
  std::vector<StaticProbe> probes;
  const NoteReader description(file);
  for (const ElfSection& section : file.sections()) {
    if (section.header.sh_type != SHT_NOTE || section.name != ".note.stapsdt") continue;
    const Buffer notes = CLEW_TRY(file.read(section));
    read_notes(notes.view(), description, probes);
  }
  return probes;
}

namespace {

// "-4", "8", "8f" before the `@`.
std::optional<StaticArgument> parse_size(std::string_view text) {
  StaticArgument result;
  if (text.starts_with('-')) {
    result.is_signed = true;
    text.remove_prefix(1);
  }
  if (text.ends_with('f')) {
    result.is_float = true;
    text.remove_suffix(1);
  }
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), result.size_bytes);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  const uint8_t size = result.size_bytes;
  if (!is_whole || (size != 1 && size != 2 && size != 4 && size != 8)) return std::nullopt;
  return result;
}

}  // namespace

std::vector<StaticArgument> parse_static_arguments(std::string_view text) {
  std::vector<StaticArgument> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const size_t at = word.find('@');
    // Old compilers leave the size out: then it is a word.
    auto argument =
        at == std::string_view::npos ? StaticArgument{} : parse_size(word.substr(0, at));
    if (!argument) return result;
    argument->place = at == std::string_view::npos ? word : word.substr(at + 1);
    if (argument->place.empty()) return result;
    result.push_back(*argument);
  }
  return result;
}

}  // namespace clew::target
