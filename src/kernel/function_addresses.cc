// SPDX-License-Identifier: Apache-2.0
// From /proc/kallsyms and tracefs's available_filter_functions.
#include "kernel/function_addresses.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fcntl.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "kernel/providers/tracefs.h"

namespace clew::kernel {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr std::string_view kCore = "vmlinux";

std::string read_symbols() {
  const FileDescriptor file(open("/proc/kallsyms", O_RDONLY | O_CLOEXEC));
  std::string text;
  while (file.valid()) {
    const size_t size = text.size();
    text.resize(size + kChunkBytes);
    const ssize_t got = ::read(file.get(), text.data() + size, kChunkBytes);
    text.resize(size + static_cast<size_t>(std::max<ssize_t>(0, got)));
    if (got <= 0) break;
  }
  return text;
}

template <typename Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    take(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

// A name and, behind it in brackets, its module: "vfs_read", "ext4_sync_fs [ext4]".
struct Name {
  std::string_view function;
  std::string_view module = kCore;
};

Name parse_name(std::string_view text) {
  Name name;
  name.function = text.substr(0, text.find_first_of(" \t"));
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  if (open != std::string_view::npos && close != std::string_view::npos && close > open) {
    name.module = text.substr(open + 1, close - open - 1);
  }
  return name;
}

std::string key_of(const Name& name) {
  return std::string(name.module) + ':' + std::string(name.function);
}

struct Symbol {
  uint64_t address = 0;
  Name name;
};

// "ffffffff81000000 T _text", with the module behind a tab. Nothing for what is no function.
std::optional<Symbol> parse_symbol(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space + 3 >= line.size()) return std::nullopt;
  const char kind = line[space + 1];
  if (std::string_view("tTwW").find(kind) == std::string_view::npos) return std::nullopt;
  Symbol symbol;
  (void)std::from_chars(line.data(), line.data() + space, symbol.address, 16);
  symbol.name = parse_name(line.substr(space + 3));
  return symbol;
}

struct Wanted {
  uint64_t cookie = 0;
  bool is_changed = false;  // The compiler's name of a function whose parameters it changed.
};

using WantedNames = std::unordered_map<std::string, Wanted>;

WantedNames wanted_names(std::span<const FunctionPlace> places) {
  constexpr std::string_view kChanged = ".isra.0";
  WantedNames wanted;
  for (const FunctionPlace& one : places) {
    wanted.emplace(key_of({one.name, one.module}), Wanted{one.cookie});
    wanted.emplace(key_of({one.name + std::string(kChanged), one.module}),
                   Wanted{one.cookie, true});
  }
  return wanted;
}

// Changed ones only of what has no function of its own name.
std::vector<FunctionAddress> choose(std::vector<FunctionAddress> own,
                                    std::span<const FunctionAddress> changed) {
  std::unordered_set<uint64_t> found;
  for (const FunctionAddress& one : own)
    found.insert(one.cookie);
  for (const FunctionAddress& one : changed)
    if (!found.contains(one.cookie)) own.push_back(one);
  std::sort(own.begin(), own.end(), [](const FunctionAddress& a, const FunctionAddress& b) {
    return a.address < b.address;
  });
  return own;
}

// Nothing when the kernel does not list them.
std::optional<std::unordered_set<std::string>> traceable(const WantedNames& wanted) {
  const Expected<Tracefs> tracefs = Tracefs::open();
  if (!tracefs) return std::nullopt;
  const Expected<std::string> text = tracefs->read("available_filter_functions");
  if (!text || text->empty()) return std::nullopt;
  std::unordered_set<std::string> names;
  for_each_line(*text, [&](std::string_view line) {
    std::string key = key_of(parse_name(line));
    if (wanted.contains(key)) names.insert(std::move(key));
  });
  return names;
}

}  // namespace

Expected<std::vector<FunctionAddress>> find_functions(std::span<const FunctionPlace> places) {
  const WantedNames wanted = wanted_names(places);
  const auto allowed = traceable(wanted);
  const std::string text = read_symbols();
  std::vector<FunctionAddress> own;
  std::vector<FunctionAddress> changed;
  bool is_hidden = true;
  for_each_line(text, [&](std::string_view line) {
    const std::optional<Symbol> symbol = parse_symbol(line);
    if (!symbol) return;
    is_hidden = is_hidden && symbol->address == 0;
    const std::string key = key_of(symbol->name);
    const auto place = wanted.find(key);
    if (place == wanted.end() || symbol->address == 0) return;
    if (allowed && !allowed->contains(key)) return;
    (place->second.is_changed ? changed : own).push_back({symbol->address, place->second.cookie});
  });
  if (is_hidden) {
    return fail(ErrorCode::Refused,
                "the kernel hides the addresses of its functions (/proc/kallsyms)");
  }
  return choose(std::move(own), changed);
}

}  // namespace clew::kernel
