// SPDX-License-Identifier: Apache-2.0
// Strings, numbers and addresses as the kernel's accessors make them.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "kernel/session_testing.h"

namespace clew::kernel {
namespace {

using abi::MachineAccessor;
using abi::MachineBuiltin;
using isa::Register;

constexpr uint32_t kA = 0x6000;
constexpr uint32_t kB = 0x6100;
constexpr uint32_t kResult = 0x6200;
constexpr uint64_t kToTheEnd = uint64_t{1} << 62;
constexpr uint64_t kNowhere = uint64_t{1} << 63;
constexpr uint32_t kTextWords = 16;

// What one accessor says of two texts.
class StringTest : public SessionTest {
 protected:
  struct Result {
    uint64_t value = 0;
    std::string text;
    uint64_t fault = 0;
  };

  Result ask(MachineAccessor accessor, const std::vector<uint64_t>& arguments,
             const std::string& a = "", const std::string& b = "") {
    Clause c;
    put_text(c, kA, a);
    put_text(c, kB, b);
    put_text(c, kResult, "");
    c.call(accessor, arguments).record(0);
    c.call(MachineAccessor::PadString, {Clause::word_offset(1), kResult, 8 * kTextWords});
    c.commit(1 + kTextWords);
    records_.clear();
    run({c.finish()});
    if (records_.empty()) return {};
    if (records_[0].header.kind == abi::MachineRecordKind::Error)
      return {0, "", records_[0].word(0)};
    return {records_[0].word(0), records_[0].text(1), 0};
  }

  std::string text_of(MachineAccessor accessor, const std::vector<uint64_t>& arguments,
                      const std::string& a = "", const std::string& b = "") {
    return ask(accessor, arguments, a, b).text;
  }

