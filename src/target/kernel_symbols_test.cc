// SPDX-License-Identifier: Apache-2.0
#include "target/kernel_symbols.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace clew::target {
namespace {

constexpr std::string_view kKallsyms =
    "0000000000000000 A fixed_percpu_data\n"
    "ffffffff81000200 T vfs_write\n"
    "ffffffff81000000 t local_read\n"
    "ffffffff81000000 T vfs_read\n"
    "ffffffff81000300 d some_data\n"
    "not a line at all\n"
    "zzzz T bad\n"
    "ffffffffc0000000 t ext4_sync\t[ext4]\n"
    "ffffffffc1000000 t bpf_prog_1\t[bpf]";

// "module!function+offset", or "none".
std::string shown(uint64_t address) {
  const auto place = KernelSymbols::parse(kKallsyms).find(address);
  if (!place) return "none";
  return fmt::format("{}!{}+{}", place->module, place->function, place->offset_bytes);
}

TEST(KernelSymbols, AreFoundByAddress) {
  EXPECT_EQ(shown(0xffffffff81000000), "vmlinux!vfs_read+0");
  EXPECT_EQ(shown(0xffffffff81000001), "vmlinux!vfs_read+1");
  EXPECT_EQ(shown(0xffffffff810001ff), "vmlinux!vfs_read+511");
  EXPECT_EQ(shown(0xffffffff81000210), "vmlinux!vfs_write+16");
  EXPECT_EQ(shown(0xffffffff81000308), "vmlinux!some_data+8");
  EXPECT_EQ(shown(0xffffffffc0000004), "ext4!ext4_sync+4");
  EXPECT_EQ(shown(0xffffffffc1000000), "bpf!bpf_prog_1+0");
}

TEST(KernelSymbols, AddressesOutsideAreNone) {
  EXPECT_EQ(shown(0x1234), "none");
  EXPECT_EQ(shown(0), "none");
  EXPECT_EQ(shown(0xffffffff90000000), "none");
  EXPECT_EQ(KernelSymbols::parse("").find(1), std::nullopt);
}

TEST(KernelSymbols, HiddenAddressesAreLeftOut) {
  const KernelSymbols symbols = KernelSymbols::parse("0000000000000000 T vfs_read\n");
  EXPECT_EQ(symbols.find(0x10), std::nullopt);
}

TEST(KernelSymbolLine, OfTheKernelItselfHasNoModule) {
  const auto symbol = read_kernel_symbol("ffffffff81000000 T _text");
  ASSERT_TRUE(symbol.has_value());
  EXPECT_EQ(symbol->address, 0xffffffff81000000U);
  EXPECT_EQ(symbol->type, 'T');
  EXPECT_EQ(symbol->name, "_text");
  EXPECT_EQ(symbol->module, "vmlinux");
}

TEST(KernelSymbolLine, OfAModuleNamesIt) {
  const auto symbol = read_kernel_symbol("ffffffffc0000000 t ext4_sync_fs\t[ext4]");
  ASSERT_TRUE(symbol.has_value());
  EXPECT_EQ(symbol->name, "ext4_sync_fs");
  EXPECT_EQ(symbol->module, "ext4");
}

TEST(KernelSymbolLine, ThatIsMalformedIsNoSymbol) {
  for (const char* line : {"", " ", "x", "ffff", "ffff T", "ffff T ", "zz T f", "ffff T f\t",
                           "ffff T f\tx", "ffff TT f", "not a line at all"}) {
    EXPECT_FALSE(read_kernel_symbol(line).has_value()) << line;
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
