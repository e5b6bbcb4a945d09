// SPDX-License-Identifier: Apache-2.0
#include "engine/record/snap_requests.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error_text.h"

namespace clew::engine {

namespace {

constexpr size_t kAskersMax = 8;
constexpr int kUnheardMax = 128;  // Who have connected, and were not looked at yet.

tl::unexpected<Error> no_socket(const char* what) {
  return fail(ErrorCode::Io,
              fmt::format("a socket for clew snap: {}: {}", what, error_text(errno)));
}

bool is_heard(int asker) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(asker, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return false;
  return credentials.uid == 0 || credentials.uid == geteuid();
}

bool watch_for(const FileDescriptor& waits, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  return epoll_ctl(waits.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool write_all(const FileDescriptor& file, const void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t put = write(file.get(), static_cast<const uint8_t*>(bytes) + done, size - done);
    if (put <= 0) return false;
    done += static_cast<size_t>(put);
  }
  return true;
}

// Sealed, so that the other side can map it and believe its size.
FileDescriptor memory_with(std::span<const recorder::Snap> snaps) {
  FileDescriptor memory(memfd_create("clew-snap", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) return {};
  uint64_t total = 0;
  for (const recorder::Snap& snap : snaps) {
    const std::vector<uint8_t> bytes = recorder::snap_bytes(snap);
    const uint64_t size = bytes.size();
    total += sizeof(size) + size;
    if (total > kSnapBytesMax || !write_all(memory, &size, sizeof(size)) ||
        !write_all(memory, bytes.data(), bytes.size())) {
      return {};
    }
  }
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) return {};
  return memory;
}

}  // namespace

Expected<SnapRequests> SnapRequests::open(const std::string& group) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) return no_socket("getrandom");
  const std::string name = fmt::format("{}{}-{:016x}{}{}", kSnapSocketPrefix, getpid(), number,
                                       group.empty() ? "" : "-", group);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return no_socket("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // A zero in front: abstract.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return no_socket("bind");
  }
  if (listen(socket.get(), kUnheardMax) != 0) return no_socket("listen");
  FileDescriptor waits(epoll_create1(EPOLL_CLOEXEC));
  if (!waits.valid() || !watch_for(waits, socket.get())) return no_socket("epoll");
  return SnapRequests(std::move(socket), std::move(waits));
}

void SnapRequests::accept_all() {
  for (size_t i = 0; i < kAskersMax; ++i) {
    FileDescriptor asker(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!asker.valid()) return;
    if (!is_heard(asker.get()) || !watch_for(waits_, asker.get())) continue;
    if (askers_.size() == kAskersMax) askers_.pop_front();
    askers_.push_back(std::move(asker));
  }
}

std::optional<SnapRequests::Request> SnapRequests::next() {
  accept_all();
  for (auto asker = askers_.begin(); asker != askers_.end();) {
    SnapQuestion question{};
    const ssize_t got = recv(asker->get(), &question, sizeof(question), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      ++asker;
      continue;
    }
    FileDescriptor taken = std::move(*asker);
    asker = askers_.erase(asker);
    if (got == sizeof(question) && question.magic == kSnapMagic) {
      return Request{std::move(taken), question.process};
    }
  }
  return std::nullopt;
}

void SnapRequests::refuse(const Request& request, SnapAnswer answer) {
  const SnapReply reply{.answer = answer};
  (void)send(request.asker.get(), &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void SnapRequests::answer(const Request& request, std::span<const recorder::Snap> snaps) {
  const FileDescriptor memory = memory_with(snaps);
  if (!memory.valid()) return refuse(request, SnapAnswer::Failed);
  SnapReply reply{.answer = SnapAnswer::Made};
  iovec part{&reply, sizeof(reply)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int descriptor = memory.get();
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(descriptor));
  (void)sendmsg(request.asker.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace clew::engine