  static void put_text(Clause& c, uint32_t offset, const std::string& text) {
    for (size_t i = 0; i <= text.size(); i += 8)
      c.text(offset + static_cast<uint32_t>(i), text.substr(i, 8));
  }
};

TEST_F(StringTest, LengthsAndComparisons) {
  EXPECT_EQ(ask(MachineAccessor::StringLength, {kA}, "hello, world").value, 12U);
  EXPECT_EQ(ask(MachineAccessor::StringLength, {kA}, "").value, 0U);
  EXPECT_EQ(ask(MachineAccessor::StringLength, {0}).fault, 1U);
  EXPECT_EQ(ask(MachineAccessor::StringCompare, {kA, kB}, "abc", "abc").value, 0U);
  EXPECT_EQ(ask(MachineAccessor::StringCompare, {kA, kB}, "abd", "abc").value, 1U);
  EXPECT_EQ(ask(MachineAccessor::StringCompare, {kA, kB}, "ab", "abc").value, ~uint64_t{0});
  EXPECT_EQ(ask(MachineAccessor::StringCompare, {0, kB}, "", "").value, ~uint64_t{0});
  EXPECT_EQ(ask(MachineAccessor::StringCompare, {0, 0}).value, 0U);
}

TEST_F(StringTest, Substrings) {
  const auto substr = [&](int64_t first, uint64_t count) {
    return text_of(MachineAccessor::Substring, {kResult, kA, static_cast<uint64_t>(first), count},
                   "foobarbaz");
  };
  EXPECT_EQ(substr(3, kToTheEnd), "barbaz");
  EXPECT_EQ(substr(300, kToTheEnd), "");
  EXPECT_EQ(substr(-3, kToTheEnd), "baz");
  EXPECT_EQ(substr(0, 3), "foo");
  EXPECT_EQ(substr(-30, kToTheEnd), "foobarbaz");
  EXPECT_EQ(substr(2, static_cast<uint64_t>(-3)), "obar");
  EXPECT_EQ(substr(2, static_cast<uint64_t>(-30)), "");
}

TEST_F(StringTest, JoinsAreCutAtTheStringsSize) {
  EXPECT_EQ(text_of(MachineAccessor::StringJoin, {kResult, kA, kB}, "foo", "bar"), "foobar");
  EXPECT_EQ(text_of(MachineAccessor::StringJoin, {kResult, kA, kB}, "", ""), "");
}

TEST_F(StringTest, Searches) {
  EXPECT_EQ(ask(MachineAccessor::FindString, {kA, kB, kNowhere}, "foobarbaz", "ba").value, 3U);
  EXPECT_EQ(ask(MachineAccessor::FindString, {kA, kB, 4}, "foobarbaz", "ba").value, 6U);
  EXPECT_EQ(ask(MachineAccessor::FindString, {kA, kB, kNowhere}, "foobarbaz", "no").value,
            ~uint64_t{0});
  EXPECT_EQ(ask(MachineAccessor::FindLastString, {kA, kB, kNowhere}, "foobarbaz", "ba").value, 6U);
  EXPECT_EQ(ask(MachineAccessor::FindLastString, {kA, kB, 5}, "foobarbaz", "ba").value, 3U);
  EXPECT_EQ(text_of(MachineAccessor::StringAt, {kResult, kA, 'o'}, "foobar"), "oobar");
  EXPECT_EQ(text_of(MachineAccessor::StringAtLast, {kResult, kA, 'o'}, "foobar"), "obar");
  EXPECT_EQ(ask(MachineAccessor::StringAt, {kResult, kA, 'z'}, "foobar").value, 0U);
  EXPECT_EQ(text_of(MachineAccessor::StringFrom, {kResult, kA, kB}, "foobar", "bar"), "bar");
  EXPECT_EQ(ask(MachineAccessor::StringFrom, {kResult, kA, kB}, "foobar", "baz").value, 0U);
}

TEST_F(StringTest, PathsOfFiles) {
  const auto base = [&](const std::string& a) {
    return text_of(MachineAccessor::BaseName, {kResult, kA}, a);
  };
  const auto dir = [&](const std::string& a) {
    return text_of(MachineAccessor::DirectoryName, {kResult, kA}, a);
  };
  const auto clean = [&](const std::string& a) {
    return text_of(MachineAccessor::CleanPath, {kResult, kA}, a);
  };
  EXPECT_EQ(base("/foo/bar/baz"), "baz");
  EXPECT_EQ(base("/foo/bar///"), "bar");
  EXPECT_EQ(base("/"), "/");
  EXPECT_EQ(base(""), ".");
  EXPECT_EQ(base("foo"), "foo");
  EXPECT_EQ(dir("/foo/bar/baz"), "/foo/bar");
  EXPECT_EQ(dir("/foo/bar///"), "/foo");
  EXPECT_EQ(dir("/foo"), "/");
  EXPECT_EQ(dir("foo"), ".");
  EXPECT_EQ(dir(""), ".");
  EXPECT_EQ(clean("/foo/./bar//baz/"), "/foo/bar/baz");
  EXPECT_EQ(clean("/foo/../bar"), "/bar");
  EXPECT_EQ(clean("/../.."), "/");
  EXPECT_EQ(clean("a/b/../../c"), "c");
  EXPECT_EQ(clean("../../a/../b"), "../../b");
}

TEST_F(StringTest, CasesAndTokens) {
  EXPECT_EQ(text_of(MachineAccessor::ToLower, {kResult, kA}, "FoO-Bar9"), "foo-bar9");
  EXPECT_EQ(text_of(MachineAccessor::ToUpper, {kResult, kA}, "FoO-Bar9"), "FOO-BAR9");
  EXPECT_EQ(text_of(MachineAccessor::Tokenize, {kResult, kA, kB}, ", foo, bar", ", "), "foo");
  EXPECT_EQ(ask(MachineAccessor::Tokenize, {kResult, kA, kB}, " , ", ", ").value, 0U);
  EXPECT_EQ(ask(MachineAccessor::Tokenize, {kResult, 0, kB}, "", ", ").fault, 1U);
}

TEST_F(StringTest, TokensGoOnWhereTheyEnded) {
  Clause c;
  put_text(c, kA, "a,bc,,d");
  put_text(c, kB, ",");
  for (uint32_t i = 0; i < 4; ++i) {
    c.call(MachineAccessor::Tokenize, {kResult, i == 0 ? kA : 0, kB}).record(2 * i);
    if (i < 3) c.call(MachineAccessor::PadString, {Clause::word_offset(2 * i + 1), kResult, 8});
  }
  c.commit(8);
  run({c.finish()});
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].text(1), "a");
  EXPECT_EQ(records_[0].text(3), "bc");
  EXPECT_EQ(records_[0].text(5), "d");
  EXPECT_EQ(records_[0].word(6), 0U);
}

TEST_F(StringTest, NumbersToTextAndBack) {
  const auto text = [&](uint64_t value, uint64_t base) {
    return text_of(MachineAccessor::NumberToString, {kResult, value, base});
  };
  EXPECT_EQ(text(0, 0), "0");
  EXPECT_EQ(text(1234567890123, 0), "1234567890123");
  EXPECT_EQ(text(static_cast<uint64_t>(-42), 0), "-42");
  EXPECT_EQ(text(uint64_t{1} << 63, 0), "-9223372036854775808");
  EXPECT_EQ(text(0xCAFE, 16), "0xcafe");
  EXPECT_EQ(text(8, 8), "010");
  const auto number = [&](const std::string& a, uint64_t base) {
    return static_cast<int64_t>(ask(MachineAccessor::StringToNumber, {kA, base}, a).value);
  };
  EXPECT_EQ(number("  -123abc", 10), -123);
  EXPECT_EQ(number("0x1F", 0), 31);
  EXPECT_EQ(number("017", 0), 15);
  EXPECT_EQ(number("ff", 16), 255);
  EXPECT_EQ(number("", 10), 0);
}

