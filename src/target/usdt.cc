// SPDX-License-Identifier: Apache-2.0
#include "target/usdt.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>

#include "target/byte_reader.h"
#include "target/elf_file.h"

namespace clew::target {

namespace {

constexpr uint32_t kNoteType = 3;  // NT_STAPSDT
constexpr std::string_view kNoteOwner = "stapsdt";
constexpr uint32_t kTypesType = 1;
constexpr uint32_t kStabilityType = 2;
constexpr std::string_view kTypesOwner = "clewdt";
constexpr size_t kTypedArgumentsMax = 64;
constexpr size_t kProbesMax = 1U << 16;

uint64_t padded(uint64_t size_bytes) {
  return (size_bytes + 3) & ~uint64_t{3};
}

// Where the variables of a file are: all of its symbols, read when one is first asked for.
class VariableNames {
 public:
  explicit VariableNames(const ElfFile& file) : file_(file) {}

  std::optional<uint64_t> find(const std::string& name) {
    if (!is_read_) read();
    const auto found = addresses_.find(name);
    return found == addresses_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void read() {
    is_read_ = true;
    for (const ElfSection& section : file_.sections()) {
      const uint32_t type = section.header.sh_type;
      if (type == SHT_SYMTAB || type == SHT_DYNSYM) read_table(section);
    }
  }

  void read_table(const ElfSection& section) {
    const auto sections = file_.sections();
    if (section.header.sh_link >= sections.size()) return;
    const auto symbols = file_.read(section);
    const auto names = file_.read(sections[section.header.sh_link]);
    if (!symbols || !names) return;
    ByteReader reader(symbols->view());
    while (!reader.at_end()) {
      const auto symbol = reader.read<Elf64_Sym>();
      if (reader.failed()) return;
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF) continue;
      if (symbol.st_name >= names->view().size()) continue;
      ByteReader name(names->view().subspan(symbol.st_name));
      addresses_.try_emplace(std::string(name.read_string()), symbol.st_value);
    }
  }

  const ElfFile& file_;
  bool is_read_ = false;
  std::map<std::string, uint64_t> addresses_;
};

// "40+name", "name-8", "name": the variable, and what is added to its address.
struct Variable {
  std::string name;
  int64_t offset = 0;
};

std::optional<Variable> parse_variable(std::string_view text) {
  Variable variable;
  while (!text.empty()) {
    const bool is_negative = text[0] == '-';
    if (text[0] == '-' || text[0] == '+') text.remove_prefix(1);
    const std::string_view term = text.substr(0, text.find_first_of("+-"));
    text.remove_prefix(term.size());
    int64_t value = 0;
    const auto [end, error] = std::from_chars(term.data(), term.data() + term.size(), value);
    if (error == std::errc() && end == term.data() + term.size()) {
      variable.offset = static_cast<int64_t>(static_cast<uint64_t>(variable.offset) +
                                             static_cast<uint64_t>(is_negative ? -value : value));
    } else if (variable.name.empty() && !is_negative && !term.empty()) {
      variable.name = term;
    } else {
      return std::nullopt;
    }
  }
  return variable.name.empty() ? std::nullopt : std::optional(variable);
}

// "-4@name(%rip)" -> "-4@1234(%rip)", where 1234 is how far the variable is from `address`.
std::string resolve_variable(std::string_view word, uint64_t address, VariableNames& names) {
  constexpr std::string_view kEnd = "(%rip)";
  const size_t begin = word.find('@') + 1;
  if (begin == 0 || !word.ends_with(kEnd)) return std::string(word);
  const auto variable =
      parse_variable(word.substr(begin, std::max(begin, word.size() - kEnd.size()) - begin));
  if (!variable) return std::string(word);
  const auto place = names.find(variable->name);
  if (!place) return std::string(word);
  const auto distance =
      static_cast<int64_t>(*place + static_cast<uint64_t>(variable->offset) - address);
  return std::string(word.substr(0, begin)) + std::to_string(distance) + std::string(kEnd);
}

void resolve_variables(StaticProbe& probe, VariableNames& names) {
  if (probe.arguments.find("(%rip)") == std::string::npos) return;
  std::string resolved;
  std::string_view rest = probe.arguments;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (!resolved.empty()) resolved += ' ';
    resolved += resolve_variable(word, probe.address, names);
  }
  probe.arguments = std::move(resolved);
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
    probe.semaphore_address = semaphore + moved;
    return probe;
  }

 private:
  const ElfFile& file_;
  uint64_t base_ = 0;
};

