// SPDX-License-Identifier: Apache-2.0
#include "target/ifunc.h"

#include <algorithm>
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
  std::vector<size_t> found;
  const std::string_view name = ifunc.name;
  const std::string_view stem = name.substr(std::min(name.find_first_not_of('_'), name.size()));
  if (stem.empty()) return found;
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

}  // namespace clew::target
