// SPDX-License-Identifier: Apache-2.0
#include "target/kernel_symbols.h"

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

// The first line of `text`, which is cut off it; nothing when it is not whole.
std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

std::optional<KernelSymbol> parse_kernel_symbol(std::string_view line, std::string_view module,
                                                std::string_view name) {
  // The address, a space, the letter of the type, a space.
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.size() < space + 3) return std::nullopt;
  std::string_view symbol = line.substr(space + 3);
  std::string_view owner = "vmlinux";
  const size_t tab = symbol.find('\t');
  if (tab != std::string_view::npos) {
    owner = symbol.substr(tab + 1);
    symbol = symbol.substr(0, tab);
    if (owner.size() < 2 || owner.front() != '[') return std::nullopt;
    owner = owner.substr(1, owner.size() - 2);
  }
  if (symbol != name || (!module.empty() && module != owner)) return std::nullopt;
  KernelSymbol result{.module = std::string(owner)};
  const auto [end, error] = std::from_chars(line.data(), line.data() + space, result.address, 16);
  if (error != std::errc() || end != line.data() + space) return std::nullopt;
  return result;
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
      const auto symbol = parse_kernel_symbol(*line, module, name);
      if (!symbol) continue;
      if (symbol->address != 0) return *symbol;
      return fail(ErrorCode::Refused, "the addresses of kernel symbols are hidden from this user");
    }
    text.erase(0, text.size() - rest.size());
  }
}

}  // namespace clew::target
