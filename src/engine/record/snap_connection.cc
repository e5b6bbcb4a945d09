// SPDX-License-Identifier: Apache-2.0
#include "engine/record/snap_connection.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error_text.h"
#include "engine/record/snap_requests.h"
#include "engine/record/thread_status.h"

namespace clew::engine {

namespace {

constexpr int kAnswerTimeMaxMs = 30'000;
constexpr size_t kNamesMax = 65536;

// "clew-record-PID-RANDOM", with a group "clew-record-PID-RANDOM-GROUP".
std::optional<RecorderSocket> socket_of(std::string_view name) {
  std::string_view rest = name;
  if (name.size() > kSnapSocketNameMax || !rest.starts_with(kSnapSocketPrefix)) return std::nullopt;
  rest.remove_prefix(kSnapSocketPrefix.size());
  RecorderSocket socket;
  const auto [end, problem] =
      std::from_chars(rest.data(), rest.data() + rest.size(), socket.recorder);
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  if (problem != std::errc() || socket.recorder <= 0 || !rest.starts_with('-')) return std::nullopt;
  const size_t group = rest.find('-', 1);
  if (group != std::string_view::npos) socket.group = rest.substr(group + 1);
  socket.name = name;
  return socket;
}

struct Answer {
  SnapReply reply;
  FileDescriptor memory;
};

// One that is stopped is not waited for: only who stopped it lets it go on.
Expected<void> wait_for_answer(const FileDescriptor& socket, pid_t recorder) {
  constexpr int kLookMs = 100;
  for (int waited_ms = 0; waited_ms < kAnswerTimeMaxMs; waited_ms += kLookMs) {
    pollfd readable{socket.get(), POLLIN, 0};
    if (poll(&readable, 1, kLookMs) > 0) return {};
    if (status_of(recorder).state == 'T') {
      return fail(ErrorCode::Refused,
                  fmt::format("the recorder, process {0}, is stopped: kill -CONT {0}", recorder));
    }
  }
  return fail(ErrorCode::Io, fmt::format("the recorder, process {}, does not answer", recorder));
}

Expected<Answer> receive(const FileDescriptor& socket, pid_t recorder) {
  CLEW_TRY(wait_for_answer(socket, recorder));
  Answer answer;
  iovec part{&answer.reply, sizeof(answer.reply)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  const ssize_t got = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
    answer.memory = FileDescriptor(descriptor);
  }
  if (got != sizeof(answer.reply) || answer.reply.magic != kSnapMagic) {
    return fail(ErrorCode::Refused,
                "the recorder did not answer: it hears its own user and root, or has just ended");
  }
  return answer;
}

Expected<std::vector<uint8_t>> read_memory(const FileDescriptor& memory) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_WRITE;
  struct stat status {};
  const int seals = memory.valid() ? fcntl(memory.get(), F_GET_SEALS) : 0;
  if ((seals & kSeals) != kSeals || seals < 0 || fstat(memory.get(), &status) != 0 ||
      static_cast<uint64_t>(status.st_size) > kSnapBytesMax) {
    return fail(ErrorCode::Refused, "the recorder's answer is no snap");
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        pread(memory.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got <= 0) return fail(ErrorCode::Io, "the recorder's answer cannot be read");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

// Each with its size in front.
Expected<std::vector<recorder::Snap>> snaps_in(std::span<const uint8_t> bytes) {
  std::vector<recorder::Snap> snaps;
  while (!bytes.empty()) {
    uint64_t size = 0;
    if (bytes.size() < sizeof(size))
      return fail(ErrorCode::Refused, "the recorder's answer is cut");
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes = bytes.subspan(sizeof(size));
    if (size > bytes.size()) return fail(ErrorCode::Refused, "the recorder's answer is cut");
    auto snap = recorder::parse_snap(bytes.first(size));
    if (!snap) {
      return fail(ErrorCode::Refused,
                  fmt::format("the recorder's answer is no snap: {}", snap.error().message));
    }
    snaps.push_back(std::move(*snap));
    bytes = bytes.subspan(size);
  }
  return snaps;
}

}  // namespace

// unix(7), /proc/net/unix: the path is the last word of a line, with an '@' for the zero in front.
std::vector<RecorderSocket> recorder_sockets(
    const std::function<bool(const RecorderSocket&)>& is_wanted) {
  std::vector<RecorderSocket> all;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line) && all.size() < kNamesMax;) {
    const size_t at = line.rfind(" @");
    if (at == std::string::npos) continue;
    auto socket = socket_of(std::string_view(line).substr(at + 2));
    if (socket && is_wanted(*socket)) all.push_back(std::move(*socket));
  }
  return all;
}

std::optional<SnapConnection> SnapConnection::open(const RecorderSocket& socket,
                                                   Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
      deadline - std::chrono::steady_clock::now());
  const int waits = left.count() > 0 ? 0 : SOCK_NONBLOCK;
  FileDescriptor descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | waits, 0));
  // Also connect(2) waits no longer.
  const timeval time_max = {.tv_sec = left.count() / 1'000'000,
                            .tv_usec = left.count() % 1'000'000};
  if (waits == 0)
    (void)setsockopt(descriptor.get(), SOL_SOCKET, SO_SNDTIMEO, &time_max, sizeof(time_max));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, socket.name.data(), socket.name.size());
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket.name.size());
  if (!descriptor.valid() ||
      connect(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return std::nullopt;
  }
  ucred credentials{};
  socklen_t credentials_size = sizeof(credentials);
  const bool is_known =
      getsockopt(descriptor.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &credentials_size) == 0;
  const bool is_ours = geteuid() == 0 || credentials.uid == geteuid();
  if (!is_known || !is_ours || credentials.pid != socket.recorder) return std::nullopt;
  return SnapConnection(std::move(descriptor), socket.recorder);
}

Expected<void> SnapConnection::ask(pid_t process) {
  const SnapQuestion question{.process = process};
  if (send(socket_.get(), &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return {};
  return fail(ErrorCode::Io,
              fmt::format("the recorder ({}) hears nobody: {}", recorder_, error_text(errno)));
}

Expected<std::vector<recorder::Snap>> SnapConnection::answer() {
  const Answer answer = CLEW_TRY(receive(socket_, recorder_));
  switch (answer.reply.answer) {
    case SnapAnswer::Made:
      break;
    case SnapAnswer::NotWatched:
      return std::vector<recorder::Snap>();
    case SnapAnswer::Failed:
      return fail(ErrorCode::Io, "the recorder has no memory for a snap");
  }
  const std::vector<uint8_t> bytes = CLEW_TRY(read_memory(answer.memory));
  auto snaps = CLEW_TRY(snaps_in(bytes));
  if (snaps.empty()) return fail(ErrorCode::Refused, "the recorder's answer is no snap");
  return snaps;
}

}  // namespace clew::engine
