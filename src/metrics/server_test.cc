// SPDX-License-Identifier: Apache-2.0
#include "metrics/server.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::metrics {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_at(const std::string& address) {
  const auto server = Server::start(address);
  return server ? "none" : server.error().message;
}

TEST(MetricsServer, SaysWhereItIs) {
  const auto server = Server::start("127.0.0.1:0");
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_THAT((*server)->url(), StartsWith("http://127.0.0.1:"));
  EXPECT_THAT((*server)->url(), HasSubstr("/metrics"));
}

// Else any address can be had.
bool only_own_addresses() {
  char is_any = '0';
  std::ifstream("/proc/sys/net/ipv4/ip_nonlocal_bind") >> is_any;
  return is_any == '0';
}

TEST(MetricsServer, SaysThatAnAddressIsOfNoMachineHere) {
  if (!only_own_addresses()) GTEST_SKIP() << "ip_nonlocal_bind is set";
  // TEST-NET-1 of RFC 5737.
  EXPECT_EQ(error_at("192.0.2.1:9464"), "192.0.2.1 is no address of this machine");
}

TEST(MetricsServer, SaysWhyAnAddressIsNotIts) {
  const auto first = Server::start("127.0.0.1:0");
  ASSERT_TRUE(first) << first.error().message;
  const std::string url = (*first)->url();
  const size_t begin = url.find("127");
  const std::string taken = url.substr(begin, url.rfind('/') - begin);
  EXPECT_EQ(error_at(taken), "another program listens at " + taken + " already");
  // A name with an empty word, for which no name server is asked.
  EXPECT_EQ(error_at("no..host:9464"), "no machine is known as 'no..host'");
  EXPECT_THAT(error_at("9464"), HasSubstr("is no address; one is written HOST:PORT"));
}

}  // namespace
}  // namespace clew::metrics
