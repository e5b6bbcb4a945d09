// SPDX-License-Identifier: Apache-2.0
// What people call strings, addresses, times, flags and records, in processes and in the kernel.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kValueRounds = 100;

// As the victim makes them.
std::string string_of(uint64_t round) {
  return std::string(round % 40, static_cast<char>('a' + round % 26));
}
std::string hex_of(const std::string& text) {
  std::string digits;
  for (const char byte : text)
    digits += fmt::format("{:02x}", byte);
  return digits;
}
std::string wide_of(uint64_t round) {
  return "w\u00e9\U0001F600" + std::to_string(round);
}

// The rows of a query about all rounds.
std::vector<json> rows_of(const std::string& query) {
  Victim victim("values");
  // As whoever calls wants: of some functions the first instruction is what a uprobe would replace.
  Tracer tracer = Tracer::attach(victim.pid(), query, {"--allow-late-uprobe-danger"});
  victim.run(kValueRounds);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_EQ(report.rows.size(), kValueRounds);
  return report.rows;
}

TEST(Values, StringsOfCxxAreRead) {
  const std::vector<json> rows = rows_of(
      R"(from e in entry("values!take_string") select str(e.text) as text, str(e.wide) as wide,
         cxxstr(e.arg0) as plain, e.text->_M_string_length as size)");
  for (uint64_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("text"), string_of(i));
    EXPECT_EQ(rows[i].at("plain"), string_of(i));
    EXPECT_EQ(rows[i].at("wide"), wide_of(i));
    EXPECT_EQ(rows[i].at("size"), string_of(i).size());
  }
}

TEST(Values, RecordsInRegistersHaveMembers) {
  const std::vector<json> views = rows_of(
      R"(from e in entry("values!take_view") select str(e.view) as a, e.view as b,
         str(e.arg1, e.arg0) as c, e.view._M_len as size, e.round)");
  for (uint64_t i = 0; i < views.size(); ++i) {
    const std::string wanted = string_of(i).substr(string_of(i).size() / 2);
    EXPECT_EQ(views[i].at("a"), wanted);
    EXPECT_EQ(views[i].at("b"), wanted);
    EXPECT_EQ(views[i].at("c"), wanted);
    EXPECT_EQ(views[i].at("size"), wanted.size());
    EXPECT_EQ(views[i].at("round"), i);
  }
  const std::vector<json> small =
      rows_of(R"(from e in entry("values!take_small") select e.small.first, e.small.second)");
  for (uint64_t i = 0; i < small.size(); ++i) {
    EXPECT_EQ(small[i].at("first"), i);
    EXPECT_EQ(small[i].at("second"), -static_cast<int64_t>(i));
  }
}

// The length goes from -2 to beyond the text.
TEST(Values, LengthsAreComputed) {
  const std::vector<json> rows = rows_of(
      R"(from e in entry("values!take_counted") select str(e.arg0, e.arg1) as text,
         str(e.arg0, e.arg1, 8) as short, hex(buf(e.arg0, e.arg1 - 10, 100)) as digits, e.arg1)");
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const int64_t length = static_cast<int64_t>(i % 45) - 2;
    const auto size = static_cast<size_t>(std::max<int64_t>(length, 0));
    EXPECT_EQ(rows[i].at("text"), string_of(i).substr(0, size)) << length;
    EXPECT_EQ(rows[i].at("short"), string_of(i).substr(0, std::min<size_t>(size, 7)));
    const auto digits = static_cast<size_t>(2 * std::max<int64_t>(length - 10, 0));
    const auto shown = rows[i].at("digits").get<std::string>();
    EXPECT_EQ(shown.size(), digits);
    EXPECT_TRUE(shown.starts_with(hex_of(string_of(i)).substr(0, digits))) << shown;
  }
}

TEST(Values, ShortTextsWithLengthsAreComparedAndGrouped) {
  Victim victim("values");
  Tracer tracer = Tracer::attach(
      victim.pid(), R"(from e in entry("values!take_counted") where str(e.arg0, e.arg1, 4) != ""
                       groupby str(e.arg0, e.arg1, 4) as text select text, count())");
  victim.run(kValueRounds);
  const Report report = tracer.finish();
  std::map<std::string, uint64_t> wanted;
  for (uint64_t i = 0; i < kValueRounds; ++i) {
    const int64_t length = std::max<int64_t>(static_cast<int64_t>(i % 45) - 2, 0);
    const std::string text =
        string_of(i).substr(0, std::min<size_t>(static_cast<size_t>(length), 3));
    if (!text.empty()) ++wanted[text];
  }
  std::map<std::string, uint64_t> counted;
  for (const json& row : report.rows)
    counted[row.at("text")] = row.at("count");
  EXPECT_EQ(counted, wanted) << report.error;
}

