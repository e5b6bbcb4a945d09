// SPDX-License-Identifier: Apache-2.0
#include "copy/kept_copy.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace clew::copy {

namespace {

// Packed: offset 32, kind 8, is_in_module 1.
constexpr unsigned kKindShift = 32;
constexpr unsigned kInModuleShift = 40;
constexpr uint64_t kFixupMask = (uint64_t{1} << (kInModuleShift + 1)) - 1;
constexpr uint64_t kAddressMax = uint64_t{1} << 47;

uint64_t packed(const Fixup& fixup) {
  return fixup.offset | static_cast<uint64_t>(fixup.kind) << kKindShift |
         uint64_t{fixup.is_in_module ? 1U : 0U} << kInModuleShift;
}

// Each field lies in the bytes, behind the one before.
bool unpack(const std::vector<uint64_t>& words, ModuleCopy& copy) {
  uint64_t free_from = 0;
  copy.fixups.reserve(words.size());
  for (const uint64_t word : words) {
    const uint64_t kind = word >> kKindShift & 0xff;
    if (word > kFixupMask || kind > static_cast<uint64_t>(FixupKind::Absolute64)) return false;
    const Fixup fixup = {.offset = static_cast<uint32_t>(word),
                         .kind = static_cast<FixupKind>(kind),
                         .is_in_module = word >> kInModuleShift != 0};
    const uint64_t end = fixup.offset + (fixup.kind == FixupKind::Absolute64 ? 8U : 4U);
    if (fixup.offset < free_from || end > copy.bytes.size()) return false;
    free_from = end;
    copy.fixups.push_back(fixup);
  }
  return true;
}

}  // namespace

void KeptCopy::write(target::BlockWriter& file, const CheckedCopy& checked) {
  const ModuleCopy& copy = checked.copy();
  file.add(std::vector<uint64_t>{copy.address, copy.code_size});
  file.add(copy.bytes);
  std::vector<uint64_t> fixups;
  fixups.reserve(copy.fixups.size());
  for (const Fixup& fixup : copy.fixups)
    fixups.push_back(packed(fixup));
  file.add(fixups);
}

std::optional<CheckedCopy> KeptCopy::read(target::BlockReader& file) {
  std::vector<uint64_t> numbers;
  std::vector<uint64_t> fixups;
  ModuleCopy copy;
  const bool is_whole = file.read(numbers) && file.read(copy.bytes) && file.read(fixups);
  if (!is_whole || numbers.size() != 2) return std::nullopt;
  copy.address = numbers[0];
  if (copy.address > kAddressMax || numbers[1] > copy.bytes.size() ||
      copy.bytes.size() > std::numeric_limits<int32_t>::max()) {
    return std::nullopt;
  }
  copy.code_size = static_cast<uint32_t>(numbers[1]);
  if (!unpack(fixups, copy)) return std::nullopt;
  return CheckedCopy(std::move(copy));
}

}  // namespace clew::copy