TEST_F(StringTest, ElementsOfJson) {
  const std::string text = R"({"a": {"b": [1, {"c" : "x,y"}, -2.5e3 ]}, "d":"q\"r", "e":true})";
  const auto json = [&](const std::string& key) {
    return text_of(MachineAccessor::Json, {kResult, kA, kB}, text, key);
  };
  EXPECT_EQ(json("a.b[0]"), "1");
  EXPECT_EQ(json("a.b[1].c"), "x,y");
  EXPECT_EQ(json("a.b[2]"), "-2.5e3");
  EXPECT_EQ(json("a.b[1]"), R"({"c" : "x,y"})");
  EXPECT_EQ(json("d"), R"(q\"r)");
  EXPECT_EQ(json("e"), "true");
  EXPECT_EQ(ask(MachineAccessor::Json, {kResult, kA, kB}, text, "a.b[3]").value, 0U);
  EXPECT_EQ(ask(MachineAccessor::Json, {kResult, kA, kB}, text, "a.x").value, 0U);
}

TEST_F(StringTest, NetworkAddresses) {
  const uint64_t address = abi::kMachineWindowTag | kA;
  EXPECT_EQ(text_of(MachineAccessor::InetNtoa, {kResult, address}, "\x7f\x01\x02\xff"),
            "127.1.2.255");
  const auto inet6 = [&](const char* text) {
    in6_addr bytes{};
    inet_pton(AF_INET6, text, &bytes);
    Clause c;
    for (uint32_t i = 0; i < 2; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.s6_addr + 8 * i, 8);
      c.put(kA + 8 * i, word);
    }
    c.call(MachineAccessor::InetNtop, {kResult, AF_INET6, address});
    c.call(MachineAccessor::PadString, {Clause::word_offset(0), kResult, 64}).commit(8);
    records_.clear();
    run({c.finish()});
    return records_.empty() ? "" : records_[0].text(0);
  };
  for (const char* text : {"::", "::1", "fe80::1:0:0:2", "1:2:3:4:5:6:7:8",
                           "2001:db8::", "::ffff:1.2.3.4", "::1.2.3.4", "1:0:2:0:3:0:4:0"}) {
    char expected[INET6_ADDRSTRLEN] = {};
    in6_addr bytes{};
    inet_pton(AF_INET6, text, &bytes);
    inet_ntop(AF_INET6, &bytes, expected, sizeof expected);
    EXPECT_EQ(inet6(text), expected);
  }
}

TEST_F(StringTest, BuiltInTexts) {
  const auto builtin = [&](MachineBuiltin which) {
    return text_of(MachineAccessor::BuiltinString, {static_cast<uint64_t>(which), kResult});
  };
  EXPECT_EQ(builtin(MachineBuiltin::Probeprov), "dtrace");
  EXPECT_EQ(builtin(MachineBuiltin::Probename), "BEGIN");
  EXPECT_EQ(builtin(MachineBuiltin::Probefunc), "");
  char name[64] = {};
  FILE* comm = fopen("/proc/self/comm", "re");
  ASSERT_NE(comm, nullptr);
  ASSERT_NE(fgets(name, sizeof name, comm), nullptr);
  (void)fclose(comm);
  EXPECT_EQ(builtin(MachineBuiltin::Execname) + "\n", name);
  char directory[4096] = {};
  ASSERT_NE(getcwd(directory, sizeof directory), nullptr);
  EXPECT_EQ(builtin(MachineBuiltin::Cwd), directory);
  EXPECT_EQ(builtin(MachineBuiltin::Root), "/");
  EXPECT_NE(builtin(MachineBuiltin::Execargs).find("test"), std::string::npos);
}

TEST_F(StringTest, BuiltInNumbers) {
  Clause c;
  c.builtin(MachineBuiltin::Ppid).record(0).builtin(MachineBuiltin::Uid).record(1);
  c.builtin(MachineBuiltin::Tid).record(2).builtin(MachineBuiltin::Walltimestamp).record(3);
  c.builtin(MachineBuiltin::Timestamp).record(4).builtin(MachineBuiltin::Vtimestamp).record(5);
  c.builtin(MachineBuiltin::Timestamp).record(6).builtin(MachineBuiltin::Stackdepth).record(7);
  c.commit(8);
  run({c.finish()});
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), static_cast<uint64_t>(getppid()));
  EXPECT_EQ(records_[0].word(1), getuid());
  EXPECT_EQ(records_[0].word(2), static_cast<uint64_t>(gettid()));
  const auto now = static_cast<uint64_t>(time(nullptr));
  EXPECT_NEAR(static_cast<double>(records_[0].word(3) / 1'000'000'000), static_cast<double>(now),
              2);
  EXPECT_EQ(records_[0].word(4), records_[0].word(6));
  EXPECT_EQ(records_[0].header.time_ns, records_[0].word(4));
  EXPECT_GT(records_[0].word(5), 0U);
}

}  // namespace
}  // namespace clew::kernel