TEST(Values, WideTextsAndSdsAreRead) {
  const std::vector<json> wide = rows_of(
      R"(from e in entry("values!take_wide") select str32(e.arg0) as a, str(e.wide) as b,
         str16(e.arg1) as c, str(e.text, 3) as d, str16(e.arg1, 2) as e)");
  for (uint64_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(wide[i].at("a"), wide_of(i));
    EXPECT_EQ(wide[i].at("b"), wide_of(i));
    EXPECT_EQ(wide[i].at("c"), "u\u00e9\U0001F600" + std::string(i % 5, 'x'));
    EXPECT_EQ(wide[i].at("d"), "u\u00e9\uFFFD");  // Half of a pair.
    EXPECT_EQ(wide[i].at("e"), "u\u00e9");
  }
  const std::vector<json> sds =
      rows_of(R"(from e in entry("values!take_sds") select sds(e.arg0) as text)");
  for (uint64_t i = 0; i < sds.size(); ++i)
    EXPECT_EQ(sds[i].at("text"), string_of(i));
}

TEST(Values, RecordsArePrinted) {
  const std::vector<json> rows = rows_of(
      R"(from e in entry("values!take_order") select print(*e.order) as whole,
         print(e.order->counts) as counts)");
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    const json& order = rows[i].at("whole");
    EXPECT_EQ(order.at("id"), number);
    EXPECT_EQ(order.at("name"), "order \"7\"");
    EXPECT_EQ(order.at("state"), i % 2 == 0 ? "PAID" : "FAILED");
    EXPECT_EQ(order.at("paid"), number % 8);
    EXPECT_EQ(order.at("delta"), number % 16 - 8);
    EXPECT_EQ(order.at("price"), static_cast<double>(i) / 4);
    EXPECT_THAT(order.at("next").get<std::string>(), testing::StartsWith("0x"));
    EXPECT_EQ(order.at("counts"), json::array({number, 0, -number}));
    EXPECT_EQ(order.at("at").at("x"), -number);
    EXPECT_EQ(order.at("at").at("y"), 7);
    EXPECT_EQ(order.at("is_open"), 1);
    EXPECT_EQ(rows[i].at("counts"), order.at("counts"));
  }
}

TEST(Values, TimesFlagsAndFunctionsHaveNames) {
  const std::vector<json> times = rows_of(
      R"(from e in entry("values!take_time") select timespec(e.arg0) as a, *e.args.time as b)");
  for (uint64_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].at("a"), i * 1'000'000'000 + 500'000'000);
    EXPECT_EQ(times[i].at("b"), times[i].at("a"));
  }
  const std::vector<json> flags = rows_of(
      R"(from e in entry("values!take_flags") where (open_flags)e.arg0 & O_CREAT
         select (open_flags)e.arg0 as flags, (mmap_prot)e.arg1 as protection,
                (open_flags)e.arg0 == (O_RDWR | O_CREAT) as other)");
  EXPECT_EQ(flags.at(0).at("flags"), "O_WRONLY|O_CREAT|0x80000000");
  EXPECT_EQ(flags.at(0).at("protection"), "PROT_NONE");
  EXPECT_EQ(flags.at(0).at("other"), 0);
  const std::vector<json> functions =
      rows_of(R"(from e in entry("values!take_function") select (symbol)e.arg0 as f)");
  EXPECT_THAT(functions.at(0).at("f").get<std::string>(), HasSubstr("take_time"));
}

// Each of the five addresses of a round.
TEST(Values, AddressesOfSocketsAreShown) {
  Victim victim("values");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     R"(from e in entry("values!take_address") select sockaddr(e.arg0) as a,
         sockaddr(e.arg0, (uint32_t)e.arg1) as b)");
  victim.run(2);
  const Report report = tracer.finish();
  const std::vector<std::string> wanted = {"10.0.0.1:1000", "[::1]:80", "/run/shop.sock", "unix",
                                           ""};
  ASSERT_EQ(report.rows.size(), 2 * wanted.size()) << report.error;
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(report.rows[i].at("a"), wanted[i]);
    EXPECT_EQ(report.rows[i].at("b"), wanted[i] == "unix" ? "@shop" : wanted[i]);
  }
  EXPECT_EQ(report.rows[5].at("a"), "10.0.0.1:1001");
}

