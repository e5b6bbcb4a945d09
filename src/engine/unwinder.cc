// SPDX-License-Identifier: Apache-2.0
#include "engine/unwinder.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>

#include "code/exits.h"

namespace clew::engine {

using code::StackSwitch;

namespace {

// Itanium C++ ABI: exception handling, level I. Each may be the last to run before a handler.
constexpr auto kUnwinderNames =
    std::to_array<std::string_view>({"_Unwind_RaiseException", "_Unwind_ForcedUnwind",
                                     "_Unwind_Resume", "_Unwind_Resume_or_Rethrow"});

using Functions = std::map<uint64_t, std::string>;  // By link-time address.

Functions named_unwinders(const target::ModuleImage& image) {
  Functions found;
  for (const target::Function& function : image.functions()) {
    const bool is_unwinder = std::find(kUnwinderNames.begin(), kUnwinderNames.end(),
                                       function.name) != kUnwinderNames.end();
    if (is_unwinder) found.emplace(function.address, function.name);
  }
  return found;
}

Expected<Functions> unnamed_unwinders(const target::ModuleImage& image) {
  Functions found;
  for (const target::Section& section : image.sections()) {
    if (!section.executable || section.file_size_bytes == 0) continue;
    const std::span<const uint8_t> text = CLEW_TRY(image.bytes(section));
    std::vector<size_t> offsets = code::find_stack_switches(text, StackSwitch::Unwinder);
    const std::vector<size_t> jumps = code::find_stack_switches(text, StackSwitch::Longjmp);
    offsets.insert(offsets.end(), jumps.begin(), jumps.end());
    for (const size_t offset : offsets) {
      const target::Function* function = image.function_covering(section.address + offset);
      if (function != nullptr) found.emplace(function->address, function->name);
    }
  }
  return found;
}

}  // namespace

bool has_exception_source(const query::Query& query) {
  return std::any_of(query.sources.begin(), query.sources.end(), [](const query::Source& source) {
    return source.kind == query::SourceKind::Exception;
  });
}

Expected<std::vector<UnwinderFunction>> find_unwinders(target::Catalog& catalog,
                                                       const std::vector<size_t>& modules) {
  std::vector<UnwinderFunction> found;
  for (size_t module = 0; module < catalog.modules().size(); ++module) {
    const bool wanted =
        modules.empty() || std::find(modules.begin(), modules.end(), module) != modules.end();
    if (!wanted || !catalog.modules()[module].is_loaded) continue;
    const Expected<const target::ModuleImage*> image = catalog.image(module);
    if (!image) continue;  // Nothing of it can be traced.
    Functions functions = named_unwinders(**image);
    functions.merge(CLEW_TRY(unnamed_unwinders(**image)));
    for (auto& [address, name] : functions) {
      found.push_back({.module = module, .address = address, .name = name});
    }
  }
  return found;
}

Landings landings_of(const code::ModuleCode& code, uint64_t function) {
  Landings landings;
  const auto index = code.function_starting_at(function);
  if (!index) return landings;
  const auto add = [&](plan::ProgramPoint point, StackSwitch kind) {
    for (const uint64_t address : code::find_stack_switches(code, *index, kind)) {
      landings.emplace_back(point,
                            code::Request{.kind = code::RequestKind::Offset, .address = address});
    }
  };
  add(plan::ProgramPoint::Landing, StackSwitch::Unwinder);
  add(plan::ProgramPoint::Jump, StackSwitch::Longjmp);
  return landings;
}

}  // namespace clew::engine
