// SPDX-License-Identifier: Apache-2.0
#include "engine/query_beside.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregate/value.h"
#include "base/error_text.h"
#include "base/log.h"
#include "collect/losses.h"
#include "engine/run.h"
#include "output/row_sink.h"
#include "query/check_beside.h"

namespace clew::engine {

namespace {

using Kind = QueryBeside::Kind;

constexpr size_t kTextMax = 8192;  // Of one message.

// What goes over the socket, with a text behind it.
struct Head {
  uint32_t kind = 0;
  int32_t process = 0;
  int32_t thread = 0;
  uint32_t error = 0;  // ErrorCode
};

bool send_news(int socket, const Head& head, std::string_view text = {}) {
  Head copy = head;
  std::string cut(text.substr(0, kTextMax));
  std::array<iovec, 2> parts = {{{&copy, sizeof(copy)}, {cut.data(), cut.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

Head head_of(Kind kind) {
  return {.kind = static_cast<uint32_t>(kind)};
}

std::optional<size_t> place_of(output::Columns columns, std::string_view name) {
  const auto found = std::find_if(columns.begin(), columns.end(), [name](const auto& column) {
    return column.name == name && column.type == aggregate::ColumnType::Integer;
  });
  if (found == columns.end()) return std::nullopt;
  return static_cast<size_t>(found - columns.begin());
}

// Rows -> the owner. It waits while the owner does not read: then the kernel counts what is lost.
class RowsToOwner final : public output::RowSink {
 public:
  RowsToOwner(int socket, bool has_intervals) : socket_(socket), has_intervals_(has_intervals) {}

  void begin(output::Columns columns, output::RowMode mode) override {
    process_ = place_of(columns, "pid");
    thread_ = place_of(columns, "tid");
    if (mode == output::RowMode::Table && !has_intervals_) {
      Head head = head_of(Kind::Failed);
      head.error = static_cast<uint32_t>(ErrorCode::InvalidQuery);
      failed_ = true;
      (void)send_news(socket_, head,
                      "the query has rows at its end alone; add 'every', as in: every 1s");
      return;
    }
    failed_ = !send_news(socket_, head_of(Kind::Armed));
  }
  void row(std::span<const aggregate::Value> values) override {
    if (failed_) return;
    Head head = head_of(Kind::Row);
    head.process = number_in(values, process_);
    head.thread = number_in(values, thread_);
    failed_ = !send_news(socket_, head);
  }
  [[nodiscard]] bool wants_losses() const override { return true; }
  void losses_so_far(const collect::Losses& losses) override {
    if (has_told_loss_ || failed_ || losses.dropped.empty()) return;
    has_told_loss_ = true;
    failed_ = !send_news(socket_, head_of(Kind::Warning),
                         "events came faster than they were read; some were not looked at");
  }
  void end_interval(const output::Interval& /*interval*/) override {}
  void finish(const collect::Losses& /*losses*/) override {}
  [[nodiscard]] bool failed() const override { return failed_; }

 private:
  static int32_t number_in(std::span<const aggregate::Value> values, std::optional<size_t> place) {
    const int64_t* const number = place ? std::get_if<int64_t>(&values[*place]) : nullptr;
    return number != nullptr ? static_cast<int32_t>(*number) : 0;
  }

  int socket_;
  bool has_intervals_;
  bool failed_ = false;
  bool has_told_loss_ = false;
  std::optional<size_t> process_;
  std::optional<size_t> thread_;
};

class WarningsToOwner final : public Notices {
 public:
  explicit WarningsToOwner(int socket) : socket_(socket) {}
  void progress(std::string_view /*text*/) override {}
  void warning(std::string_view text) override {
    (void)send_news(socket_, head_of(Kind::Warning), text);
  }
  void armed(std::string_view /*text*/) override {}
  void made(std::string_view /*text*/) override {}

 private:
  int socket_;
};

Expected<void> check_columns(output::Columns columns) {
  if (place_of(columns, "pid")) return {};
  return fail(ErrorCode::InvalidQuery,
              "the query's rows have no column 'pid', which says whose they are; select e.pid");
}

Expected<void> run_beside(const query::Text& text, pid_t process, int socket) {
  const query::Beside beside = CLEW_TRY(query::check_beside(text));
  Request request;
  request.text = text;
  request.processes.pids = {process};
  request.follow_forks = true;
  request.accept = check_columns;
  RowsToOwner rows(socket, beside.has_intervals);
  WarningsToOwner warnings(socket);
  CLEW_TRY(run(request, socket, rows, warnings));
  return {};
}

// Nothing of the owner's is open there, and what ends the owner's terminal or service ends the
// owner, and by that this.
void leave_owner(pid_t owner, int socket) noexcept {
  end_log();
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != owner) _exit(1);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE})
    (void)std::signal(signal, SIG_IGN);
  (void)std::signal(SIGCHLD, SIG_DFL);
  sigset_t none{};
  (void)sigemptyset(&none);
  (void)pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  (void)dup2(nothing, STDIN_FILENO);
  (void)dup2(nothing, STDOUT_FILENO);
  const auto own = static_cast<unsigned>(socket);
  if (own > 3) (void)syscall(SYS_close_range, 3U, own - 1, 0U);
  (void)syscall(SYS_close_range, own + 1, ~0U, 0U);
}

// What is thrown here is not to unwind into what its owner does.
Expected<void> run_without_throwing(const query::Text& text, pid_t process, int socket) noexcept {
  try {
    return run_beside(text, process, socket);
  } catch (const std::exception& thrown) {
    return fail(ErrorCode::Io, thrown.what());
  }
}

[[noreturn]] void be_beside(const query::Text& text, pid_t process, int socket) noexcept {
  const Expected<void> ran = run_without_throwing(text, process, socket);
  Head head = head_of(ran ? Kind::Ended : Kind::Failed);
  if (!ran) head.error = static_cast<uint32_t>(ran.error().code);
  (void)send_news(socket, head, ran ? std::string_view() : ran.error().message);
  _exit(0);
}

}  // namespace

Expected<void> QueryBeside::check(const query::Text& text) {
  CLEW_TRY(query::check_beside(text));
  return {};
}

Expected<QueryBeside> QueryBeside::start(const query::Text& text, pid_t process) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(ErrorCode::Io, fmt::format("socketpair: {}", error_text(errno)));
  FileDescriptor own(ends[0]);
  const FileDescriptor its(ends[1]);
  const pid_t owner = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail(ErrorCode::Io, fmt::format("fork: {}", error_text(errno)));
  if (pid == 0) {
    leave_owner(owner, its.get());
    be_beside(text, process, its.get());
  }
  // Before anybody can have waited for it.
  FileDescriptor handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0U)));
  return QueryBeside(pid, std::move(handle), std::move(own));
}

