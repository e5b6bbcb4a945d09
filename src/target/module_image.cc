// SPDX-License-Identifier: Apache-2.0
#include "target/module_image.h"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/file_name.h"
#include "base/log.h"
#include "target/debug_file.h"
#include "target/dynamic.h"
#include "target/elf_file.h"
#include "target/image_tables.h"
#include "target/read_log.h"
#include "target/relocations.h"
#include "target/symbol_cache.h"

namespace clew::target {

namespace {

struct ColdPart {
  AddressRange range;
  size_t function = 0;
};

// The tables as they were made from the same bytes before, or made now.
Expected<ImageTables> read_cached(ElfFile& file, const std::string& path,
                                  const ReadOptions& options, bool& was_kept) {
  const bool use_cache = !options.cache_directory.empty() &&
                         file.size_bytes() >= options.cache_from_bytes && !file.build_id().empty();
  if (!use_cache) return read_tables(file, path, options);
  const SymbolCache cache(options.cache_directory);
  std::optional<DebugFile> debug;
  if (file.find_section_of_type(SHT_SYMTAB) == nullptr) {
    debug = find_debug_file(file, path, options.debug_directory);
  }
  SymbolCache::Entry entry{.build_id = file.build_id(),
                           .module_name = options.name,
                           .debug_path = debug ? debug->path : "",
                           .files = {&file, debug ? &debug->file : nullptr}};
  auto cached = cache.load(entry);
  was_kept = cached.has_value();
  if (cached) return std::move(*cached);
  ReadLog log;
  CLEW_TRY(file.log_to(log, 0));
  auto tables = read_tables(file, path, options);
  file.end_log();
  if (tables && !log.failed()) cache.store(entry, log, *tables);
  return tables;
}

}  // namespace

struct ModuleImage::Data {
  Data(std::string its_path, ReadOptions options, ElfFile elf, ImageTables its_tables)
      : path(std::move(its_path)),
        name(std::move(options.name)),
        file(std::move(elf)),
        tables(std::move(its_tables)) {
    make_sections();
    make_functions();
    make_fdes();
  }

  void make_sections() {
    for (const SectionRecord& record : tables.sections) {
      sections.push_back({.name = tables.view(record.name),
                          .address = record.address,
                          .size_bytes = record.size_bytes,
                          .file_offset = record.file_offset,
                          .file_size_bytes = record.file_size_bytes,
                          .executable = record.executable != 0,
                          .writable = record.writable != 0,
                          .is_plt = record.is_plt != 0});
    }
    contents.resize(sections.size());
  }

  void make_functions() {
    names.reserve(tables.names.size());
    for (const NameRecord& record : tables.names) {
      names.push_back({.plain = tables.view(record.plain),
                       .demangled = tables.view(record.demangled),
                       .linkage = tables.view(record.linkage),
                       .binding = record.binding});
    }
    functions.reserve(tables.functions.size());
    reach.reserve(tables.functions.size());
    const std::span<const FunctionName> all_names(names);
    const std::span<const AddressRange> all_cold(tables.cold);
    for (const FunctionRecord& record : tables.functions) {
      const auto function_names = all_names.subspan(record.first_name, record.name_count);
      const auto cold = all_cold.subspan(record.first_cold, record.cold_count);
      for (const AddressRange& range : cold) {
        cold_parts.push_back({range, functions.size()});
      }
      functions.push_back({.name = function_names[0].plain,
                           .demangled = function_names[0].demangled,
                           .names = function_names,
                           .address = record.address,
                           .size_bytes = record.size_bytes,
                           .cold = cold,
                           .origin = record.origin,
                           .is_ifunc = record.is_ifunc != 0});
      const uint64_t end = functions.back().range().end();
      reach.push_back(reach.empty() ? end : std::max(reach.back(), end));
    }
    std::sort(cold_parts.begin(), cold_parts.end(), [](const ColdPart& a, const ColdPart& b) {
      return a.range.address < b.range.address;
    });
    tables.names = {};
    tables.functions = {};
  }

  void make_fdes() {
    fdes.reserve(tables.fdes.size());
    const std::span<const uint64_t> pads(tables.landing_pads);
    for (const FdeRecord& record : tables.fdes) {
      fdes.push_back(
          {.address = record.address,
           .size_bytes = record.size_bytes,
           .cfa_at_start_is_rsp_plus_8 = record.cfa_at_start_is_rsp_plus_8 != 0,
           .has_lsda = record.has_lsda != 0,
           .landing_pads = pads.subspan(record.first_landing_pad, record.landing_pad_count)});
    }
    tables.fdes = {};
  }

  std::string path;
  std::string name;
  ElfFile file;
  ImageTables tables;  // Its text and flat arrays; the views below point into them.
  std::vector<Section> sections;
  std::vector<FunctionName> names;
  std::vector<Function> functions;
  std::vector<uint64_t> reach;  // The largest end of functions [0, i]: how far back to look.
  std::vector<ColdPart> cold_parts;
  std::vector<Fde> fdes;

