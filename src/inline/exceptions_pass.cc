// SPDX-License-Identifier: Apache-2.0
#include "inline/exceptions_pass.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "target/frame_tables.h"
#include "target/linked_names.h"
#include "target/process.h"

namespace clew::inline_ {

namespace {

// The C library has cleanups of its own, for threads that are cancelled, and throws nothing.
bool is_of_c_library(const target::ProcessModule& module) {
  constexpr std::array<std::string_view, 4> kBeginnings = {"libc.so", "ld-linux", "libm.so",
                                                           "libgcc_s"};
  const std::string_view file = std::string_view(module.path).substr(module.path.rfind('/') + 1);
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return file.starts_with(beginning); });
}

bool throws(const target::ProcessModule& module) {
  if (is_of_c_library(module)) return false;
  constexpr std::array<std::string_view, 3> kThrowing = {"__cxa_throw", "_Unwind_Resume",
                                                         "_Unwind_RaiseException"};
  const auto names = target::read_linked_names(module.open_path);
  const auto tables = target::read_frame_tables(module.open_path);
  if (!names || !tables) return true;
  const bool asks = std::any_of(
      names->imports.begin(), names->imports.end(), [&](const target::ImportSlot& slot) {
        return std::find(kThrowing.begin(), kThrowing.end(), slot.symbol) != kThrowing.end();
      });
  return asks || std::any_of(tables->entries.begin(), tables->entries.end(),
                             [](const target::FrameEntry& entry) {
                               return entry.exceptions != target::kNoExceptionTable;
                             });
}

}  // namespace

bool exceptions_pass(pid_t pid) {
  const auto modules = target::read_modules(pid);
  return !modules || std::any_of(modules->begin(), modules->end(), throws);
}

}  // namespace clew::inline_
