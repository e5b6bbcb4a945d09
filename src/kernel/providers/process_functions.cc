// SPDX-License-Identifier: Apache-2.0
#include "kernel/providers/process_functions.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file_name.h"
#include "kernel/providers/boundaries.h"
#include "kernel/uprobe_place.h"

namespace clew::kernel {

namespace {

std::optional<uint64_t> parse_hex(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As the linker knows it: a colon of C++ would end the field. The linker has what it chose for an
// IFUNC in another place, so that is named as it was asked for.
std::string_view reported_name(const target::Function& function,
                               const target::FunctionName& asked) {
  if (function.is_ifunc) return asked.linkage;
  const auto best =
      std::min_element(function.names.begin(), function.names.end(),
                       [](const target::FunctionName& a, const target::FunctionName& b) {
                         return a.binding < b.binding;
                       });
  return best->linkage;
}

// What D calls a function that a description means by any of its names: of several at one address
// the strong one comes before the weak one, then as `names` has them. Nothing when none matches.
std::optional<std::string_view> matching_name(const Glob& glob, const target::Function& function) {
  for (const target::FunctionName& name : function.names) {
    if (glob.matches(name.linkage) || glob.matches(name.plain))
      return reported_name(function, name);
  }
  return std::nullopt;
}

// Adds the probes of the functions of one module.
class ModuleMatcher {
 public:
  ModuleMatcher(const target::ModuleImage& image, const target::CatalogModule& module,
                const ProbeGlobs& globs, std::vector<Probe>& found)
      : image_(image), module_(module), globs_(globs), found_(found) {}

  void set_process(std::string_view provider, pid_t pid) {
    provider_ = provider;
    pid_ = pid;
  }

  Expected<void> match_function(const target::Function& function, std::string_view name) {
    const auto offset = file_offset(image_, function.address);
    if (!offset || !is_entered_by_call(image_, function, name)) return {};
    if (globs_.name.matches("entry")) add(name, "entry", AttachKind::UserEntry, *offset);
    if (globs_.name.matches("return")) {
      const std::string_view problem = return_problem(image_, function);
      if (problem.empty()) add(name, "return", AttachKind::UserReturn, *offset);
      const bool is_named = globs_.name.is_literal() && globs_.function.is_literal();
      if (!problem.empty() && is_named) {
        return fail(ErrorCode::Refused, fmt::format("a return probe in {} would break {}: {}", name,
                                                    module_.display_name, problem));
      }
    }
    return match_instructions(function, name, *offset);
  }

  // `-`: the name counts from the start of the module.
  Expected<void> match_address(uint64_t address) {
    const target::Function* function = image_.function_covering(address);
    if (function == nullptr) {
      return fail(ErrorCode::Refused,
                  fmt::format("no function of {} covers {:x}, so it may not be the start of an "
                              "instruction",
                              module_.display_name, address));
    }
    const auto offsets = CLEW_TRY(instructions(function->range()));
    const auto start = file_offset(image_, function->address);
    const bool is_start =
        std::binary_search(offsets.begin(), offsets.end(), address - function->address);
    if (!start || !is_start) return not_an_instruction(fmt::format("{:x}", address));
    add("-", globs_.name.literal(), AttachKind::UserOffset, *start + address - function->address);
    return {};
  }

 private:
  void add(std::string_view function, std::string_view name, AttachKind kind, uint64_t offset) {
    Probe probe;
    probe.provider = provider_;
    probe.module = probe_module_name(module_);
    probe.function = function;
    probe.name = name;
    probe.kind = kind;
    probe.path = module_.file.open_path;
    probe.offset_bytes = offset;
    probe.pid = pid_;
    found_.push_back(std::move(probe));
  }

  [[nodiscard]] tl::unexpected<Error> not_an_instruction(std::string_view place) const {
    return fail(ErrorCode::Refused,
                fmt::format("no instruction of {} begins at {}", module_.display_name, place));
  }

  Expected<std::vector<uint64_t>> instructions(const target::AddressRange& range) {
    const target::Section* section = image_.section_at(range.address);
    if (section == nullptr) return std::vector<uint64_t>();
    const auto bytes = CLEW_TRY(image_.bytes(*section));
    const uint64_t begin = std::min<uint64_t>(range.address - section->address, bytes.size());
    return instruction_offsets(
        bytes.subspan(begin, std::min<uint64_t>(range.size_bytes, bytes.size() - begin)));
  }

  Expected<void> match_instructions(const target::Function& function, std::string_view name,
                                    uint64_t start) {
    const auto wanted = globs_.name.is_literal() ? parse_hex(globs_.name.literal()) : std::nullopt;
    if (globs_.name.is_literal() && !wanted) return {};
    const uint64_t exact = wanted.value_or(0);
    bool is_found = false;
    for (const uint64_t offset : CLEW_TRY(instructions(function.range()))) {
      const std::string text = fmt::format("{:x}", offset);
      if (wanted ? exact != offset : !globs_.name.matches(text)) continue;
      if (found_.size() >= kInstructionProbesMax) {
        return fail(ErrorCode::Limit, fmt::format("the description matches more than {} "
                                                  "instructions; name a function",
                                                  kInstructionProbesMax));
      }
      add(name, wanted ? globs_.name.literal() : text, AttachKind::UserOffset, start + offset);
      is_found = true;
    }
    if (!wanted || is_found || !globs_.function.is_literal()) return {};
    return not_an_instruction(fmt::format("{}+0x{:x}", name, exact));
  }

  const target::ModuleImage& image_;
  const target::CatalogModule& module_;
  const ProbeGlobs& globs_;
  std::vector<Probe>& found_;
  std::string_view provider_;
  pid_t pid_ = 0;
};

// An IFUNC's symbol is its resolver; what programs call is what that chose. `matched` are functions
// of the module that have their probes, by their own names or by another IFUNC.
Expected<void> match_ifunc(target::Catalog& catalog, target::FunctionMatch ifunc,
                           std::string_view name, ModuleMatcher& matcher,
                           std::set<size_t>& matched) {
  const auto targets = catalog.ifunc_targets(ifunc);
  if (!targets) return {};
  const target::ModuleImage* image = CLEW_TRY(catalog.image(ifunc.module));
  for (const target::FunctionMatch& each : targets->functions) {
    if (each.module != ifunc.module || !matched.insert(each.function).second) continue;
    CLEW_TRY(matcher.match_function(image->functions()[each.function], name));
  }
  return {};
}

// Code without a symbol has a made-up name, which has to be spelled out, but in a file that has no
// symbols at all: there "all functions" means these.
bool takes_made_up_names(const target::ModuleImage& image, const Glob& glob) {
  if (!glob.is_any()) return glob.is_literal();
  const auto functions = image.functions();
  return std::all_of(functions.begin(), functions.end(), [](const target::Function& one) {
    return one.origin == target::FunctionOrigin::UnwindEntry;
  });
}

Expected<void> match_module(target::Catalog& catalog, size_t index, const ProbeGlobs& globs,
                            ModuleMatcher& matcher) {
  const target::ModuleImage* image = CLEW_TRY(catalog.image(index));
  if (globs.function.literal() == "-") {
    const auto address = parse_hex(globs.name.literal());
    return address ? matcher.match_address(*address) : Expected<void>();
  }
  const bool takes_made_up = takes_made_up_names(*image, globs.function);
  const auto functions = image->functions();
  std::set<size_t> matched;
  std::vector<std::pair<size_t, std::string_view>> ifuncs;
  for (size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].origin == target::FunctionOrigin::UnwindEntry && !takes_made_up) continue;
    const auto name = matching_name(globs.function, functions[i]);
    if (!name) continue;
    if (functions[i].is_ifunc) {
      ifuncs.emplace_back(i, *name);
    } else {
      matched.insert(i);
      CLEW_TRY(matcher.match_function(functions[i], *name));
    }
  }
  for (const auto& [i, name] : ifuncs)
    CLEW_TRY(match_ifunc(catalog, {.module = index, .function = i}, name, matcher, matched));
  return {};
}

}  // namespace