  // The one thing that changes after construction: section contents, when first asked for.
  std::mutex contents_mutex;
  std::vector<std::optional<Buffer>> contents;
};

ModuleImage::ModuleImage(std::unique_ptr<Data> data) : data_(std::move(data)) {}
ModuleImage::ModuleImage(ModuleImage&&) noexcept = default;
ModuleImage& ModuleImage::operator=(ModuleImage&&) noexcept = default;
ModuleImage::~ModuleImage() = default;

Expected<ModuleImage> ModuleImage::read(const std::string& path, const ReadOptions& options) {
  ReadOptions named = options;
  if (named.name.empty()) named.name = file_name_of(path);
  const StepTime time;
  ElfFile file = CLEW_TRY(ElfFile::open(path));
  bool was_kept = false;
  ImageTables tables = CLEW_TRY(read_cached(file, path, named, was_kept));
  log_detail(0, "read the symbols of {}: {} functions, {} ({:.1f} ms)", path,
             tables.functions.size(), was_kept ? "from the cache" : "from the file", time.ms());
  return ModuleImage(
      std::make_unique<Data>(path, std::move(named), std::move(file), std::move(tables)));
}

const std::string& ModuleImage::path() const {
  return data_->path;
}
std::string_view ModuleImage::name() const {
  return data_->name;
}
std::string_view ModuleImage::soname() const {
  return data_->tables.view(data_->tables.soname);
}
const FileIdentity& ModuleImage::identity() const {
  return data_->file.identity();
}
std::string_view ModuleImage::build_id() const {
  return data_->tables.view(data_->tables.build_id);
}
std::string_view ModuleImage::debug_file() const {
  return data_->tables.view(data_->tables.debug_file);
}
bool ModuleImage::is_position_independent() const {
  return data_->tables.is_position_independent;
}
uint64_t ModuleImage::entry_address() const {
  return data_->tables.entry_address;
}
std::span<const std::string> ModuleImage::problems() const {
  return data_->tables.problems;
}
std::span<const Section> ModuleImage::sections() const {
  return data_->sections;
}
std::span<const Function> ModuleImage::functions() const {
  return data_->functions;
}
std::span<const Fde> ModuleImage::fdes() const {
  return data_->fdes;
}
std::span<const uint64_t> ModuleImage::code_pointers() const {
  return data_->tables.code_pointers;
}
std::span<const IfuncSlot> ModuleImage::ifunc_slots() const {
  return data_->tables.ifunc_slots;
}
std::span<const RestartableSequence> ModuleImage::restartable_sequences() const {
  return data_->tables.restartable_sequences;
}

const Section* ModuleImage::section_at(uint64_t address) const {
  const auto& sections = data_->sections;
  const auto next =
      std::upper_bound(sections.begin(), sections.end(), address,
                       [](uint64_t at, const Section& section) { return at < section.address; });
  if (next == sections.begin() || !(next - 1)->contains(address)) return nullptr;
  return &*(next - 1);
}

Expected<std::span<const uint8_t>> ModuleImage::bytes(const Section& section) const {
  const auto index = static_cast<size_t>(&section - data_->sections.data());
  CLEW_ASSERT(index < data_->sections.size());
  const std::lock_guard<std::mutex> lock(data_->contents_mutex);
  auto& content = data_->contents[index];
  if (!content) {
    auto read = data_->file.read(section.file_offset, section.file_size_bytes);
    if (!read) {
      return fail(ErrorCode::Io, fmt::format("{}: {}", data_->path, read.error().message));
    }
    content = std::move(*read);
  }
  return content->view();
}

const Function* ModuleImage::function_at(uint64_t address) const {
  const auto& functions = data_->functions;
  const auto found =
      std::lower_bound(functions.begin(), functions.end(), address,
                       [](const Function& function, uint64_t at) { return function.address < at; });
  return found != functions.end() && found->address == address ? &*found : nullptr;
}

const Function* ModuleImage::function_covering(uint64_t address) const {
  const auto& functions = data_->functions;
  const auto next =
      std::upper_bound(functions.begin(), functions.end(), address,
                       [](uint64_t at, const Function& function) { return at < function.address; });
  for (auto i = static_cast<size_t>(next - functions.begin()); i-- > 0;) {
    if (functions[i].range().contains(address)) return &functions[i];
    if (data_->reach[i] <= address) break;
  }
  const auto& parts = data_->cold_parts;
  const auto part =
      std::upper_bound(parts.begin(), parts.end(), address,
                       [](uint64_t at, const ColdPart& cold) { return at < cold.range.address; });
  if (part == parts.begin() || !(part - 1)->range.contains(address)) return nullptr;
  return &functions[(part - 1)->function];
}

Expected<std::vector<ImportSlot>> ModuleImage::import_slots(std::string_view symbol) const {
  return find_import_slots(data_->file, read_dynamic_table(data_->file), symbol);
}

Expected<std::vector<ImportSlot>> ModuleImage::import_slots() const {
  return find_import_slots(data_->file, read_dynamic_table(data_->file), std::nullopt);
}

std::vector<CodePointerSlot> ModuleImage::code_pointer_slots() const {
  FileMemory memory(data_->file, data_->tables.sections);
  return find_code_pointer_slots(data_->file, read_dynamic_table(data_->file), memory,
                                 data_->tables);
}

}  // namespace clew::target
