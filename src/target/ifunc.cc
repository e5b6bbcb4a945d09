// SPDX-License-Identifier: Apache-2.0
#include "target/ifunc.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "target/dynamic.h"
#include "target/elf_file.h"
#include "target/relocations.h"

namespace clew::target {

namespace {

class ValueReader {
 public:
  ValueReader(pid_t pid, const ProcessModule& home) : pid_(pid), home_(home) {}

  void read(uint64_t slot_address) {
    uint64_t value = 0;
    const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(&value), sizeof(value));
    if (!read_memory(pid_, slot_address, bytes) || !home_.contains(value)) return;
    if (std::find(values_.begin(), values_.end(), value) == values_.end()) {
      values_.push_back(value);
    }
  }
  std::vector<uint64_t> take() { return std::move(values_); }

 private:
  pid_t pid_;
  const ProcessModule& home_;
  std::vector<uint64_t> values_;
};

void read_import_slots(const ProcessModule& module, const Function& ifunc, ValueReader& values) {
  auto file = ElfFile::open(module.open_path);
  if (!file) return;
  const DynamicTable dynamic = read_dynamic_table(*file);
  for (const FunctionName& name : ifunc.names) {
    auto slots = find_import_slots(*file, dynamic, name.linkage);
    if (!slots) continue;
    for (const ImportSlot& slot : *slots) {
      values.read(module.load_bias + slot.slot_address);
    }
  }
}

// "__memcpy_avx_unaligned" for "memcpy", but not the checked variant, which is another function.
bool is_implementation_name(std::string_view name, std::string_view stem) {
  if (!name.starts_with("__") || !name.substr(2).starts_with(stem)) return false;
  const std::string_view variant = name.substr(2 + stem.size());
  return variant.starts_with('_') && !variant.starts_with("_chk");
}

std::vector<size_t> named_as_implementations(const ModuleImage& image, std::string_view stem) {
  std::vector<size_t> found;
  const auto functions = image.functions();
  for (size_t i = 0; i < functions.size(); ++i) {
    const bool implements =
        !functions[i].is_ifunc &&
        std::any_of(functions[i].names.begin(), functions[i].names.end(),
                    [&](const auto& alias) { return is_implementation_name(alias.linkage, stem); });
    if (implements) found.push_back(i);
  }
  return found;
}

// The file's bytes of a function.
std::span<const uint8_t> code_of(const ModuleImage& image, const Function& function) {
  const Section* section = image.section_at(function.address);
  if (section == nullptr) return {};
  const auto bytes = image.bytes(*section);
  const uint64_t offset = function.address - section->address;
  if (!bytes || offset >= bytes->size()) return {};
  return bytes->subspan(offset, std::min<uint64_t>(function.size_bytes, bytes->size() - offset));
}

// lea r64, [rip + x]: 48 or 4c, 8d, 00 rrr 101 (Intel SDM, volume 2). What else has these bytes
// leads to the start of a function by chance only.
std::vector<size_t> addressed_by(const ModuleImage& image, const Function& resolver) {
  constexpr size_t kLength = 7;
  constexpr size_t kField = 3;
  std::vector<size_t> found;
  const std::span<const uint8_t> code = code_of(image, resolver);
  for (size_t at = 0; at + kLength <= code.size(); ++at) {
    const bool is_lea =
        (code[at] & 0xfb) == 0x48 && code[at + 1] == 0x8d && (code[at + 2] & 0xc7) == 0x05;
    if (!is_lea) continue;
    int32_t distance = 0;
    std::memcpy(&distance, code.data() + at + kField, sizeof distance);
    const Function* target = image.function_at(resolver.address + at + kLength +
                                               static_cast<uint64_t>(int64_t{distance}));
    if (target == nullptr || target->is_ifunc) continue;
    const auto index = static_cast<size_t>(target - image.functions().data());
    if (std::find(found.begin(), found.end(), index) == found.end()) found.push_back(index);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<uint64_t> read_ifunc_values(pid_t pid, const ModuleImage& image, const Function& ifunc,
                                        const ProcessModule& home,
                                        std::span<const ProcessModule* const> modules) {
  ValueReader values(pid, home);
  for (const IfuncSlot& slot : image.ifunc_slots()) {
    if (slot.resolver_address == ifunc.address) values.read(home.load_bias + slot.slot_address);
  }
  for (const ProcessModule* module : modules) {
    read_import_slots(*module, ifunc, values);
  }
  return values.take();
}

std::vector<size_t> guess_ifunc_targets(const ModuleImage& image, const Function& ifunc) {
  const std::string_view name = ifunc.name;
  const std::string_view stem = name.substr(std::min(name.find_first_not_of('_'), name.size()));
  const std::vector<size_t> named =
      stem.empty() ? std::vector<size_t>{} : named_as_implementations(image, stem);
  return named.empty() ? addressed_by(image, ifunc) : named;
}

}  // namespace clew::target
