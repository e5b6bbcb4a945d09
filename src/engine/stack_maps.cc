// SPDX-License-Identifier: Apache-2.0
#include "engine/stack_maps.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "target/elf_file.h"

namespace clew::engine {

namespace {

// They stay when symbols are stripped, as the runtime reads them. In a file that is loaded anywhere
// the first one is .data.rel.ro.gopclntab.
bool is_of_go(const target::ElfFile& file) {
  const auto sections = file.sections();
  return std::any_of(sections.begin(), sections.end(), [](const target::ElfSection& section) {
    return section.name.ends_with(".gopclntab") || section.name == ".note.go.buildid";
  });
}

// Programs export what libraries that they load need; these import it.
bool is_of_ocaml(const target::LinkedNames& names) {
  constexpr std::string_view kCollects = "caml_call_gc";
  const auto& all = names.exports;
  const auto exported = std::lower_bound(
      all.begin(), all.end(), kCollects,
      [](const target::ExportedFunction& one, std::string_view name) { return one.name < name; });
  if (exported != all.end() && exported->name == kCollects) return true;
  return std::any_of(names.imports.begin(), names.imports.end(),
                     [&](const target::ImportSlot& slot) { return slot.symbol == kCollects; });
}

tl::unexpected<Error> refused(const target::ProcessModule& module, std::string_view language,
                              std::string_view reason) {
  return fail(ErrorCode::Refused,
              fmt::format("{} is written in {}, whose runtime looks up return "
                          "addresses and would find none in copies [{}]",
                          module.path.substr(module.path.rfind('/') + 1), language, reason));
}

}  // namespace

Expected<void> check_stack_maps(const target::ProcessModule& module,
                                const target::LinkedNames& names) {
  if (is_of_ocaml(names)) return refused(module, "OCaml", "ocaml");
  if (is_of_go(CLEW_TRY(target::ElfFile::open(module.open_path)))) {
    return refused(module, "Go", "go");
  }
  return {};
}

}  // namespace clew::engine
