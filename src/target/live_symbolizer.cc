// SPDX-License-Identifier: Apache-2.0
#include "target/live_symbolizer.h"

#include <cstring>
#include <string>

#include "target/catalog.h"

namespace clew::target {
namespace {

// `mov $15, %rax` and the first byte of `syscall`: rt_sigreturn(2), by which a handler's caller
// goes back (glibc, sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c); as abi/machine/unwind.h has
// it.
constexpr uint64_t kSignalReturnCode = 0x0f00'0000'0fc0'c748;

}  // namespace

std::optional<SymbolPlace> LiveSymbolizer::kernel(uint64_t address) const {
  if (!kernel_) {
    kernel_ = KernelSymbols::parse(read_kernel_symbols());
  }
  return kernel_->find(address);
}

// Null when it cannot be read; that is remembered, too.
const ModuleImage* LiveSymbolizer::image_of(const CodeFile& file, const std::string& name) const {
  const auto known = images_.find(&file);
  if (known != images_.end()) return known->second.get();
  ReadOptions options = default_catalog_options().read;
  options.name = name;
  auto read = ModuleImage::read(file.open_path, options);
  auto& kept = images_[&file];
  if (read) kept = std::make_unique<ModuleImage>(std::move(*read));
  return kept.get();
}

// Null when there is none.
DebugInfo* LiveSymbolizer::debug_of(const CodeFile& file, const std::string& name) const {
  const auto [known, is_new] = debug_.try_emplace(&file);
  if (is_new) {
    const ModuleImage* const image = image_of(file, name);
    auto debug = image == nullptr ? fail(ErrorCode::NotFound, "no image")
                                  : DebugInfo::open(*image, default_catalog_options().read);
    if (debug) known->second.emplace(std::move(*debug));
  }
  return known->second ? &*known->second : nullptr;
}

// 0 for none.
pid_t LiveSymbolizer::process_of(uint64_t pid) const {
  if (!names_processes_) return 0;
  return pid == kTarget ? target_ : static_cast<pid_t>(pid);
}

std::optional<CodePlace> LiveSymbolizer::code_at(uint64_t pid, uint64_t address) const {
  const pid_t process = process_of(pid);
  return process == 0 ? std::nullopt : find(process, address);
}

bool LiveSymbolizer::is_signal_return(uint64_t pid, uint64_t address) const {
  const std::optional<CodePlace> place = code_at(pid, address);
  if (!place) return false;
  const ModuleImage* const image = image_of(*place->file, place->space->name_of(*place->file));
  const Section* const section = image == nullptr ? nullptr : image->section_at(place->address);
  if (section == nullptr) return false;
  const auto bytes = image->bytes(*section);
  const uint64_t at = place->address - section->address;
  uint64_t code = 0;
  if (!bytes || at + sizeof code > bytes->size()) return false;
  std::memcpy(&code, bytes->data() + at, sizeof code);
  return code == kSignalReturnCode;
}

std::vector<SourceCall> LiveSymbolizer::source(uint64_t pid, uint64_t address) const {
  const std::optional<CodePlace> place = code_at(pid, address);
  if (!place) return {};
  DebugInfo* const debug = debug_of(*place->file, place->space->name_of(*place->file));
  return debug == nullptr ? std::vector<SourceCall>() : debug->calls_at(place->address);
}

std::optional<SymbolPlace> LiveSymbolizer::user(uint64_t pid, uint64_t address) const {
  const pid_t process = process_of(pid);
  if (process == 0) return std::nullopt;
  std::optional<SymbolPlace> place = in_file(process, address);
  return place ? place : in_made_code(process, address);
}

std::optional<SymbolPlace> LiveSymbolizer::in_made_code(pid_t process, uint64_t address) const {
  auto place = made_code_.try_emplace(process, process).first->second.find(address);
  if (!place) return std::nullopt;
  return SymbolPlace{.module = kMadeCode,
                     .function = std::move(place->function),
                     .offset_bytes = place->offset_bytes};
}

std::optional<CodePlace> LiveSymbolizer::find(pid_t process, uint64_t address) const {
  const AddressSpace* space = spaces_.find(process, address);
  if (space == nullptr && spaces_.look_at(process)) space = spaces_.find(process, address);
  if (space == nullptr) return std::nullopt;
  const CodeRange& range = *space->find(address);
  if (range.file == nullptr) return std::nullopt;
  return CodePlace{.space = space, .file = range.file, .address = address - range.load_bias};
}

std::optional<SymbolPlace> LiveSymbolizer::in_file(pid_t process, uint64_t address) const {
  const std::optional<CodePlace> found = find(process, address);
  if (!found) return std::nullopt;
  SymbolPlace place;
  place.module = found->space->name_of(*found->file);
  const uint64_t at = found->address;
  place.offset_bytes = at;
  const ModuleImage* const image = image_of(*found->file, place.module);
  const Function* const function = image == nullptr ? nullptr : image->function_covering(at);
  if (function == nullptr) return place;
  place.function = function->name;
  place.offset_bytes = at - function->address;
  for (const AddressRange& part : function->cold) {
    if (part.contains(at) && !function->range().contains(at)) {
      place.offset_bytes = at - part.address;
    }
  }
  return place;
}

}  // namespace clew::target