std::string probe_module_name(const target::CatalogModule& module) {
  if (module.file.is_executable) return module.display_name;
  return std::string(file_name_of(module.file.path));
}

bool matches_file_name(const Glob& glob, std::string_view name) {
  if (glob.matches(name)) return true;
  for (size_t dot = name.find(".so"); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    if (glob.matches(name.substr(0, dot))) return true;
  }
  return false;
}

bool matches_module(const Glob& glob, const target::CatalogModule& module) {
  return matches_file_name(glob, file_name_of(module.file.path)) ||
         glob.matches(module.display_name) || (module.file.is_executable && glob.matches("a.out"));
}

Expected<void> match_functions(target::Catalog& catalog, const ProbeGlobs& globs,
                               std::string_view provider, std::vector<Probe>& found) {
  const auto modules = catalog.modules();
  for (size_t i = 0; i < modules.size(); ++i) {
    if (!modules[i].is_loaded || !matches_module(globs.module, modules[i])) continue;
    const auto image = catalog.image(i);
    if (!image && globs.module.is_literal()) return tl::unexpected(image.error());
    if (!image) continue;
    ModuleMatcher matcher(**image, modules[i], globs, found);
    matcher.set_process(provider, catalog.pid());
    CLEW_TRY(match_module(catalog, i, globs, matcher));
  }
  return {};
}

}  // namespace clew::kernel
