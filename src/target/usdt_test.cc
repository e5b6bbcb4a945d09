// SPDX-License-Identifier: Apache-2.0
#include "target/usdt.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "target/test_support.h"

namespace clew::target {
namespace {

// "provider name arguments address semaphore" of each note, as readelf prints them.
std::vector<std::string> notes_of_readelf(const std::string& path) {
  std::vector<std::string> result;
  std::string provider;
  std::string name;
  std::string place;
  const auto value = [](const std::string& line) {
    return line.substr(std::min(line.find(": ") + 2, line.size()));
  };
  for (const std::string& line : test::lines_of(test::run("readelf --wide -n " + path))) {
    if (line.find(" Provider: ") != std::string::npos) provider = value(line);
    if (line.find(" Name: ") != std::string::npos) name = value(line);
    if (line.find(" Location: ") != std::string::npos) place = value(line);
    if (line.find(" Arguments:") == std::string::npos) continue;
    const size_t colon = line.find("Arguments:") + 10;
    const std::string arguments = line.substr(std::min(colon + 1, line.size()));
    result.push_back(fmt::format("{} {} {} {}", provider, name, place, arguments));
  }
  return result;
}

constexpr const char* kPostgres = "/usr/lib/postgresql/15/bin/postgres";

class StaticProbes : public testing::TestWithParam<const char*> {};

TEST_P(StaticProbes, OfARealFileAreThoseThatReadelfShows) {
  const std::string path = GetParam();
  ASSERT_EQ(access(path.c_str(), R_OK), 0) << path << " is not installed";
  const auto probes = read_static_probes(path);
  ASSERT_TRUE(probes.has_value()) << probes.error().message;
  std::vector<std::string> ours;
  for (const StaticProbe& probe : *probes) {
    // None of these files was moved by prelink: the addresses are the note's own.
    ours.push_back(fmt::format("{} {} 0x{:016x} semaphore 0x{:016x}", probe.provider, probe.name,
                               probe.address, probe.semaphore_address));
  }
  std::vector<std::string> theirs = notes_of_readelf(path);
  for (size_t i = 0; i < theirs.size() && i < probes->size(); ++i) {
    const bool has_variables = theirs[i].find("(%rip)") != std::string::npos;
    EXPECT_TRUE(has_variables || theirs[i].ends_with(" " + (*probes)[i].arguments)) << theirs[i];
    const size_t semaphore = theirs[i].find("Semaphore: ") + 11;
    theirs[i] = fmt::format("{} semaphore {}", theirs[i].substr(0, theirs[i].find(", Base")),
                            theirs[i].substr(semaphore, 18));
  }
  EXPECT_EQ(ours, theirs);
}

TEST_P(StaticProbes, AreNopsInTheFile) {
  const std::string path = GetParam();
  ASSERT_EQ(access(path.c_str(), R_OK), 0) << path << " is not installed";
  const auto bytes = test::read_file(path);
  const auto probes = read_static_probes(path);
  ASSERT_TRUE(probes.has_value());
  for (const StaticProbe& probe : *probes) {
    ASSERT_LT(probe.file_offset, bytes.size());
    EXPECT_EQ(bytes[probe.file_offset], 0x90) << probe.name;
    EXPECT_LT(probe.semaphore_offset, bytes.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Installed, StaticProbes,
                         testing::Values("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", kPostgres,
                                         "/usr/bin/python3",
                                         "/usr/lib/x86_64-linux-gnu/libc.so.6"));

// "-4@44+CheckpointStats(%rip)" and kin.
TEST(StaticProbeArguments, OfVariablesAreAsFarAsTheirSymbols) {
  ASSERT_EQ(access(kPostgres, R_OK), 0) << "no PostgreSQL";
  const auto address_of = [](const std::string& name) {
    for (const std::string& line : test::lines_of(test::run(fmt::format("nm -D {}", kPostgres)))) {
      if (line.ends_with(" " + name)) return std::stoul(line, nullptr, 16);
    }
    return 0UL;
  };
  const uint64_t statistics = address_of("CheckpointStats");
  const uint64_t buffers = address_of("NBuffers");
  const auto probes = read_static_probes(kPostgres);
  ASSERT_TRUE(probes.has_value() && statistics != 0 && buffers != 0);
  const auto probe = std::find_if(probes->begin(), probes->end(),
                                  [](const auto& each) { return each.name == "checkpoint__done"; });
  ASSERT_NE(probe, probes->end());
  EXPECT_EQ(probe->arguments,
            fmt::format("-4@{}(%rip) -4@{}(%rip) -4@{}(%rip) -4@{}(%rip) "
                        "-4@{}(%rip)",
                        statistics + 40 - probe->address, buffers - probe->address,
                        statistics + 44 - probe->address, statistics + 48 - probe->address,
                        statistics + 52 - probe->address));
}

TEST(StaticProbeArguments, HaveSizeSignAndPlace) {
  const auto arguments = parse_static_arguments("8@%rdi -4@-20(%rbp) 1@$7 -2@%ax 8f@%xmm0");
  ASSERT_EQ(arguments.size(), 5U);
  EXPECT_EQ(arguments[0].size_bytes, 8);
  EXPECT_FALSE(arguments[0].is_signed);
  EXPECT_EQ(arguments[0].place, "%rdi");
  EXPECT_EQ(arguments[1].size_bytes, 4);
  EXPECT_TRUE(arguments[1].is_signed);
  EXPECT_EQ(arguments[1].place, "-20(%rbp)");
  EXPECT_EQ(arguments[2].place, "$7");
  EXPECT_TRUE(arguments[4].is_float);
}

TEST(StaticProbeArguments, OfAnUnknownFormStopTheList) {
  EXPECT_TRUE(parse_static_arguments("").empty());
  EXPECT_EQ(parse_static_arguments("8@%rdi 3@%rsi 8@%rdx").size(), 1U);
  EXPECT_EQ(parse_static_arguments("8@%rdi 8@").size(), 1U);
  EXPECT_EQ(parse_static_arguments("%rdi").size(), 1U);
}

TEST(StaticProbeFile, ThatIsNoElfFileIsAnError) {
  EXPECT_FALSE(read_static_probes("/etc/passwd").has_value());
  EXPECT_FALSE(read_static_probes("/no/such/file").has_value());
}

}  // namespace
}  // namespace clew::target
