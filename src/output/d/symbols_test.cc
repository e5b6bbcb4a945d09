// SPDX-License-Identifier: Apache-2.0
#include "output/d/symbols.h"

#include <gtest/gtest.h>

#include "output/d/text.h"

namespace clew::output::d {
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

std::string full(uint64_t address) {
  const KernelOnlySymbols symbols(KernelSymbols::parse(kKallsyms));
  return place_text(symbols.kernel(address), address, PlaceDetail::Offset);
}

TEST(DKernelSymbols, AreFoundByAddress) {
  EXPECT_EQ(full(0xffffffff81000000), "vmlinux`vfs_read");
  EXPECT_EQ(full(0xffffffff81000001), "vmlinux`vfs_read+0x1");
  EXPECT_EQ(full(0xffffffff810001ff), "vmlinux`vfs_read+0x1ff");
  EXPECT_EQ(full(0xffffffff81000210), "vmlinux`vfs_write+0x10");
  EXPECT_EQ(full(0xffffffff81000308), "vmlinux`some_data+0x8");
  EXPECT_EQ(full(0xffffffffc0000004), "ext4`ext4_sync+0x4");
  EXPECT_EQ(full(0xffffffffc1000000), "bpf`bpf_prog_1");
}

TEST(DKernelSymbols, AddressesOutsideAreNumbers) {
  EXPECT_EQ(full(0x1234), "0x1234");
  EXPECT_EQ(full(0), "0x0");
  EXPECT_EQ(full(0xffffffff90000000), "0xffffffff90000000");
  EXPECT_EQ(KernelSymbols::parse("").find(1), std::nullopt);
}

TEST(DKernelSymbols, HiddenAddressesAreNoSymbols) {
  const KernelSymbols symbols = KernelSymbols::parse("0000000000000000 T vfs_read\n");
  EXPECT_EQ(symbols.find(0x10), std::nullopt);
}

TEST(DKernelSymbols, KnowNothingOfProcesses) {
  EXPECT_EQ(KernelOnlySymbols(KernelSymbols::parse(kKallsyms)).user(1, 0x1000), std::nullopt);
}

TEST(DSymbolText, ShowsWhatIsKnown) {
  const SymbolPlace module_only = {"libc.so.6", "", 0};
  const SymbolPlace inside = {"libc.so.6", "read", 0x14};
  EXPECT_EQ(place_text(inside, 0x1014, PlaceDetail::Offset), "libc.so.6`read+0x14");
  EXPECT_EQ(place_text(inside, 0x1014, PlaceDetail::Symbol), "libc.so.6`read");
  EXPECT_EQ(place_text(inside, 0x1014, PlaceDetail::Module), "libc.so.6");
  EXPECT_EQ(place_text(module_only, 0x1014, PlaceDetail::Offset), "libc.so.6`0x1014");
  EXPECT_EQ(place_text(module_only, 0x1014, PlaceDetail::Symbol), "libc.so.6`0x1014");
  EXPECT_EQ(place_text(module_only, 0x1014, PlaceDetail::Module), "libc.so.6");
  EXPECT_EQ(place_text({}, 0x1014, PlaceDetail::Module), "0x1014");
}

TEST(DText, EscapesAsCDoes) {
  EXPECT_EQ(escaped(std::string_view("\0\t~\x7f", 4)), "\\0\\t~\\x7f");
}

TEST(DText, AnEmptyTableIsNothing) {
  std::string out;
  append_byte_table({}, out);
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace clew::output::d
