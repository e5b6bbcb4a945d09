// SPDX-License-Identifier: Apache-2.0
#include "target/kernel_symbols.h"

#include <gtest/gtest.h>

namespace clew::target {
namespace {

TEST(KernelSymbolLine, OfTheKernelItselfHasNoModule) {
  const auto symbol = parse_kernel_symbol("ffffffff81000000 T _text", "", "_text");
  ASSERT_TRUE(symbol.has_value());
  EXPECT_EQ(symbol->address, 0xffffffff81000000U);
  EXPECT_EQ(symbol->module, "vmlinux");
  EXPECT_TRUE(parse_kernel_symbol("ffffffff81000000 T _text", "vmlinux", "_text").has_value());
  EXPECT_FALSE(parse_kernel_symbol("ffffffff81000000 T _text", "ext4", "_text").has_value());
}

TEST(KernelSymbolLine, OfAModuleNamesIt) {
  const char* line = "ffffffffc0000000 t ext4_sync_fs\t[ext4]";
  EXPECT_EQ(parse_kernel_symbol(line, "", "ext4_sync_fs")->module, "ext4");
  EXPECT_TRUE(parse_kernel_symbol(line, "ext4", "ext4_sync_fs").has_value());
  EXPECT_FALSE(parse_kernel_symbol(line, "vmlinux", "ext4_sync_fs").has_value());
  EXPECT_FALSE(parse_kernel_symbol(line, "", "ext4_sync").has_value());
}

TEST(KernelSymbolLine, ThatIsMalformedIsNoSymbol) {
  for (const char* line :
       {"", " ", "x", "ffff", "ffff T", "ffff T ", "zz T f", "ffff T f\t", "ffff T f\tx"}) {
    EXPECT_FALSE(parse_kernel_symbol(line, "", "f").has_value()) << line;
  }
}

TEST(KernelSymbol, IsFoundByNameInTheRunningKernel) {
  const auto symbol = find_kernel_symbol("", "vfs_read");
  if (!symbol && symbol.error().code != ErrorCode::NotFound) {
    GTEST_SKIP() << symbol.error().message;
  }
  ASSERT_TRUE(symbol.has_value());
  EXPECT_GT(symbol->address, uint64_t{1} << 63);
  EXPECT_EQ(find_kernel_symbol("", "no_such_symbol").error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace clew::target
