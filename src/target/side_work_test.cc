// SPDX-License-Identifier: Apache-2.0
#include "target/side_work.h"

#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "target/functions.h"
#include "target/no_threads_testing.h"

namespace clew::target {
namespace {

// As many mangled names as are demangled on several CPUs, and more.
bool makes_functions() {
  constexpr size_t kNames = 30'000;
  std::vector<std::string> names;
  for (size_t i = 0; i < kNames; ++i)
    names.push_back(fmt::format("_Z6f{:05}v", i));
  SymbolList list;
  for (size_t i = 0; i < kNames; ++i)
    list.symbols.push_back({.name = names[i], .address = 16 * i, .size_bytes = 16});
  ImageTables tables;
  SectionRecord code;
  code.size_bytes = 16 * kNames;
  code.executable = 1;
  tables.sections.push_back(code);
  make_functions(std::move(list), "m", tables);
  return tables.functions.size() == kNames;
}

TEST(SideWork, IsDoneOnAThreadOfItsOwn) {
  EXPECT_NE(start_beside([] { return std::this_thread::get_id(); }).get(),
            std::this_thread::get_id());
}

TEST(SideWork, IsDoneHereWhereThereIsNoThread) {
  EXPECT_EXIT(end_without_threads([] {
                return start_beside([] { return std::this_thread::get_id(); }).get() ==
                       std::this_thread::get_id();
              }),
              testing::ExitedWithCode(0), "");
}

TEST(SideWork, ManyNamesAreReadWithoutThreads) {
  EXPECT_EXIT(end_without_threads(makes_functions), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace clew::target