TEST(ValuesListed, HaveTheirNamesAndNumbers) {
  const Child::End all = clew({"list", "--values"});
  EXPECT_THAT(all.output, HasSubstr("sockaddr(p, length)"));
  EXPECT_THAT(all.output, HasSubstr("(open_flags)"));
  EXPECT_THAT(all.output, testing::Not(HasSubstr("O_CREAT")));
  const Child::End flags = clew({"list", "--values", "open_flags"});
  EXPECT_THAT(flags.output, HasSubstr("O_CREAT                0x40"));
  const Child::End line = clew({"list", "--values", "seek_*", "--json"});
  EXPECT_EQ(json::parse(line.output).at("names").at("SEEK_END"), 2);
  const Child::End none = clew({"list", "--values", "open_flagz"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.error, HasSubstr("did you mean 'open_flags'?"));
}

TEST(ValuesOfFiles, AreThoseOfTheSession) {
  const fs::path folder = fs::temp_directory_path() / ("clew-values-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string file = (folder / "events").string();
  const std::string query =
      R"(from e in entry("values!take_address")
         select sockaddr(e.arg0) as a, (open_flags)e.arg1 as f)";
  Victim victim("values");
  Tracer tracer = Tracer::attach(victim.pid(), query, {"--spill", file});
  victim.run(kValueRounds);
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 5 * kValueRounds) << report.error;
  const Report again = run_clew({"run", query, "--from", file, "--json"});
  ASSERT_EQ(again.status, 0) << again.error;
  EXPECT_EQ(again.rows, report.rows);
  const Report keys =
      run_clew({"run",
                R"(from e in entry("values!take_address") where sockaddr(e.arg0) like "[%"
          groupby sockaddr(e.arg0) as a select a, count())",
                "--from", file, "--json"});
  ASSERT_EQ(keys.rows.size(), 1U) << keys.error;
  EXPECT_EQ(keys.rows[0].at("a"), "[::1]:80");
  EXPECT_EQ(keys.rows[0].at("count"), kValueRounds);
  fs::remove_all(folder);
}

TEST(ValuesOfTheKernel, AreThoseOfTheProgram) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  Victim victim("values");
  Tracer addresses = Tracer::attach(
      victim.pid(),
      R"(from e in syscall("connect"), syscall("bind") select e.function, sockaddr(e.arg1) as to)");
  Tracer types = Tracer::attach(
      victim.pid(), R"(from e in syscall("socket") select (socket_family)e.arg0 as family,
                       (socket_type)e.arg1 as type)");
  const uint64_t port = victim.ask("connects 0").at("port");
  const Report connected = addresses.finish();
  ASSERT_EQ(connected.rows.size(), 2U) << connected.error << connected.summary;
  EXPECT_EQ(connected.rows[0].at("to"), "127.0.0.1:0");
  EXPECT_EQ(connected.rows[1].at("to"), "127.0.0.1:" + std::to_string(port));
  const Report made = types.finish();
  ASSERT_EQ(made.rows.size(), 2U) << made.error << made.summary;
  EXPECT_EQ(made.rows[0].at("family"), "AF_INET");
  EXPECT_EQ(made.rows[0].at("type"), "SOCK_STREAM");
  EXPECT_EQ(made.rows[1].at("type"), "SOCK_STREAM|SOCK_CLOEXEC");
}

TEST(ValuesOfTheKernel, AreGrouped) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  Victim victim("values");
  Tracer tracer = Tracer::attach(
      victim.pid(), R"(from e in syscall("connect") groupby sockaddr(e.arg1, e.arg2) as to
                       select to, count())");
  const uint64_t port = victim.ask("connects 0").at("port");
  victim.ask("connects 0");
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 2U) << report.error;
  const std::string wanted = "127.0.0.1:" + std::to_string(port);
  EXPECT_TRUE(report.rows[0].at("to") == wanted || report.rows[1].at("to") == wanted);
}

TEST(ValuesOfTheKernel, StructuresArePrintedByBtf) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  Victim victim("values");
  Tracer tracer = Tracer::attach(victim.pid(), R"(from e in tracepoint("rawtp:inet_sock_set_state")
                       where e.newstate == 2
                       let sock = e.sk->__sk_common
                       select print(sock) as sock, (socket_family)sock.skc_family as f)");
  victim.ask("connects 0");
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("sock").at("skc_family"), 2);
  EXPECT_EQ(report.rows[0].at("f"), "AF_INET");
}

}  // namespace
}  // namespace clew::live
