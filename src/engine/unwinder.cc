// SPDX-License-Identifier: Apache-2.0
#include "engine/unwinder.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "inline/exits.h"

namespace clew::engine {
namespace {

// Itanium C++ ABI: exception handling, level I. Each may be the last to run before a handler.
constexpr auto kUnwinderNames =
    std::to_array<std::string_view>({"_Unwind_RaiseException", "_Unwind_ForcedUnwind",
                                     "_Unwind_Resume", "_Unwind_Resume_or_Rethrow"});
constexpr std::string_view kUnwinderPattern = "_Unwind_*";

}  // namespace

bool has_exception_source(const query::Query& query) {
  return std::any_of(query.sources.begin(), query.sources.end(), [](const query::Source& source) {
    return source.kind == query::SourceKind::Exception;
  });
}

Expected<std::vector<UnwinderFunction>> find_unwinders(target::Catalog& catalog,
                                                       const std::vector<size_t>& modules) {
  std::vector<UnwinderFunction> found;
  for (const target::FunctionMatch& match : CLEW_TRY(catalog.find(kUnwinderPattern))) {
    const bool wanted =
        modules.empty() || std::find(modules.begin(), modules.end(), match.module) != modules.end();
    if (!wanted || !catalog.modules()[match.module].is_loaded) continue;
    const target::ModuleImage* image = CLEW_TRY(catalog.image(match.module));
    const target::Function& function = image->functions()[match.function];
    const bool is_unwinder = std::find(kUnwinderNames.begin(), kUnwinderNames.end(),
                                       function.name) != kUnwinderNames.end();
    const bool is_known =
        std::any_of(found.begin(), found.end(), [&](const UnwinderFunction& other) {
          return other.module == match.module && other.address == function.address;
        });
    if (!is_unwinder || is_known) continue;
    found.push_back(
        {.module = match.module, .address = function.address, .name = std::string(function.name)});
  }
  return found;
}

std::vector<inline_::Request> landings_of(const inline_::ModuleCode& code, uint64_t function) {
  std::vector<inline_::Request> requests;
  const auto index = code.function_starting_at(function);
  if (!index) return requests;
  for (const uint64_t address : inline_::find_stack_switches(code, *index)) {
    requests.push_back({.kind = inline_::RequestKind::Offset, .address = address});
  }
  return requests;
}

}  // namespace clew::engine
