// SPDX-License-Identifier: Apache-2.0
#include "engine/own_unwinder.h"

#include <algorithm>
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
// functions from elsewhere. One that offers them may take its own by the loader.
bool brings_unwinder(const target::ProcessModule& module, const target::LinkedNames& names) {
  if (!imports(names, "dl_iterate_phdr") || imports(names, "_dl_find_object")) return false;
  const bool offers = std::any_of(
      names.exports.begin(), names.exports.end(),
      [](const target::ExportedFunction& exported) { return exported.name == kRaises; });
  if (offers) return true;
  const bool takes = imports(names, kRaises) || imports(names, "_Unwind_Resume");
  return !takes && has_exception_tables(module);
}

inline_::Asker extent_of(const target::ProcessModule& module) {
  const uint64_t begin = module.executable_ranges.front().start;
  return {begin, module.executable_ranges.back().end - begin};
}

}  // namespace clew::engine
