// SPDX-License-Identifier: Apache-2.0
#include "output/d/symbols.h"

#include <fmt/format.h>

namespace clew::output::d {

PlaceDetail detail_of(query::d::Action action) {
  using query::d::Action;
  if (action == Action::Mod || action == Action::Umod) return PlaceDetail::Module;
  if (action == Action::Sym || action == Action::Usym || action == Action::Ufunc) {
    return PlaceDetail::Symbol;
  }
  return PlaceDetail::Offset;
}

std::string place_text(const std::optional<target::SymbolPlace>& place, uint64_t address,
                       PlaceDetail detail) {
  if (!place) return fmt::format("{:#x}", address);
  if (detail == PlaceDetail::Module) return place->module;
  if (place->function.empty()) return fmt::format("{}`{:#x}", place->module, address);
  if (detail == PlaceDetail::Symbol || place->offset_bytes == 0) {
    return fmt::format("{}`{}", place->module, place->function);
  }
  return fmt::format("{}`{}+{:#x}", place->module, place->function, place->offset_bytes);
}

}  // namespace clew::output::d
