// SPDX-License-Identifier: Apache-2.0
#include "cluster/nats_greeting.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::cluster {
namespace {

NatsGreeting greeting_of(const std::string& line) {
  const auto greeting = parse_nats_greeting(line);
  EXPECT_TRUE(greeting) << line;
  return greeting.value_or(NatsGreeting());
}

// As nats-server 2.9.10 says it.
TEST(NatsGreeting, SaysWhatAServerWants) {
  const NatsGreeting greeting = greeting_of(
      R"(INFO {"server_id":"X","version":"2.9.10","headers":true,"jetstream":true,)"
      R"("auth_required":true,"tls_required":true,"tls_verify":true,"cluster":"clew"} )");
  EXPECT_EQ(greeting.version, "2.9.10");
  EXPECT_EQ(greeting.cluster, "clew");
  EXPECT_TRUE(greeting.wants_tls && greeting.wants_certificate && greeting.wants_credentials);
  EXPECT_TRUE(greeting.has_headers && greeting.has_jetstream);
  const NatsGreeting bare = greeting_of(R"(INFO {"version":7,"headers":"yes"})");
  EXPECT_EQ(bare.version, "");
  EXPECT_FALSE(bare.has_headers || bare.has_jetstream || bare.wants_tls);
}

TEST(NatsGreeting, OfWhatIsNoServerIsAnError) {
  for (const char* line : {"", "INFO", "INFO ", "INFO []", "INFO {", "SSH-2.0-OpenSSH_9.2",
                           "HTTP/1.1 400 Bad Request", "info {}", "INFO {\"version\":\"\xff\"}"})
    EXPECT_FALSE(parse_nats_greeting(line)) << line;
}

TEST(NatsGreeting, ShowsNothingThatATerminalDoes) {
  EXPECT_EQ(greeting_of("INFO {\"version\":\"\\u001b[31m2\"}").version, "?[31m2");
  EXPECT_EQ(greeting_of("INFO {\"version\":\"" + std::string(1000, '9') + "\"}").version.size(),
            64U);
}

TEST(NatsGreeting, TellsServersThatAreTooOld) {
  const auto error_of = [](const std::string& version, bool has_headers = true) {
    const auto checked =
        check_version({.version = version, .has_headers = has_headers}, "nats://a:1");
    return checked ? std::string() : checked.error().message;
  };
  for (const char* version : {"2.9.0", "2.9.10", "2.10.1", "2.11.0-beta", "3.0.0"})
    EXPECT_EQ(error_of(version), "") << version;
  EXPECT_EQ(error_of("2.8.4"),
            "nats://a:1 is too old: it is NATS 2.8.4, and 2.9 or newer is needed");
  for (const char* version : {"1.4.1", "0.9.9", "2.2.0", "2.0"})
    EXPECT_THAT(error_of(version), testing::HasSubstr("too old")) << version;
  // Of what says no version, by what it can.
  for (const char* version : {"", "dev", "2", "2.x"}) {
    EXPECT_EQ(error_of(version), "") << version;
    EXPECT_THAT(error_of(version, false), testing::HasSubstr("too old")) << version;
  }
}

}  // namespace
}  // namespace clew::cluster
