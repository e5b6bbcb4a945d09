// SPDX-License-Identifier: Apache-2.0
// Victim `values`: gives functions what people call strings, addresses, times and records.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "victim.h"

enum State { OPEN, PAID, FAILED = -1 };

struct Order {
  int id;
  char name[16];
  State state;
  unsigned paid : 3;
  int delta : 5;
  double price;
  Order* next;
  int counts[3];
  struct {
    short x;
    short y;
  } at;
  bool is_open;
};

struct Small {
  int first;
  short second;
};

// As sds.h lays them out: the length and the type are in front of the text.
struct __attribute__((packed)) Sds8 {
  uint8_t length;
  uint8_t allocated;
  uint8_t flags;
  char text[64];
};

// In front of each a barrier: a probe reads what the program has written.
#define TAKES(...) __asm__ volatile("nop" ::__VA_ARGS__ : "memory")

extern "C" {

VICTIM_COUNTER(take_string);
VICTIM_COUNTER(take_order);

VICTIM_FUNCTION void take_string(const std::string& text, const std::wstring& wide) {
  VICTIM_COUNT(take_string);
  TAKES("r"(&text), "r"(&wide));
}
VICTIM_FUNCTION void take_view(std::string_view view, uint64_t round) {
  TAKES("r"(view.data()), "r"(round));
}
VICTIM_FUNCTION void take_small(Small small) {
  TAKES("r"(small.first), "r"(small.second));
}
VICTIM_FUNCTION void take_counted(const char* text, int64_t length) {
  TAKES("r"(text), "r"(length));
}
VICTIM_FUNCTION void take_wide(const wchar_t* wide, const char16_t* text) {
  TAKES("r"(wide), "r"(text));
}
VICTIM_FUNCTION void take_sds(const char* text) {
  TAKES("r"(text));
}
VICTIM_FUNCTION void take_order(const Order* order) {
  VICTIM_COUNT(take_order);
  TAKES("r"(order));
}
VICTIM_FUNCTION void take_time(const timespec* time) {
  TAKES("r"(time));
}
VICTIM_FUNCTION void take_flags(int flags, int protection) {
  TAKES("r"(flags), "r"(protection));
}
VICTIM_FUNCTION void take_function(void (*function)(const timespec*)) {
  TAKES("r"(function));
}
VICTIM_FUNCTION void take_address(const sockaddr* address, socklen_t size) {
  TAKES("r"(address), "r"(size));
}

}  // extern "C"

static void give_strings(uint64_t round) {
  const std::string text(round % 40, static_cast<char>('a' + round % 26));
  const std::wstring wide = L"w\u00e9\U0001F600" + std::to_wstring(round);
  take_string(text, wide);
  take_view(std::string_view(text).substr(text.size() / 2), round);
  take_counted(text.c_str(), static_cast<int64_t>(round % 45) - 2);
  const std::u16string utf16 = u"u\u00e9\U0001F600" + std::u16string(round % 5, u'x');
  take_wide(wide.c_str(), utf16.c_str());
  Sds8 sds{};
  sds.length = static_cast<uint8_t>(text.size());
  sds.flags = 1;
  std::memcpy(sds.text, text.data(), text.size());
  std::memset(sds.text + text.size(), '!', sizeof sds.text - text.size());
  take_sds(sds.text);
}

static void give_records(uint64_t round) {
  const int number = static_cast<int>(round);
  Order next{};
  Order order{};
  order.id = number;
  std::memcpy(order.name, "order \"7\"", sizeof "order \"7\"");
  order.state = number % 2 == 0 ? PAID : FAILED;
  order.paid = static_cast<unsigned>(number) % 8;
  order.delta = number % 16 - 8;
  order.price = number / 4.0;
  order.next = &next;
  order.counts[0] = number;
  order.counts[2] = -number;
  order.at = {static_cast<short>(-number), 7};
  order.is_open = true;
  take_order(&order);
  take_small({number, static_cast<short>(-number)});
  const timespec time{.tv_sec = number, .tv_nsec = 500'000'000};
  take_time(&time);
  take_flags(O_WRONLY | O_CREAT | 0x80000000, 0);
  take_function(take_time);
}

static void give_addresses(uint64_t round) {
  sockaddr_in inet{};
  inet.sin_family = AF_INET;
  inet.sin_port = htons(static_cast<uint16_t>(1000 + round));
  inet.sin_addr.s_addr = htonl(0x0A000001);
  take_address(reinterpret_cast<const sockaddr*>(&inet), sizeof inet);
  sockaddr_in6 inet6{};
  inet6.sin6_family = AF_INET6;
  inet6.sin6_port = htons(80);
  inet6.sin6_addr = in6addr_loopback;
  take_address(reinterpret_cast<const sockaddr*>(&inet6), sizeof inet6);
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::strcpy(local.sun_path, "/run/shop.sock");
  take_address(reinterpret_cast<const sockaddr*>(&local), sizeof local);
  std::memcpy(local.sun_path, "\0shop", 5);
  take_address(reinterpret_cast<const sockaddr*>(&local), offsetof(sockaddr_un, sun_path) + 5);
  take_address(nullptr, 0);
}

// Connects to a port of its own, and says which: the kernel chose it.
static void connects(uint64_t) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  VICTIM_CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  VICTIM_CHECK(listen(listener, 1) == 0);
  VICTIM_CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  VICTIM_CHECK(connect(client, reinterpret_cast<sockaddr*>(&address), size) == 0);
  VICTIM_CHECK(send(client, "x", 1, MSG_NOSIGNAL) == 1);
  close(client);
  close(listener);
  victim_print("port", ntohs(address.sin_port));
}

extern "C" const VictimCommand victim_commands[] = {{"connects", connects}, {nullptr, nullptr}};

extern "C" uint64_t victim_run(uint64_t rounds) {
  for (uint64_t round = 0; round < rounds; ++round) {
    give_strings(round);
    give_records(round);
    give_addresses(round);
  }
  return rounds;
}
