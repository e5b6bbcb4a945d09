// SPDX-License-Identifier: Apache-2.0
#include "engine/record/own_unwinder.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "target/frame_tables.h"

namespace clew::engine {

namespace {

constexpr std::string_view kRaises = "_Unwind_RaiseException";

bool imports(const target::LinkedNames& names, std::string_view wanted) {
  return std::any_of(names.imports.begin(), names.imports.end(),
                     [&](const target::ImportSlot& slot) { return slot.symbol == wanted; });
}

bool has_exception_tables(const target::ProcessModule& module) {
  const auto tables = target::read_frame_tables(module.open_path);
  return !tables || !tables->exceptions.empty();
}

}  // namespace

// Others ask as well, for names and build-ids: they have no exceptions, or take the unwinder's
// functions from elsewhere.
bool brings_unwinder(const target::ProcessModule& module, const target::LinkedNames& names) {
  constexpr std::array<std::string_view, 3> kTakenFromOthers = {"_dl_find_object", "_Unwind_Resume",
                                                                kRaises};
  if (!imports(names, "dl_iterate_phdr")) return false;
  const bool takes = std::any_of(kTakenFromOthers.begin(), kTakenFromOthers.end(),
                                 [&](std::string_view name) { return imports(names, name); });
  if (takes) return false;
  const bool offers = std::any_of(
      names.exports.begin(), names.exports.end(),
      [](const target::ExportedFunction& exported) { return exported.name == kRaises; });
  return offers || has_exception_tables(module);
}

}  // namespace clew::engine
