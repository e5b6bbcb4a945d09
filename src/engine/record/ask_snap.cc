// SPDX-License-Identifier: Apache-2.0
#include "engine/record/ask_snap.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/log.h"
#include "engine/is_recorded.h"
#include "engine/record/snap_requests.h"
#include "recorder/save_snap.h"
#include "recorder/snap.h"
#include "target/process.h"

namespace clew::engine {

namespace {

constexpr int kAnswerTimeMaxMs = 30'000;
constexpr off_t kSnapBytesMax = off_t{1} << 30;
constexpr size_t kNamesMax = 16;  // Anybody can take names that look like a recorder's.

tl::unexpected<Error> not_recorded(pid_t process) {
  return fail(ErrorCode::Refused,
              fmt::format("process {} is not recorded: start it with clew record", process));
}

std::vector<target::Process> recorded_by(pid_t recorder) {
  auto all = target::list_processes();
  if (!all) return {};
  std::erase_if(*all, [recorder](const target::Process& process) {
    const auto facts = target::read_facts(process.pid());
    return !facts || facts->tracer_pid != recorder || !is_recorded(process.pid());
  });
  return std::move(*all);
}

// Of a process that nobody traces: it may be one that records others, or have been recorded.
tl::unexpected<Error> why_not_recorded(pid_t process) {
  constexpr size_t kNamedMax = 10;
  const std::vector<target::Process> all = recorded_by(process);
  if (all.empty() && !is_recorded(process)) return not_recorded(process);
  if (all.empty()) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} was recorded, and its recorder is gone: nobody reads what "
                            "it records any more",
                            process));
  }
  std::string named;
  for (size_t i = 0; i < all.size() && i < kNamedMax; ++i) {
    named +=
        fmt::format("{}{} ({})", i == 0 ? "" : ", ", all[i].pid(), target::program_name(all[i]));
  }
  if (all.size() > kNamedMax) named += fmt::format(" and {} others", all.size() - kNamedMax);
  return fail(ErrorCode::Refused,
              fmt::format("process {} is a recorder; it records {}: clew snap {}", process, named,
                          all.front().pid()));
}

Expected<pid_t> recorder_of(pid_t process) {
  const auto facts = target::read_facts(process);
  if (!facts) {
    if (facts.error().code != ErrorCode::NotFound) return tl::unexpected(facts.error());
    return fail(ErrorCode::NotFound, fmt::format("there is no process {}", process));
  }
  if (facts->tracer_pid != 0) return facts->tracer_pid;
  return why_not_recorded(process);
}

// unix(7), /proc/net/unix: the path is the last word of a line, with an '@' for the zero in front.
std::vector<std::string> sockets_of(pid_t recorder) {
  const std::string prefix = "@" + snap_socket_prefix(recorder);
  std::vector<std::string> names;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line) && names.size() < kNamesMax;) {
    const size_t at = line.find(prefix);
    if (at != std::string::npos && line.size() - at <= kSnapSocketNameMax) {
      names.push_back(line.substr(at + 1));
    }
  }
  return names;
}

// Nothing when it is not the recorder who listens there.
FileDescriptor connect_to(const std::string& name, pid_t recorder) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const timeval time_max = {.tv_sec = 1, .tv_usec = 0};  // Also connect(2) waits no longer.
  (void)setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &time_max, sizeof(time_max));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!socket.valid() ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return {};
  }
  ucred credentials{};
  socklen_t credentials_size = sizeof(credentials);
  const bool is_known =
      getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &credentials_size) == 0;
  return is_known && credentials.pid == recorder ? std::move(socket) : FileDescriptor();
}

Expected<FileDescriptor> connect_to_recorder(pid_t process, pid_t recorder) {
  for (const std::string& name : sockets_of(recorder)) {
    FileDescriptor socket = connect_to(name, recorder);
    if (socket.valid()) return socket;
  }
  const auto tracer = target::read_process(recorder);
  return fail(ErrorCode::Refused,
              fmt::format("process {} is traced by {} ({}), which is no clew record that can be "
                          "asked from here",
                          process, tracer ? target::program_name(*tracer) : "another", recorder));
}

struct Answer {
  SnapReply reply;
  FileDescriptor memory;
};

Expected<Answer> receive(const FileDescriptor& socket) {
  Answer answer;
  pollfd readable{socket.get(), POLLIN, 0};
  if (poll(&readable, 1, kAnswerTimeMaxMs) <= 0) {
    return fail(ErrorCode::Io, "the recorder does not answer");
  }
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

Expected<recorder::Snap> read_memory(const FileDescriptor& memory) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_WRITE;
  struct stat status {};
  const int seals = memory.valid() ? fcntl(memory.get(), F_GET_SEALS) : 0;
  if ((seals & kSeals) != kSeals || seals < 0 || fstat(memory.get(), &status) != 0 ||
      status.st_size > kSnapBytesMax) {
    return fail(ErrorCode::Refused, "the recorder's answer is no snap");
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        pread(memory.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got <= 0) return fail(ErrorCode::Io, "the recorder's answer cannot be read");
    done += static_cast<size_t>(got);
  }
  auto snap = recorder::parse_snap(bytes);
  if (!snap) {
    return fail(ErrorCode::Refused,
                fmt::format("the recorder's answer is no snap: {}", snap.error().message));
  }
  return snap;
}

}  // namespace

Expected<std::string> ask_snap(const SnapRequest& request) {
  CLEW_TRY(recorder::check_snap_folder(request.directory));
  const pid_t recorder = CLEW_TRY(recorder_of(request.process));
  const FileDescriptor socket = CLEW_TRY(connect_to_recorder(request.process, recorder));
  const SnapQuestion question{.process = request.process};
  if (send(socket.get(), &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    return fail(ErrorCode::Io,
                fmt::format("the recorder ({}) hears nobody: {}", recorder, error_text(errno)));
  }
  const StepTime time;
  const Answer answer = CLEW_TRY(receive(socket));
  log_step(request.process, "its recorder ({}) answered in {:.1f} ms", recorder, time.ms());
  switch (answer.reply.answer) {
    case SnapAnswer::Made:
      break;
    case SnapAnswer::NotWatched:
      return not_recorded(request.process);
    case SnapAnswer::Failed:
      return fail(ErrorCode::Io, "the recorder has no memory for a snap");
  }
  return recorder::save_snap(request.directory, CLEW_TRY(read_memory(answer.memory)));
}

}  // namespace clew::engine
