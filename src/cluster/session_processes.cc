// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/spawn_attributes.h"
#include "cluster/node_session.h"

namespace clew::cluster {
namespace {

std::string end_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

class SessionProcess final : public NodeSession {
 public:
  SessionProcess(pid_t pid, FileDescriptor socket) : pid_(pid), socket_(std::move(socket)) {}
  // It takes its probes out, however that takes; nobody waits for what it says.
  ~SessionProcess() override {
    if (pid_ == 0) return;
    socket_.reset();
    (void)waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] int descriptor() const override { return socket_.get(); }
  void stop() override { (void)shutdown(socket_.get(), SHUT_WR); }
  std::vector<Frame> take() override;

 private:
  bool read_more();
  void finish(std::vector<Frame>& frames, const std::string& why);

  pid_t pid_;  // 0: it has ended.
  FileDescriptor socket_;
  FrameReader reader_;
  bool is_over_ = false;  // Its last frame has come.
};

// False: it has closed its side.
bool SessionProcess::read_more() {
  std::array<std::byte, 65536> some{};
  while (true) {
    const ssize_t count = recv(socket_.get(), some.data(), some.size(), MSG_DONTWAIT);
    if (count == 0) return false;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    reader_.add(std::span(some).first(static_cast<size_t>(count)));
  }
}

std::vector<Frame> SessionProcess::take() {
  std::vector<Frame> frames;
  if (pid_ == 0) return frames;
  const bool is_there = read_more();
  while (true) {
    Expected<std::optional<Frame>> frame = reader_.take();
    if (!frame) {
      finish(frames, frame.error().message);
      return frames;
    }
    if (!*frame) break;
    const FrameKind kind = (*frame)->kind;
    is_over_ = is_over_ || kind == FrameKind::Ended || kind == FrameKind::Failed;
    frames.push_back(std::move(**frame));
  }
  if (!is_there) finish(frames, "");
  return frames;
}

void SessionProcess::finish(std::vector<Frame>& frames, const std::string& why) {
  int status = 0;
  socket_.reset();
  (void)waitpid(std::exchange(pid_, 0), &status, 0);
  if (std::exchange(is_over_, true)) return;
  frames.push_back(
      {.kind = FrameKind::Failed,
       .pane = static_cast<int64_t>(ErrorCode::Io),
       .text = "the session's process " + end_of(status) + (why.empty() ? "" : ": " + why)});
}

class SpawnFiles {
 public:
  explicit SpawnFiles(int input) {
    (void)posix_spawn_file_actions_init(&actions_);
    (void)posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
  }
  ~SpawnFiles() { (void)posix_spawn_file_actions_destroy(&actions_); }
  SpawnFiles(const SpawnFiles&) = delete;
  SpawnFiles& operator=(const SpawnFiles&) = delete;
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

Expected<std::unique_ptr<NodeSession>> SessionProcesses::begin(const SessionWant& want) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(ErrorCode::Io, "socketpair: " + error_text(errno));
  FileDescriptor ours(ends[0]);
  const FileDescriptor theirs(ends[1]);
  // Not in the node's group: a Ctrl-C is the node's, which ends its sessions in order.
  SpawnAttributes attributes;
  attributes.leave_group();
  const SpawnFiles files(theirs.get());
  std::vector<char*> words;
  words.reserve(command_.size() + 1);
  for (std::string& word : command_)
    words.push_back(word.data());
  words.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, words[0], files.get(), attributes.get(), words.data(), environ);
  if (error != 0)
    return fail(ErrorCode::Io, fmt::format("cannot begin a session: {}", error_text(error)));
  auto session = std::make_unique<SessionProcess>(pid, std::move(ours));
  CLEW_TRY(write_all(session->descriptor(), to_bytes(frame_of(want))));
  return session;
}

}  // namespace clew::cluster
