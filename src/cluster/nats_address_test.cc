// SPDX-License-Identifier: Apache-2.0
#include "cluster/nats_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::cluster {
namespace {

NatsAddress address_of(std::string_view text) {
  const auto address = parse_nats_address(text);
  EXPECT_TRUE(address) << address.error().message;
  return address.value_or(NatsAddress());
}

TEST(NatsAddress, HasHostsAndPorts) {
  const NatsAddress address = address_of("nats://a.example:5222");
  EXPECT_EQ(address.servers, (std::vector<std::string>{"nats://a.example:5222"}));
  EXPECT_FALSE(address.is_tls);
  EXPECT_EQ(address_of("nats://a/").servers[0], "nats://a:4222");
  EXPECT_EQ(address_of("nats://[::1]:1").servers[0], "nats://[::1]:1");
  EXPECT_EQ(address_of("nats://[::1]").hosts[0], "::1");
  const NatsAddress three = address_of("tls://a:1,tls://b,tls://c:3");
  EXPECT_TRUE(three.is_tls);
  EXPECT_EQ(three.hosts, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(three.shown(), "tls://a:1,tls://b:4222,tls://c:3");
}

TEST(NatsAddress, ShowsNoSecrets) {
  const NatsAddress address = address_of("tls://joe:se%40cret@a:1");
  EXPECT_EQ(address.user, "joe");
  EXPECT_EQ(address.password, "se@cret");
  EXPECT_EQ(address.shown(), "tls://a:1");
  EXPECT_EQ(address_of("nats://t0ken@a:1").token, "t0ken");
  for (const char* wrong : {"nats://joe:secret@", "http://joe:secret@a", "nats://joe:secret@a:0",
                            "nats://joe:secret%4@a", "nats://joe:sec@ret@a:x"}) {
    const auto refused = parse_nats_address(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().message.find("sec"), std::string::npos) << refused.error().message;
  }
}

TEST(NatsAddress, ThatIsNoneIsRefusedInOneLine) {
  for (const char* wrong :
       {"", "a", "a:4222", "http://a:4222", "nats://", "nats://:4222",
        "nats://a:", "nats://a:65536", "nats://a:1x", "nats://a b", "nats://[::1", "nats://[::1]x",
        "nats://a,b", "nats://a,tls://b", "nats://a\n"}) {
    const auto refused = parse_nats_address(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidQuery);
    EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  }
}

TEST(NatsAddress, ThatIsNoneSaysWhatIsWrongWithIt) {
  const auto error_of = [](std::string_view text) {
    const auto refused = parse_nats_address(text);
    return refused ? std::string() : refused.error().message;
  };
  EXPECT_EQ(error_of("http://a:4222"),
            "'http://a:4222' is no address of a cluster: it begins with http://; one is "
            "nats://host:4222 or tls://host:4222");
  EXPECT_THAT(error_of("a"), testing::HasSubstr("nats:// or tls:// is missing in front"));
  EXPECT_THAT(error_of("nats://a:x"), testing::HasSubstr("its port is no number from 1 to 65535"));
  EXPECT_THAT(error_of("nats://[::1"), testing::HasSubstr("it has no right host"));
}

TEST(NatsAddress, OfLoopbackIsToldFromNamesThatLookLikeIt) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"", "127.example.org", "localhost.example.org", "10.0.0.1", "::", "1"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace clew::cluster
