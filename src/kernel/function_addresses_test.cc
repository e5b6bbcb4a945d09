// SPDX-License-Identifier: Apache-2.0
#include "kernel/function_addresses.h"

#include <cstdint>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace clew::kernel {
namespace {

constexpr std::string_view kChanged = ".isra.0";

struct SymbolsOfKernel {
  std::set<std::string> names;      // Of functions of the kernel itself.
  std::set<std::string> changed;    // Own names of those that have an ending, each once.
  std::set<std::string> ambiguous;  // Of several.
};

SymbolsOfKernel read_symbols() {
  SymbolsOfKernel symbols;
  std::ifstream file("/proc/kallsyms");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string address;
    std::string kind;
    std::string name;
    words >> address >> kind >> name;
    const bool is_function = kind == "t" || kind == "T";
    if (!is_function || line.find('[') != std::string::npos) continue;
    symbols.names.insert(name);
    if (!name.ends_with(kChanged)) continue;
    const std::string own = name.substr(0, name.size() - kChanged.size());
    if (!symbols.changed.insert(own).second) symbols.ambiguous.insert(own);
  }
  return symbols;
}

// One that has no function of its own name beside it; empty when the kernel has none.
std::string changed_function() {
  const SymbolsOfKernel symbols = read_symbols();
  for (const std::string& own : symbols.changed) {
    if (own.starts_with("__pfx_") || symbols.ambiguous.contains(own)) continue;
    if (!symbols.names.contains(own)) return own;
  }
  return "";
}

std::vector<FunctionAddress> found(const std::string& name) {
  const FunctionPlace place = {"vmlinux", name, 7};
  const auto functions = find_functions(std::span(&place, 1));
  EXPECT_TRUE(functions) << (functions ? "" : functions.error().message);
  return functions.value_or(std::vector<FunctionAddress>());
}

TEST(FunctionAddresses, AFunctionThatTheCompilerChangedIsFoundByItsOwnName) {
  const std::string own = changed_function();
  if (own.empty() || geteuid() != 0) GTEST_SKIP() << "the kernel shows no such function";
  const std::vector<FunctionAddress> by_own = found(own);
  const std::vector<FunctionAddress> by_full = found(own + std::string(kChanged));
  ASSERT_EQ(by_full.size(), by_own.size()) << own;
  if (by_own.empty()) GTEST_SKIP() << own << " may not be probed";
  EXPECT_EQ(by_own.front().address, by_full.front().address);
  EXPECT_EQ(by_own.front().cookie, 7U);
}

TEST(FunctionAddresses, AFunctionOfItsOwnNameIsAllThatTheNameMeans) {
  if (geteuid() != 0) GTEST_SKIP() << "only root is told addresses";
  EXPECT_EQ(found("vfs_read").size(), 1U);
  EXPECT_TRUE(found("clew_has_no_such_function").empty());
}

}  // namespace
}  // namespace clew::kernel
