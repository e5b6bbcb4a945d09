// SPDX-License-Identifier: Apache-2.0
#include "serve/serve.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_text.h"
#include "serve/front.h"
#include "serve/keeper.h"
#include "serve/page.h"

namespace clew::serve {
namespace {

constexpr int kBacklog = 64;
constexpr size_t kTokenBytes = 32;

tl::unexpected<Error> no_socket(const char* call) {
  return fail(ErrorCode::Io, fmt::format("{}: {}", call, error_text(errno)));
}

// 256 bits, in hexadecimal.
Expected<std::string> make_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return no_socket("getrandom");
  std::string token;
  for (const unsigned char byte : bytes)
    token += fmt::format("{:02x}", byte);
  return token;
}

struct Listener {
  FileDescriptor socket;
  uint16_t port = 0;
};

// Nothing: the port is taken.
Expected<std::optional<Listener>> listen_at(uint16_t port) {
  Listener made{FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  if (!made.socket.valid()) return no_socket("socket");
  const int on = 1;  // A port that a server had a moment ago is free.
  (void)setsockopt(made.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool is_ours = bind(made.socket.get(), generic, sizeof address) == 0 &&
                       listen(made.socket.get(), kBacklog) == 0;
  if (!is_ours && errno == EADDRINUSE) return std::optional<Listener>();
  if (!is_ours) return no_socket("bind");
  socklen_t size = sizeof address;
  if (getsockname(made.socket.get(), generic, &size) != 0) return no_socket("getsockname");
  made.port = ntohs(address.sin_port);
  return std::optional<Listener>(std::move(made));
}

Expected<Listener> listen_at_asked(uint16_t port) {
  std::optional<Listener> asked = CLEW_TRY(listen_at(port));
  if (asked) return std::move(*asked);
  std::optional<Listener> other = CLEW_TRY(listen_at(0));
  return fail(ErrorCode::Refused, fmt::format("port {} is taken; {} is free: clew ui --port {}",
                                              port, other->port, other->port));
}

// Nothing is open but these two: whoever takes the front over has no terminal to type into, and
// nothing that the keeper, or who started it, has open.
void keep_only(int channel, int listener) {
  {
    const FileDescriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      if (standard != channel && standard != listener) (void)dup2(nothing.get(), standard);
  }
  unsigned from = STDERR_FILENO + 1;
  for (const int kept : {std::min(channel, listener), std::max(channel, listener)}) {
    const auto number = static_cast<unsigned>(kept);
    if (number < from) continue;
    if (number > from) (void)close_range(from, number - 1, 0);
    from = number + 1;
  }
  (void)close_range(from, ~0U, 0);
}

// In the process that is to be the front. What a terminal sends is the keeper's to hear.
[[noreturn]] void be_front(FrontParts parts) {
  sigset_t signals;
  (void)sigfillset(&signals);
  (void)pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (const Expected<void> given_up = give_up_rights(); !given_up) {
    fmt::print(stderr, "clew: error: {}\n", given_up.error().message);
    _exit(EXIT_FAILURE);
  }
  (void)setsid();
  keep_only(parts.channel.descriptor(), parts.listener.get());
  (void)serve_browsers(std::move(parts));
  _exit(EXIT_SUCCESS);
}

}  // namespace

Expected<void> serve(const Settings& settings, int stop_descriptor,
                     const std::function<void(const std::string& url)>& ready) {
  Page page = settings.page_folder.empty() ? Page::built_in()
                                           : CLEW_TRY(Page::of_folder(settings.page_folder));
  const std::string token = CLEW_TRY(make_token());
  Listener listener = CLEW_TRY(listen_at_asked(settings.port));
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return no_socket("socketpair");
  FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  const pid_t front = fork();
  if (front < 0) return no_socket("fork");
  if (front == 0) {
    ours.reset();
    be_front({.channel = Channel(std::move(theirs)),
              .listener = std::move(listener.socket),
              .page = std::move(page),
              .token = token,
              .facts = settings.facts});
  }
  theirs.reset();
  listener.socket.reset();
  ready(fmt::format("http://127.0.0.1:{}/#token={}", listener.port, token));
  Expected<void> kept =
      Keeper(Channel(std::move(ours)), {.commands_allowed = settings.facts.commands_allowed})
          .run(stop_descriptor);
  (void)kill(front, SIGKILL);  // It has nothing to finish.
  (void)waitpid(front, nullptr, 0);
  return kept;
}

}  // namespace clew::serve
