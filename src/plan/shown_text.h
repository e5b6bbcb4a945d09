// SPDX-License-Identifier: Apache-2.0
// Bytes of a program's memory as people read them: text in wide characters, addresses, digits. A
// probe only copies the bytes; this is what the tracer makes of them. Bytes may be anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace clew::plan {

// UTF-16 (unit_bytes 2) or UTF-32 (4), little-endian, up to its first zero, as UTF-8. What is no
// character is U+FFFD.
std::string wide_text(std::string_view bytes, uint32_t unit_bytes);

// "1f8b08": two digits a byte.
std::string hex_digits(std::string_view bytes);

// An address of IP in network order: 4 bytes as 10.0.0.1, 16 as 2001:db8::1 (RFC 5952); of any
// other size the digits.
std::string address_text(std::string_view bytes);
// Of 4 bytes, as they were loaded.
std::string address_text(uint32_t loaded);

// What a struct sockaddr says, as people write it: "10.0.0.1:443", "[::1]:80", "[fe80::1%2]:80",
// the path of a Unix socket, an abstract name with @ in front ("unix" without either),
// "netlink:1234";
// "" for none. `head` begins with the family; `path` is the text behind it, where `head` has less.
std::string socket_address_text(std::string_view head, std::string_view path);

}  // namespace clew::plan
