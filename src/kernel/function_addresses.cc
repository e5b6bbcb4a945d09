// SPDX-License-Identifier: Apache-2.0
// From /proc/kallsyms and tracefs's available_filter_functions.
#include "kernel/function_addresses.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "kernel/tracefs.h"
#include "target/kernel_symbols.h"

namespace clew::kernel {
namespace {

template <typename Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    take(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

// "[ext4]" in what follows a function's name.
std::string_view module_of(std::string_view text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']', open);
  const bool has_module = open != std::string_view::npos && close != std::string_view::npos;
  return has_module ? text.substr(open + 1, close - open - 1) : target::kKernelModule;
}

struct Wanted {
  std::string module;
  uint64_t cookie = 0;
  bool is_changed = false;  // The compiler's name of a function whose parameters it changed.
  bool is_traceable = true;
};

// By their names, which a view finds: the kernel has hundreds of thousands, of which few are
// wanted.
struct HashOfView {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using WantedFunctions = std::unordered_multimap<std::string, Wanted, HashOfView, std::equal_to<>>;

WantedFunctions wanted_functions(std::span<const FunctionPlace> places, bool is_traceable) {
  constexpr std::string_view kChanged = ".isra.0";
  WantedFunctions wanted;
  for (const FunctionPlace& one : places) {
    wanted.emplace(one.name, Wanted{one.module, one.cookie, false, is_traceable});
    wanted.emplace(one.name + std::string(kChanged),
                   Wanted{one.module, one.cookie, true, is_traceable});
  }
  return wanted;
}

// Null if it is not wanted.
Wanted* find(WantedFunctions& wanted, std::string_view function, std::string_view module) {
  auto [one, end] = wanted.equal_range(function);
  for (; one != end; ++one)
    if (one->second.module == module) return &one->second;
  return nullptr;
}

// What the kernel lists as such; all, when it does not list them.
WantedFunctions find_traceable(std::span<const FunctionPlace> places) {
  const Expected<Tracefs> tracefs = Tracefs::open();
  if (!tracefs) return wanted_functions(places, true);
  const Expected<std::string> text = tracefs->read("available_filter_functions");
  if (!text || text->empty()) return wanted_functions(places, true);
  WantedFunctions wanted = wanted_functions(places, false);
  for_each_line(*text, [&wanted](std::string_view line) {
    // "vfs_read", "ext4_sync_fs [ext4]"
    const std::string_view function = line.substr(0, line.find_first_of(" \t"));
    Wanted* const one = find(wanted, function, module_of(line.substr(function.size())));
    if (one != nullptr) one->is_traceable = true;
  });
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

}  // namespace

Expected<std::vector<FunctionAddress>> find_functions(std::span<const FunctionPlace> places) {
  WantedFunctions wanted = find_traceable(places);
  const std::string text = target::read_kernel_symbols();
  std::vector<FunctionAddress> own;
  std::vector<FunctionAddress> changed;
  bool is_hidden = true;
  target::for_each_kernel_symbol(text, [&](const target::KernelSymbolLine& symbol) {
    is_hidden = is_hidden && symbol.address == 0;
    if (std::string_view("tTwW").find(symbol.type) == std::string_view::npos) return;
    const Wanted* const one = find(wanted, symbol.name, symbol.module);
    if (one == nullptr || !one->is_traceable || symbol.address == 0) return;
    (one->is_changed ? changed : own).push_back({symbol.address, one->cookie});
  });
  if (is_hidden) {
    return fail(ErrorCode::Refused,
                "the kernel hides the addresses of its functions (/proc/kallsyms)");
  }
  return choose(std::move(own), changed);
}

}  // namespace clew::kernel