// Somebody else may have waited for it, and then the number is another's.
QueryBeside::~QueryBeside() {
  if (!process_.valid()) return;
  (void)syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0U);
  siginfo_t ended{};
  while (waitid(P_PIDFD, static_cast<id_t>(process_.get()), &ended, WEXITED) != 0) {
    if (errno != EINTR) return;
  }
}

std::optional<QueryBeside::News> QueryBeside::next() {
  if (!socket_.valid()) return std::nullopt;
  Head head;
  std::array<char, kTextMax> text;  // Not filled: as much of it is read as has come.
  std::array<iovec, 2> parts = {{{&head, sizeof(head)}, {text.data(), text.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  News news;
  if (got < static_cast<ssize_t>(sizeof(head)) || head.kind > static_cast<uint32_t>(Kind::Ended)) {
    socket_.reset();
    news.kind = Kind::Failed;
    news.error = Error{ErrorCode::Io, "its process was killed"};
    return news;
  }
  news.kind = static_cast<Kind>(head.kind);
  news.process = head.process;
  news.thread = head.thread;
  news.text.assign(text.data(), static_cast<size_t>(got) - sizeof(head));
  if (news.kind == Kind::Failed)
    news.error = Error{static_cast<ErrorCode>(head.error), std::exchange(news.text, {})};
  if (news.kind == Kind::Failed || news.kind == Kind::Ended) socket_.reset();
  return news;
}

}  // namespace clew::engine
