// SPDX-License-Identifier: Apache-2.0
#include "plan/shown_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace clew::plan {
namespace {

constexpr uint32_t kNoCharacter = 0xFFFD;

bool is_surrogate(uint32_t character) {
  return character >= 0xD800 && character <= 0xDFFF;
}

void append_utf8(uint32_t character, std::string& text) {
  if (character > 0x10FFFF || is_surrogate(character)) character = kNoCharacter;
  const auto follow = [&](unsigned shift) {
    text += static_cast<char>(0x80 | ((character >> shift) & 0x3F));
  };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xC0 | (character >> 6));
    follow(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xE0 | (character >> 12));
    follow(6);
    follow(0);
  } else {
    text += static_cast<char>(0xF0 | (character >> 18));
    follow(12);
    follow(6);
    follow(0);
  }
}

uint32_t unit_at(std::string_view bytes, size_t at, uint32_t unit_bytes) {
  uint32_t unit = 0;
  if (at + unit_bytes <= bytes.size()) std::memcpy(&unit, bytes.data() + at, unit_bytes);
  return unit;
}

// The bytes as one of the system's structures, zeros where there are too few.
template <typename Structure>
Structure read_as(std::string_view bytes) {
  Structure result{};
  std::memcpy(&result, bytes.data(), std::min(bytes.size(), sizeof result));
  return result;
}

std::string internet6_text(const sockaddr_in6& address) {
  const std::string_view bytes(reinterpret_cast<const char*>(&address.sin6_addr), 16);
  const std::string scope =
      address.sin6_scope_id == 0 ? "" : fmt::format("%{}", address.sin6_scope_id);
  return fmt::format("[{}{}]:{}", address_text(bytes), scope, ntohs(address.sin6_port));
}

// Of the bytes of a sun_path: a path ends with a zero, a name that begins with one does not.
std::string unix_text(std::string_view name) {
  if (name.empty()) return "unix";
  if (name[0] == 0) return "@" + std::string(name.substr(1));
  return std::string(name.substr(0, name.find('\0')));
}

}  // namespace

std::string wide_text(std::string_view bytes, uint32_t unit_bytes) {
  std::string text;
  for (size_t at = 0; at + unit_bytes <= bytes.size(); at += unit_bytes) {
    uint32_t character = unit_at(bytes, at, unit_bytes);
    if (character == 0) break;
    const bool is_high = unit_bytes == 2 && character >= 0xD800 && character < 0xDC00;
    const uint32_t low = is_high ? unit_at(bytes, at + unit_bytes, unit_bytes) : 0;
    if (low >= 0xDC00 && low <= 0xDFFF) {
      character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
      at += unit_bytes;
    }
    append_utf8(character, text);
  }
  return text;
}

std::string hex_digits(std::string_view bytes) {
  std::string digits;
  digits.reserve(2 * bytes.size());
  for (const char byte : bytes)
    digits += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return digits;
}

std::string address_text(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = bytes.size() == 4 ? AF_INET : AF_INET6;
  if (bytes.size() != 4 && bytes.size() != 16) return hex_digits(bytes);
  return inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr ? "" : text.data();
}

std::string address_text(uint32_t loaded) {
  return address_text(std::string_view(reinterpret_cast<const char*>(&loaded), sizeof loaded));
}

std::string socket_address_text(std::string_view head, std::string_view path) {
  const auto family = read_as<sa_family_t>(head);
  if (head.size() < sizeof family) return "";
  switch (family) {
    case AF_UNSPEC:
      return "";
    case AF_UNIX:
      return path.empty() ? unix_text(head.substr(sizeof family)) : std::string(path);
    case AF_INET: {
      const auto address = read_as<sockaddr_in>(head);
      return fmt::format("{}:{}", address_text(uint32_t{address.sin_addr.s_addr}),
                         ntohs(address.sin_port));
    }
    case AF_INET6:
      return internet6_text(read_as<sockaddr_in6>(head));
    case AF_NETLINK:
      return fmt::format("netlink:{}", read_as<sockaddr_nl>(head).nl_pid);
    case AF_VSOCK: {
      const auto address = read_as<sockaddr_vm>(head);
      return fmt::format("vsock:{}:{}", address.svm_cid, address.svm_port);
    }
    default:
      return fmt::format("family {}", family);
  }
}

}  // namespace clew::plan
