// SPDX-License-Identifier: Apache-2.0
#include "plan/shown_text.h"

#include <cstddef>
#include <cstring>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace clew::plan {
namespace {

template <typename Structure>
std::string bytes_of(const Structure& structure, size_t size = sizeof(Structure)) {
  return {reinterpret_cast<const char*>(&structure), size};
}

std::string units_of(std::u16string_view text) {
  return {reinterpret_cast<const char*>(text.data()), 2 * text.size()};
}

TEST(ShownText, OfUtf16HasItsCharacters) {
  EXPECT_EQ(wide_text(units_of(u"a\u00e9\u20ac\U0001F600"), 2), "a\u00e9\u20ac\U0001F600");
  EXPECT_EQ(wide_text(units_of(std::u16string_view(u"ab\0cd", 5)), 2), "ab");
  EXPECT_EQ(wide_text(std::string("a\0b", 3), 2), "a");  // Half a character is none.
}

TEST(ShownText, OfHalvesOfPairsHasAMarkForEach) {
  const char16_t high = 0xD83D;
  const char16_t low = 0xDE00;
  EXPECT_EQ(wide_text(units_of(std::u16string{u'a', high}), 2), "a\uFFFD");
  EXPECT_EQ(wide_text(units_of(std::u16string{low, u'a'}), 2), "\uFFFDa");
  EXPECT_EQ(wide_text(units_of(std::u16string{high, high, low}), 2), "\uFFFD\U0001F600");
}

TEST(ShownText, OfUtf32EndsWithTheBytes) {
  const std::u32string text = U"x\u00df\U0001F600";
  EXPECT_EQ(wide_text({reinterpret_cast<const char*>(text.data()), 12}, 4), "x\u00df\U0001F600");
  const uint32_t beyond = 0x110000;
  EXPECT_EQ(wide_text(bytes_of(beyond), 4), "\uFFFD");
}

TEST(ShownText, OfAddressesIsThatOfRfc5952) {
  EXPECT_EQ(address_text(htonl(0xC0000201)), "192.0.2.1");
  in6_addr address{};
  address.s6_addr[0] = 0x20;
  address.s6_addr[1] = 0x01;
  address.s6_addr[15] = 1;
  EXPECT_EQ(address_text(bytes_of(address)), "2001::1");
  EXPECT_EQ(address_text("abc"), "616263");
}

TEST(ShownText, OfSocketAddressesIsByTheirFamily) {
  sockaddr_in inet{};
  inet.sin_family = AF_INET;
  inet.sin_port = htons(443);
  inet.sin_addr.s_addr = htonl(0x0A000001);
  EXPECT_EQ(socket_address_text(bytes_of(inet), ""), "10.0.0.1:443");
  EXPECT_EQ(socket_address_text(bytes_of(inet, 8), ""), "10.0.0.1:443");
  sockaddr_in6 inet6{};
  inet6.sin6_family = AF_INET6;
  inet6.sin6_port = htons(80);
  inet6.sin6_addr = in6addr_loopback;
  EXPECT_EQ(socket_address_text(bytes_of(inet6), ""), "[::1]:80");
  inet6.sin6_scope_id = 3;
  EXPECT_EQ(socket_address_text(bytes_of(inet6), ""), "[::1%3]:80");
  const sockaddr_nl netlink{.nl_family = AF_NETLINK, .nl_pad = 0, .nl_pid = 7, .nl_groups = 0};
  EXPECT_EQ(socket_address_text(bytes_of(netlink), ""), "netlink:7");
  EXPECT_EQ(socket_address_text(std::string("\x63\0", 2), ""), "family 99");
  EXPECT_EQ(socket_address_text("", ""), "");
  EXPECT_EQ(socket_address_text(std::string("\0\0", 2), ""), "");
}

TEST(ShownText, OfUnixSocketsIsAPathOrAName) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  const size_t head = offsetof(sockaddr_un, sun_path);
  EXPECT_EQ(socket_address_text(bytes_of(local, head), "/run/x"), "/run/x");
  EXPECT_EQ(socket_address_text(bytes_of(local, head), ""), "unix");
  std::strcpy(local.sun_path, "/run/y");
  EXPECT_EQ(socket_address_text(bytes_of(local), ""), "/run/y");
  std::memcpy(local.sun_path, "\0name", 5);
  EXPECT_EQ(socket_address_text(bytes_of(local, head + 5), ""), "@name");
}

TEST(ShownText, OfBytesIsTheirDigits) {
  EXPECT_EQ(hex_digits(std::string("\x00\x1f\xff", 3)), "001fff");
  EXPECT_EQ(hex_digits(""), "");
}

}  // namespace
}  // namespace clew::plan
