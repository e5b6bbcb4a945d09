// SPDX-License-Identifier: Apache-2.0
#include "engine/record/streams.h"

#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"

namespace clew::engine {

namespace {

namespace fs = std::filesystem;

// IPv4's own form also where IPv6 carries it, as the other end may have the other one.
std::string text_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    sockaddr_in own{};
    std::memcpy(&own, &address, sizeof(own));
    inet_ntop(AF_INET, &own.sin_addr, text, sizeof(text));
    return fmt::format("{}:{}", text, ntohs(own.sin_port));
  }
  sockaddr_in6 own{};
  std::memcpy(&own, &address, sizeof(own));
  const uint16_t port = ntohs(own.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&own.sin6_addr)) {
    inet_ntop(AF_INET, own.sin6_addr.s6_addr + 12, text, sizeof(text));
    return fmt::format("{}:{}", text, port);
  }
  inet_ntop(AF_INET6, &own.sin6_addr, text, sizeof(text));
  return fmt::format("[{}]:{}", text, port);
}

using NameOf = int (*)(int, sockaddr*, socklen_t*);

std::string address_of(int socket, NameOf name_of) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (name_of(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address.ss_family == AF_INET || address.ss_family == AF_INET6 ? text_of(address)
                                                                       : std::string();
}

// The end of the other direction counts as a byte that has arrived (Linux, tcp_fin()).
bool has_ended(uint8_t state) {
  constexpr uint8_t kCloseWait = 8;  // Linux, net/tcp_states.h.
  constexpr uint8_t kLastAck = 9;
  constexpr uint8_t kClosing = 11;
  return state == kCloseWait || state == kLastAck || state == kClosing;
}

// It has closed its own direction, which the other end does not know yet.
bool is_ending(uint8_t state) {
  constexpr uint8_t kFinWait1 = 4;
  constexpr uint8_t kLastAck = 9;
  constexpr uint8_t kClosing = 11;
  return state == kFinWait1 || state == kLastAck || state == kClosing;
}

// A protocol in the kernel, such as TLS, has other bytes than its process.
bool has_upper_protocol(int socket) {
  char name[16] = {};
  socklen_t size = sizeof(name);
  return getsockopt(socket, IPPROTO_TCP, TCP_ULP, name, &size) == 0 && size != 0;
}

std::optional<tcp_info> info_of(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  constexpr socklen_t kNeeded = offsetof(tcp_info, tcpi_bytes_retrans) + sizeof(uint64_t);
  const bool is_read = getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  return is_read && size >= kNeeded ? std::optional(info) : std::nullopt;
}

// Of several paths (MPTCP) the kernel would tell the first one's bytes.
bool is_plain(int socket) {
  int protocol = 0;
  socklen_t size = sizeof(protocol);
  return getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
         protocol == IPPROTO_TCP && !has_upper_protocol(socket);
}

// The other end does not stand still: nothing may arrive between the two looks.
bool read_totals(int socket, recorder::SnapStream& stream) {
  constexpr unsigned kLooksMax = 4;
  for (unsigned look = 0; look < kLooksMax; ++look) {
    int waiting = 0;
    const auto info = info_of(socket);
    if (!info || ioctl(socket, SIOCINQ, &waiting) != 0) return false;
    const auto again = info_of(socket);
    if (!again || again->tcpi_bytes_received != info->tcpi_bytes_received ||
        again->tcpi_state != info->tcpi_state) {
      continue;
    }
    const uint64_t kept = static_cast<uint64_t>(waiting) + (has_ended(info->tcpi_state) ? 1 : 0);
    if (kept > info->tcpi_bytes_received) return false;
    stream.received = info->tcpi_bytes_received - kept;
    stream.sent = info->tcpi_bytes_sent - info->tcpi_bytes_retrans + info->tcpi_notsent_bytes;
    // An own end that waits behind the bytes would count as one.
    return info->tcpi_notsent_bytes == 0 || !is_ending(info->tcpi_state);
  }
  return false;
}

// What the process has given the kernel is sent, or waits to be: what is sent again counts once.
// What has arrived is taken, or waits for that. (Linux 4.19, tcp_get_info(): tcpi_bytes_sent.)
std::optional<recorder::SnapStream> stream_of(int socket) {
  recorder::SnapStream stream;
  if (!is_plain(socket) || !read_totals(socket, stream)) return std::nullopt;
  stream.own = address_of(socket, getsockname);
  stream.peer = address_of(socket, getpeername);
  return stream.own.empty() || stream.peer.empty() ? std::nullopt : std::optional(stream);
}

std::string network_of(pid_t process) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const fs::path space = fs::read_symlink(fmt::format("/proc/{}/ns/net", process), error);
  return boot.empty() || error ? std::string() : boot + " " + space.string();
}

}  // namespace

void read_streams(pid_t process, recorder::Snap& snap) {
  snap.network = network_of(process);
  snap.streams.clear();
  const FileDescriptor handle(static_cast<int>(syscall(SYS_pidfd_open, process, 0U)));
  if (!handle.valid()) return;
  size_t seen = 0;
  std::error_code error;
  for (fs::directory_iterator at(fmt::format("/proc/{}/fd", process), error), end;
       !error && at != end && seen < kDescriptorsMax; at.increment(error), ++seen) {
    std::error_code unread;
    if (!fs::read_symlink(at->path(), unread).string().starts_with("socket:")) continue;
    const std::string name = at->path().filename().string();
    uint32_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    const FileDescriptor socket(
        static_cast<int>(syscall(SYS_pidfd_getfd, handle.get(), number, 0U)));
    auto stream = socket.valid() ? stream_of(socket.get()) : std::nullopt;
    if (!stream) continue;
    stream->descriptor = number;
    snap.streams.push_back(std::move(*stream));
  }
}

}  // namespace clew::engine
