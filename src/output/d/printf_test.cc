// SPDX-License-Identifier: Apache-2.0
#include "output/d/printf.h"

#include <cstdlib>
#include <ctime>

#include <gtest/gtest.h>

#include "output/d/fake_host.h"
#include "query/d/parse_format.h"

namespace clew::output::d {
namespace {

using abi::AggregateFunction;
using query::d::Action;
using query::d::FieldKind;

// A value that owns its bytes.
struct Value {
  FieldKind kind = FieldKind::Integer;
  uint32_t size_bytes = 8;
  bool is_signed = true;
  std::vector<uint8_t> bytes;
  Action action = Action::None;
};

Value number(int64_t value, uint32_t size_bytes, bool is_signed) {
  return {FieldKind::Integer, size_bytes, is_signed, bytes_of({static_cast<uint64_t>(value)})};
}
Value i64(int64_t value) {
  return number(value, 8, true);
}
Value u64(uint64_t value) {
  return number(static_cast<int64_t>(value), 8, false);
}
Value i32(int64_t value) {
  return number(value, 4, true);
}
Value u32(int64_t value) {
  return number(value, 4, false);
}
Value i16(int64_t value) {
  return number(value, 2, true);
}
Value u16(int64_t value) {
  return number(value, 2, false);
}
Value i8(int64_t value) {
  return number(value, 1, true);
}
Value u8(int64_t value) {
  return number(value, 1, false);
}
Value string(std::string_view text) {
  return {FieldKind::String, 256, false, bytes_of(text, 256)};
}
Value real(double value) {
  Value result = u64(0);
  std::memcpy(result.bytes.data(), &value, sizeof value);
  return result;
}
Value real32(float value) {
  Value result = u32(0);
  std::memcpy(result.bytes.data(), &value, sizeof value);
  return result;
}
Value kernel(uint64_t address, Action action = Action::None) {
  return {FieldKind::KernelAddress, 8, false, bytes_of({address}), action};
}
Value user(uint64_t address, Action action = Action::None) {
  return {FieldKind::UserAddress, 16, false, bytes_of({7, address}), action};
}

query::d::Format parse(std::string_view text) {
  auto format = query::d::parse_format(text, 1, {});
  EXPECT_TRUE(format.has_value()) << text;
  return format ? *std::move(format) : query::d::Format{};
}

std::vector<Datum> data_of(const std::vector<Value>& values) {
  std::vector<Datum> data;
  for (const Value& value : values)
    data.push_back({value.kind, value.action, value.size_bytes, value.is_signed, value.bytes});
  return data;
}

std::string run(std::string_view format, const std::vector<Value>& values) {
  const FakeSymbols symbols;
  const std::vector<Datum> data = data_of(values);
  std::string out;
  append_formatted(parse(format), {.values = data, .aggregates = {}, .symbols = symbols}, out);
  return out;
}

struct Case {
  std::string_view format;
  std::vector<Value> values;
  std::string_view expected;
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& each : cases)
    EXPECT_EQ(run(each.format, each.values), each.expected) << '"' << each.format << '"';
}

TEST(DPrintf, TextWithoutConversionsIsCopied) {
  expect_all({
      {"", {}, ""},
      {"hello\n", {}, "hello\n"},
      {"100%%", {}, "100%"},
      {"%%d %%", {}, "%d %"},
      {"%d%%", {i32(50)}, "50%"},
  });
}

TEST(DPrintf, IntegersAdaptToTheSizeOfTheArgument) {
  expect_all({
      {"%d", {i64(INT64_MIN)}, "-9223372036854775808"},
      {"%d", {i32(-1)}, "-1"},
      {"%d", {i16(-2)}, "-2"},
      {"%d", {i8(-17)}, "-17"},
      {"%d", {i8(0x1ef)}, "-17"},
      {"%i", {i8(127)}, "127"},
      {"%u", {i8(-17)}, "239"},
      {"%x", {i8(-17)}, "ef"},
      {"%X", {i8(-17)}, "EF"},
      {"%o", {i8(-17)}, "357"},
      {"%u", {i16(-1)}, "65535"},
      {"%x", {i16(-1)}, "ffff"},
      {"%u", {i32(-1)}, "4294967295"},
      {"%x", {i32(-1)}, "ffffffff"},
      {"%x", {i64(-1)}, "ffffffffffffffff"},
      {"%o", {i64(-1)}, "1777777777777777777777"},
      {"%u", {u64(UINT64_MAX)}, "18446744073709551615"},
  });
}

TEST(DPrintf, DecimalOfAnUnsignedArgumentIsUnsigned) {
  expect_all({
      {"%d", {u8(0xff)}, "255"},
      {"%d", {u16(0xffff)}, "65535"},
      {"%i", {u32(0xffffffff)}, "4294967295"},
      {"%d", {u64(UINT64_MAX)}, "18446744073709551615"},
  });
}

TEST(DPrintf, LengthsAreOptionalAndChangeNothing) {
  expect_all({
      {"%ld", {i32(-5)}, "-5"},
      {"%lld", {i8(-5)}, "-5"},
      {"%hd", {i64(70000)}, "70000"},
      {"%hhx", {i32(0x1234)}, "1234"},
      {"%lx", {i32(-1)}, "ffffffff"},
      {"%llu", {u64(7)}, "7"},
  });
}

TEST(DPrintf, FlagsWidthsAndPrecisionsOfIntegersAreThoseOfC) {
  expect_all({
      {"%5d|", {i32(42)}, "   42|"},
      {"%-5d|", {i32(42)}, "42   |"},
      {"%05d|", {i32(42)}, "00042|"},
      {"%05d|", {i32(-42)}, "-0042|"},
      {"%+d", {i32(42)}, "+42"},
      {"% d", {i32(42)}, " 42"},
      {"%'d", {i32(1234567)}, "1234567"},
      {"%.3d", {i32(7)}, "007"},
      {"%6.3d|", {i32(7)}, "   007|"},
      {"%#x", {i32(255)}, "0xff"},
      {"%#X", {i32(255)}, "0XFF"},
      {"%#o", {i32(8)}, "010"},
      {"%#x", {i32(0)}, "0"},
      {"%#010x", {i32(255)}, "0x000000ff"},
      {"%08x", {u32(0xabc)}, "00000abc"},
      {"%.0d", {i32(0)}, "0"},
      {"%1d", {i32(12345)}, "12345"},
      {"%-08x|", {i32(255)}, "ff      |"},
  });
}

TEST(DPrintf, PointersAreHexadecimalWithoutPrefix) {
  expect_all({
      {"%p", {u64(0xffff888000000000)}, "ffff888000000000"},
      {"%p", {u64(0)}, "0"},
      {"%#p", {u64(0x10)}, "0x10"},
      {"%20p|", {u64(0x10)}, "                  10|"},
      {"%p", {kernel(0xffffffff81000010)}, "ffffffff81000010"},
  });
}

TEST(DPrintf, QuestionMarkIsTheWidthOfAPointer) {
  expect_all({
      {"%?d|", {i32(5)}, "               5|"},
      {"%-?d|", {i32(5)}, "5               |"},
      {"%?p|", {u64(0x10)}, "              10|"},
      {"%0?x|", {i32(255)}, "00000000000000ff|"},
      {"%?s|", {string("abc")}, "             abc|"},
  });
}

TEST(DPrintf, StringsArePaddedAndCut) {
  expect_all({
      {"%s", {string("hello")}, "hello"},
      {"%8s|", {string("hello")}, "   hello|"},
      {"%-8s|", {string("hello")}, "hello   |"},
      {"%.3s|", {string("hello")}, "hel|"},
      {"%8.3s|", {string("hello")}, "     hel|"},
      {"%-8.3s|", {string("hello")}, "hel     |"},
      {"%.0s|", {string("hello")}, "hello|"},
      {"%.s|", {string("hello")}, "hello|"},
      {"%2s|", {string("hello")}, "hello|"},
      {"%s|", {string("")}, "|"},
      {"%5s|", {string("")}, "     |"},
      {"%s=%s", {string("a"), string("b")}, "a=b"},
  });
}

TEST(DPrintf, WidthsOfStringsCountBytes) {
  expect_all({{"%4s|", {string("\xc3\xa4")}, "  \xc3\xa4|"}});
}

TEST(DPrintf, DynamicWidthsAndPrecisionsTakeArguments) {
  expect_all({
      {"%*d|", {i32(6), i32(42)}, "    42|"},
      {"%*d|", {i32(-6), i32(42)}, "42    |"},
      {"%-*d|", {i32(6), i32(42)}, "42    |"},
      {"%-*d|", {i32(-6), i32(42)}, "42    |"},
      {"%.*s|", {i32(2), string("hello")}, "he|"},
      {"%*.*s|", {i32(6), i32(2), string("hello")}, "    he|"},
      {"%.*s|", {i32(0), string("hello")}, "hello|"},
      {"%.*s|", {i32(-3), string("hello")}, "hello|"},
      {"%*s|", {i16(7), string("ab")}, "     ab|"},
      {"%0*d|", {i32(5), i32(-3)}, "-0003|"},
      {"%*d %*d", {i32(3), i32(1), i32(4), i32(2)}, "  1    2"},
  });
}

TEST(DPrintf, AWildDynamicWidthIsLimited) {
  EXPECT_EQ(run("%*d", {i32(INT32_MAX), i32(1)}).size(), 65536U);
  EXPECT_EQ(run("%*s", {i64(INT64_MIN), string("a")}).size(), 65536U);
}

TEST(DPrintf, CharactersArePrintedAsTheyAreOrEscaped) {
  expect_all({
      {"%c", {i8('x')}, "x"},
      {"%c", {i32('x')}, "x"},
      {"%c", {i64('x')}, "x"},
      {"%3c|", {i8('x')}, "  x|"},
      {"%-3c|", {i8('x')}, "x  |"},
      {"%c", {i8('\n')}, "\n"},
      {"%c", {i8(0)}, std::string_view("\0", 1)},
      {"%C", {i8('x')}, "x"},
      {"%C", {i8('\n')}, "\\n"},
      {"%C", {i8(0)}, "\\0"},
      {"%C", {i8(0x1b)}, "\\x1b"},
      {"%C", {i8(-1)}, "\\xff"},
      {"%5C|", {i8('\t')}, "   \\t|"},
      {"%S", {string("a\tb\n")}, "a\\tb\\n"},
      {"%S", {string("say \"hi\" \\")}, "say \\\"hi\\\" \\\\"},
      {"%S", {string("\a\b\f\r\v\x01")}, "\\a\\b\\f\\r\\v\\x01"},
      {"%S", {string("plain")}, "plain"},
      {"%8S|", {string("\n")}, "      \\n|"},
  });
}

TEST(DPrintf, WideCharactersAndStringsAreUtf8) {
  const Value text = {FieldKind::Bytes, 16, false, bytes_of({0x000020ac'00000041, 0x1f600})};
  expect_all({
      {"%wc", {i32(0x41)}, "A"},
      {"%wc", {i32(0xe4)}, "\xc3\xa4"},
      {"%wc", {i32(0x20ac)}, "\xe2\x82\xac"},
      {"%ws", {text}, "A\xe2\x82\xac\xf0\x9f\x98\x80"},
  });
}

TEST(DPrintf, FloatsHaveTheConversionsOfC) {
  expect_all({
      {"%f", {real(1.5)}, "1.500000"},
      {"%.2f", {real(3.14159)}, "3.14"},
      {"%e", {real(12345.678)}, "1.234568e+04"},
      {"%E", {real(12345.678)}, "1.234568E+04"},
      {"%g", {real(0.0001)}, "0.0001"},
      {"%G", {real(1e20)}, "1E+20"},
      {"%8.1f|", {real(2.25)}, "     2.2|"},
      {"%f", {real32(0.25F)}, "0.250000"},
  });
}

TEST(DPrintf, AddressesAreNamed) {
  expect_all({
      {"%a", {u64(0xffffffff81000012)}, "vmlinux`vfs_read+0x12"},
      {"%a", {u64(0xffffffff81000100)}, "vmlinux`vfs_write"},
      {"%a", {u64(0x1234)}, "0x1234"},
      {"%a", {kernel(0xffffffffc0000004)}, "ext4`ext4_sync+0x4"},
      {"%a", {kernel(0xffffffffc0000004, Action::Sym)}, "ext4`ext4_sync"},
      {"%a", {kernel(0xffffffffc0000004, Action::Mod)}, "ext4"},
      {"%30a|", {u64(0xffffffff81000012)}, "         vmlinux`vfs_read+0x12|"},
      {"%-24a|", {u64(0xffffffff81000012)}, "vmlinux`vfs_read+0x12   |"},
      {"%A", {user(0x1004)}, "libc.so.6`read+0x4"},
      {"%A", {user(0x1100)}, "libc.so.6`write"},
      {"%A", {user(0x2345)}, "a.out`0x2345"},
      {"%A", {user(0x10)}, "0x10"},
      {"%A", {user(0x1004, Action::Usym)}, "libc.so.6`read"},
      {"%A", {user(0x1004, Action::Umod)}, "libc.so.6"},
      {"%A", {user(0x1004, Action::Uaddr)}, "libc.so.6`read+0x4"},
      {"%A", {u64(0x1004)}, "libc.so.6`read+0x4"},  // Of the target.
      {"%A", {u64(0x10)}, "0x10"},
      {"%s", {user(0x1004, Action::Ufunc)}, "libc.so.6`read"},
  });
}

TEST(DPrintf, StacksAreNotIndentedUnlessTheWidthIsLeftAligned) {
  const Value stack = {FieldKind::KernelStack, 32, false,
                       bytes_of({0xffffffff81000008, 0xffffffff81000101, 0, 5})};
  const Value user_stack = {FieldKind::UserStack, 32, false, bytes_of({7, 0x1001, 0x1102, 0})};
  expect_all({
      {"%k", {stack}, "\nvmlinux`vfs_read+0x8\nvmlinux`vfs_write+0x1\n"},
      {"%-4k", {stack}, "\n    vmlinux`vfs_read+0x8\n    vmlinux`vfs_write+0x1\n"},
      {"%22k", {stack}, "\n  vmlinux`vfs_read+0x8\n vmlinux`vfs_write+0x1\n"},
      {"<%k>", {user_stack}, "<\nlibc.so.6`read+0x1\nlibc.so.6`write+0x2\n>"},
  });
}

// The first frame may stand at a function's first byte; behind a call that does not return stands
// whatever comes next.
TEST(DPrintf, ACallerIsTheFunctionWithTheCall) {
  const Value stack = {FieldKind::KernelStack, 16, false,
                       bytes_of({0xffffffff81000100, 0xffffffff81000100})};
  const Value user_stack = {FieldKind::UserStack, 24, false, bytes_of({7, 0x1100, 0x1100})};
  expect_all({
      {"%k", {stack}, "\nvmlinux`vfs_write\nvmlinux`vfs_read+0x100\n"},
      {"%k", {user_stack}, "\nlibc.so.6`write\nlibc.so.6`read+0x100\n"},
  });
}

class DPrintfTime : public testing::Test {
 protected:
  void SetUp() override { set_zone("PST8PDT"); }
  void TearDown() override { set_zone("UTC"); }
  static void set_zone(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }
};

TEST_F(DPrintfTime, IsInTheLocalZone) {
  constexpr int64_t kSecond = 1'000'000'000;
  expect_all({
      {"%Y", {u64(0)}, "1969 Dec 31 16:00:00"},
      {"%Y", {i64(1'700'000'000 * kSecond + 999'999'999)}, "2023 Nov 14 14:13:20"},
      {"%Y", {i64(1'698'900'000 * kSecond)}, "2023 Nov  1 21:40:00"},
      {"%25Y|", {u64(0)}, "     1969 Dec 31 16:00:00|"},
      {"%-22Y|", {u64(0)}, "1969 Dec 31 16:00:00  |"},
      {"%T", {u64(0)}, "Wed, 31 Dec 1970 16:00:00 PST"},
      {"%T", {i64(1'700'000'000 * kSecond)}, "Tue, 14 Nov 2023 14:13:20 PST"},
      {"%T", {i64(1'688'000'000 * kSecond)}, "Wed, 28 Jun 2023 17:53:20 PDT"},
  });
}

TEST(DPrintf, ConversionsWithoutAValuePrintNothing) {
  expect_all({{"a%db%sc", {i32(1)}, "a1bc"}, {"%*d|", {}, "|"}});
}

// --- %@ ------------------------------------------------------------------------------------------

struct AggregateCase {
  std::string_view format;
  AggregateFunction kind;
  std::vector<uint64_t> cells;
  int64_t divisor;
  std::string_view expected;
};

TEST(DPrinta, AtSignStandsForTheValue) {
  const AggregateCase cases[] = {
      {"%@d", AggregateFunction::Count, {12}, 1, "12"},
      {"%@u", AggregateFunction::Count, {12}, 1, "12"},
      {"%@x", AggregateFunction::Count, {255}, 1, "ff"},
      {"%#@x", AggregateFunction::Count, {255}, 1, "0xff"},
      {"%8@d|", AggregateFunction::Count, {12}, 1, "      12|"},
      {"%-8@d|", AggregateFunction::Count, {12}, 1, "12      |"},
      {"%@8d|", AggregateFunction::Count, {12}, 1, "      12|"},
      {"%08@d|", AggregateFunction::Count, {12}, 1, "00000012|"},
      {"%@d %@d", AggregateFunction::Count, {12}, 1, "12 12"},
      {"%@d", AggregateFunction::Sum, {static_cast<uint64_t>(-7)}, 1, "-7"},
      {"%@d", AggregateFunction::Sum, {static_cast<uint64_t>(-7)}, 2, "-3"},
      {"%@d",
       AggregateFunction::Min,
       {static_cast<uint64_t>(INT64_MIN)},
       1,
       "-9223372036854775808"},
      {"%@d", AggregateFunction::Average, {4, 10}, 1, "2"},
      {"%@d", AggregateFunction::Average, {4, static_cast<uint64_t>(-10)}, 1, "-2"},
      {"%@d", AggregateFunction::Average, {0, 0}, 1, "0"},
      {"%@d", AggregateFunction::Average, {4, 1000}, 10, "25"},
      {"%@d", AggregateFunction::StandardDeviation, {4, 20, 120, 0}, 1, "2"},
      {"%@d", AggregateFunction::StandardDeviation, {2, 0, 0, 2}, 1, "4294967296"},
      {"%@d", AggregateFunction::StandardDeviation, {4, 2000, 1200000, 0}, 100, "2"},
      {"%@d", AggregateFunction::StandardDeviation, {0, 0, 0, 0}, 1, "0"},
  };
  const FakeSymbols symbols;
  for (const AggregateCase& each : cases) {
    const aggregate::DValue value = {each.kind, each.cells, {}, each.divisor};
    std::string out;
    append_formatted(parse(each.format),
                     {.values = {}, .aggregates = std::span(&value, 1), .symbols = symbols}, out);
    EXPECT_EQ(out, each.expected) << each.format;
  }
}

TEST(DPrinta, SeveralAggregationsAreTakenInTurnAndTheLastStays) {
  const FakeSymbols symbols;
  const uint64_t one[] = {1};
  const uint64_t two[] = {2};
  const aggregate::DValue values[] = {{AggregateFunction::Count, one, {}},
                                      {AggregateFunction::Sum, two, {}}};
  std::string out;
  append_formatted(parse("%@d %@d %@d"), {.values = {}, .aggregates = values, .symbols = symbols},
                   out);
  EXPECT_EQ(out, "1 2 2");
}

TEST(DPrinta, ATableIgnoresWidths) {
  const FakeSymbols symbols;
  std::vector<uint64_t> cells(127);
  cells[64] = 3;
  const aggregate::DValue value = {AggregateFunction::Quantize, cells, {}};
  std::string out;
  append_formatted(parse("<%5@d>"),
                   {.values = {}, .aggregates = std::span(&value, 1), .symbols = symbols}, out);
  EXPECT_EQ(out,
            "<\n"
            "           value  ------------- Distribution ------------- count    \n"
            "               0 |                                         0        \n"
            "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 3        \n"
            "               2 |                                         0        \n"
            ">");
}

}  // namespace
}  // namespace clew::output::d
