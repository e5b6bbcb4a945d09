// SPDX-License-Identifier: Apache-2.0
#include "output/d/symbols.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace clew::output::d {
namespace {

// Symbols have no sizes in kallsyms. Further than this behind one, an address is no part of it.
constexpr uint64_t kSymbolBytesMax = 4U << 20;
constexpr std::string_view kSymbolTypes = "TtWwDdBbRrVv";
constexpr std::string_view kGlobalTypes = "TDBRWV";
constexpr std::string_view kKernel = "vmlinux";

std::string_view take_word(std::string_view& line) {
  const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

std::string_view without_brackets(std::string_view module) {
  if (module.size() < 2 || module.front() != '[') return kKernel;
  return module.substr(1, module.size() - 2);
}

}  // namespace

KernelSymbols KernelSymbols::parse(std::string_view kallsyms) {
  KernelSymbols result;
  while (!kallsyms.empty()) {
    const size_t end = std::min(kallsyms.find('\n'), kallsyms.size());
    result.add_line(kallsyms.substr(0, end));
    kallsyms.remove_prefix(std::min(end + 1, kallsyms.size()));
  }
  // Of several names for one address, a global one is shown, else the first.
  std::stable_sort(result.symbols_.begin(), result.symbols_.end(),
                   [](const Symbol& a, const Symbol& b) {
                     if (a.address != b.address) return a.address < b.address;
                     return a.is_global && !b.is_global;
                   });
  const auto same = [](const Symbol& a, const Symbol& b) { return a.address == b.address; };
  result.symbols_.erase(std::unique(result.symbols_.begin(), result.symbols_.end(), same),
                        result.symbols_.end());
  return result;
}

void KernelSymbols::add_line(std::string_view line) {
  const std::string_view digits = take_word(line);
  const std::string_view type = take_word(line);
  const std::string_view name = take_word(line);
  if (type.size() != 1 || kSymbolTypes.find(type[0]) == std::string_view::npos || name.empty()) {
    return;
  }
  uint64_t address = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, address, 16);
  if (error != std::errc() || stop != end || address == 0) return;
  symbols_.push_back({.address = address,
                      .is_global = kGlobalTypes.find(type[0]) != std::string_view::npos,
                      .name = std::string(name),
                      .module = module_index(without_brackets(take_word(line)))});
}

uint32_t KernelSymbols::module_index(std::string_view name) {
  // Lines of one module stand together, so the last one is nearly always right.
  const auto found = std::find(modules_.rbegin(), modules_.rend(), name);
  if (found != modules_.rend()) return static_cast<uint32_t>(modules_.rend() - found - 1);
  modules_.emplace_back(name);
  return static_cast<uint32_t>(modules_.size() - 1);
}

std::optional<SymbolPlace> KernelSymbols::find(uint64_t address) const {
  const auto after =
      std::upper_bound(symbols_.begin(), symbols_.end(), address,
                       [](uint64_t wanted, const Symbol& at) { return wanted < at.address; });
  if (after == symbols_.begin()) return {};
  const Symbol& symbol = *(after - 1);
  const uint64_t offset_bytes = address - symbol.address;
  if (offset_bytes >= kSymbolBytesMax) return {};
  return SymbolPlace{modules_[symbol.module], symbol.name, offset_bytes};
}

PlaceDetail detail_of(query::d::Action action) {
  using query::d::Action;
  if (action == Action::Mod || action == Action::Umod) return PlaceDetail::Module;
  if (action == Action::Sym || action == Action::Usym || action == Action::Ufunc) {
    return PlaceDetail::Symbol;
  }
  return PlaceDetail::Offset;
}

std::string place_text(const std::optional<SymbolPlace>& place, uint64_t address,
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
