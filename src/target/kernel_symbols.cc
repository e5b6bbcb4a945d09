// SPDX-License-Identifier: Apache-2.0
#include "target/kernel_symbols.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"

namespace clew::target {

namespace {

constexpr const char* kPath = "/proc/kallsyms";
constexpr size_t kReadBytes = size_t{256} << 10;
// Symbols have no sizes in kallsyms. Further than this behind one, an address is no part of it.
constexpr uint64_t kSymbolBytesMax = 4U << 20;
constexpr std::string_view kSymbolTypes = "TtWwDdBbRrVv";
constexpr std::string_view kGlobalTypes = "TDBRWV";

// The first line of `text`, which is cut off it; nothing when it is not whole.
std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

std::optional<KernelSymbolLine> read_kernel_symbol(std::string_view line) {
  // The address, a space, the letter of the type, a space.
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.size() <= space + 3 || line[space + 2] != ' ') {
    return std::nullopt;
  }
  KernelSymbolLine symbol{
      .type = line[space + 1], .name = line.substr(space + 3), .module = kKernelModule};
  const auto [end, error] = std::from_chars(line.data(), line.data() + space, symbol.address, 16);
  if (error != std::errc() || end != line.data() + space) return std::nullopt;
  const size_t tab = symbol.name.find('\t');
  if (tab == std::string_view::npos) return symbol;
  const std::string_view module = symbol.name.substr(tab + 1);
  if (module.size() < 2 || module.front() != '[') return std::nullopt;
  symbol.module = module.substr(1, module.size() - 2);
  symbol.name = symbol.name.substr(0, tab);
  return symbol;
}

void for_each_kernel_symbol(std::string_view kallsyms,
                            const std::function<void(const KernelSymbolLine&)>& take) {
  while (!kallsyms.empty()) {
    const size_t end = std::min(kallsyms.find('\n'), kallsyms.size());
    if (const auto symbol = read_kernel_symbol(kallsyms.substr(0, end))) take(*symbol);
    kallsyms.remove_prefix(std::min(end + 1, kallsyms.size()));
  }
}

// The kernel gives a page at a time, whatever it is asked for.
std::string read_kernel_symbols() {
  const FileDescriptor file(open(kPath, O_RDONLY | O_CLOEXEC));
  std::string text;
  std::string buffer(kReadBytes, '\0');
  for (;;) {
    const ssize_t got = file.valid() ? read(file.get(), buffer.data(), buffer.size()) : 0;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

Expected<KernelSymbol> find_kernel_symbol(std::string_view module, std::string_view name) {
  const FileDescriptor file(open(kPath, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return fail(ErrorCode::Io, fmt::format("cannot read {}: {}", kPath, error_text(errno)));
  }
  std::string text;
  std::string buffer(kReadBytes, '\0');
  for (;;) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got < 0) {
      return fail(ErrorCode::Io, fmt::format("cannot read {}: {}", kPath, error_text(errno)));
    }
    if (got == 0) return fail(ErrorCode::NotFound, fmt::format("no kernel symbol '{}'", name));
    text.append(buffer.data(), static_cast<size_t>(got));
    std::string_view rest = text;
    while (const auto line = take_line(rest)) {
      const auto symbol = read_kernel_symbol(*line);
      if (!symbol || symbol->name != name) continue;
      if (!module.empty() && symbol->module != module) continue;
      if (symbol->address != 0) return KernelSymbol{symbol->address, std::string(symbol->module)};
      return fail(ErrorCode::Refused, "the addresses of kernel symbols are hidden from this user");
    }
    text.erase(0, text.size() - rest.size());
  }
}

KernelSymbols KernelSymbols::parse(std::string_view kallsyms) {
  KernelSymbols result;
  for_each_kernel_symbol(kallsyms, [&](const KernelSymbolLine& line) { result.add(line); });
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

void KernelSymbols::add(const KernelSymbolLine& line) {
  if (line.address == 0 || kSymbolTypes.find(line.type) == std::string_view::npos) return;
  symbols_.push_back({.address = line.address,
                      .is_global = kGlobalTypes.find(line.type) != std::string_view::npos,
                      .name = std::string(line.name),
                      .module = module_index(line.module)});
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

}  // namespace clew::target