// Calls `take` with the description of each note of the owner and type, until it answers false.
template <typename Take>
void for_each_note(std::span<const uint8_t> notes, std::string_view owner, uint32_t type,
                   const Take& take) {
  ByteReader reader(notes);
  while (!reader.at_end()) {
    const auto name_bytes = reader.read<uint32_t>();
    const auto description_bytes = reader.read<uint32_t>();
    const auto type_here = reader.read<uint32_t>();
    const auto name = reader.read_bytes(padded(name_bytes));
    const auto content = reader.read_bytes(padded(description_bytes));
    if (reader.failed()) return;
    const std::string_view owner_here(reinterpret_cast<const char*>(name.data()),
                                      name_bytes == 0 ? 0 : name_bytes - 1);
    if (type_here != type || owner_here != owner) continue;
    if (!take(content.first(description_bytes))) return;
  }
}

void read_notes(std::span<const uint8_t> notes, const NoteReader& description,
                std::vector<StaticProbe>& probes) {
  for_each_note(notes, kNoteOwner, kNoteType, [&](std::span<const uint8_t> content) {
    auto probe = description.read(content);
    if (probe) probes.push_back(std::move(*probe));
    return probes.size() < kProbesMax;
  });
}

// --- types of arguments, stability --------------------------------------------------------------

struct TypedArgument {
  size_t from = 0;  // Of the probe's own arguments.
  StaticProbe::Typed types;
};
using TypesOfProbes = std::map<std::pair<std::string, std::string>, std::vector<TypedArgument>>;

void read_types(std::span<const uint8_t> notes, TypesOfProbes& all) {
  for_each_note(notes, kTypesOwner, kTypesType, [&](std::span<const uint8_t> content) {
    ByteReader reader(content);
    const std::string provider(reader.read_string());
    const std::string name(reader.read_string());
    std::vector<TypedArgument> arguments;
    while (!reader.at_end() && arguments.size() < kTypedArgumentsMax) {
      const std::string_view from = reader.read_string();
      TypedArgument& one = arguments.emplace_back();
      (void)std::from_chars(from.data(), from.data() + from.size(), one.from);
      one.types.native_type = reader.read_string();
      one.types.translated_type = reader.read_string();
    }
    if (!reader.failed()) all.try_emplace({provider, name}, std::move(arguments));
    return all.size() < kProbesMax;
  });
}

using StabilityOfProviders = std::map<std::string, StaticProbe::Stability>;

void read_stability(std::span<const uint8_t> notes, StabilityOfProviders& all) {
  for_each_note(notes, kTypesOwner, kStabilityType, [&](std::span<const uint8_t> content) {
    ByteReader reader(content);
    std::string provider(reader.read_string());
    StaticProbe::Stability stability;
    stability.probes = reader.read_string();
    stability.arguments = reader.read_string();
    if (!reader.failed()) all.try_emplace(std::move(provider), std::move(stability));
    return all.size() < kProbesMax;
  });
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

// Types that do not fit to the probe's own arguments are none.
void add_types(StaticProbe& probe, const std::vector<TypedArgument>& arguments) {
  const std::vector<std::string_view> words = words_of(probe.arguments);
  std::string ordered;
  std::vector<StaticProbe::Typed> types;
  for (const TypedArgument& argument : arguments) {
    if (argument.from >= words.size()) return;
    ordered += (ordered.empty() ? "" : " ") + std::string(words[argument.from]);
    types.push_back(argument.types);
  }
  probe.arguments = std::move(ordered);
  probe.types = std::move(types);
}

}  // namespace

Expected<std::vector<StaticProbe>> read_static_probes(const std::string& path) {
  const ElfFile file = CLEW_TRY(ElfFile::open(path));
  std::vector<StaticProbe> probes;
  const NoteReader description(file);
  VariableNames names(file);
  TypesOfProbes types;
  StabilityOfProviders stability;
  for (const ElfSection& section : file.sections()) {
    const bool has_probes = section.name == ".note.stapsdt";
    if (section.header.sh_type != SHT_NOTE || !(has_probes || section.name == ".note.clewdt"))
      continue;
    const Buffer notes = CLEW_TRY(file.read(section));
    if (has_probes) {
      read_notes(notes.view(), description, probes);
    } else {
      read_types(notes.view(), types);
      read_stability(notes.view(), stability);
    }
  }
  for (StaticProbe& probe : probes) {
    resolve_variables(probe, names);
    const auto typed = types.find({probe.provider, probe.name});
    if (typed != types.end()) add_types(probe, typed->second);
    const auto told = stability.find(probe.provider);
    if (told != stability.end()) probe.stability = told->second;
  }
  return probes;
}

std::string d_name_of(std::string_view note_name) {
  std::string result(note_name);
  for (size_t at = result.find("__"); at != std::string::npos; at = result.find("__", at)) {
    result.replace(at, 2, "-");
  }
  return result;
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

size_t count_static_arguments(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i)
    count += text[i] != ' ' && (i == 0 || text[i - 1] == ' ') ? 1 : 0;
  return count;
}

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
