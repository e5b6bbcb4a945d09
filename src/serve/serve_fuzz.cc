// SPDX-License-Identifier: Apache-2.0
// What a browser, or anybody who reaches the port, sends; what children write; and what one of our
// processes says to the other: each can be wrong, and none may crash us. The first byte says which.
// Requests go through libmicrohttpd and all of the handlers.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/completion.h"
#include "serve/diagnostics.h"
#include "serve/frame.h"
#include "serve/http_server.h"
#include "serve/session_request.h"
#include "serve/sessions.h"
#include "serve/task.h"

namespace {

using namespace std::string_view_literals;
namespace serve = clew::serve;

void check(bool holds) {
  if (!holds) std::abort();
}

void frames(std::string_view bytes) {
  serve::FrameReader reader;
  reader.add(bytes);
  for (auto frame = reader.take(); frame && *frame; frame = reader.take())
    (void)serve::command_of((*frame)->fields, {});
}

// Whatever a child writes, each line that readers get is a line of JSON.
void stream(std::string_view bytes) {
  serve::Lines lines(4096);
  serve::Sessions sessions(lines);
  sessions.begin(1, serve::Json::object());
  sessions.take_output(1, bytes.substr(0, bytes.size() / 2));
  sessions.take_output(1, bytes.substr(bytes.size() / 2));
  sessions.take_messages(1, bytes);
  sessions.end(1, "0", "");
  serve::LineCursor cursor(0);
  for (auto line = lines.next(cursor); line != nullptr; line = lines.next(cursor)) {
    check(line->find('\n') == line->size() - 1);
    check(serve::Json::accept(*line));
  }
}

void texts(std::string_view bytes) {
  const size_t middle = bytes.size() / 2;
  (void)serve::diagnostics_of(bytes.substr(0, middle), bytes.substr(middle));
  const serve::CompletionPlace place = serve::place_in(bytes, middle);
  (void)serve::word_items(place, bytes);
  (void)serve::function_items(place, bytes);
  check(serve::byte_offset(bytes, serve::utf16_offset(bytes, middle)) <= bytes.size());
}

// A server, and one client that says `bytes` and no more.
class OneClient {
 public:
  OneClient() {
    std::array<int, 2> ends{};
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    keeper_ = clew::FileDescriptor(ends[0]);
    channel_.emplace(clew::FileDescriptor(ends[1]));
    api_.emplace(*channel_, lines_, serve::ServerFacts());
    listener_ = clew::FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    auto* const generic = reinterpret_cast<sockaddr*>(&address_);
    check(bind(listener_.get(), generic, size) == 0 && listen(listener_.get(), 1) == 0);
    check(getsockname(listener_.get(), generic, &size) == 0);
    auto server = serve::HttpServer::start(listener_, {*api_, lines_, page_, "secret"});
    check(server.has_value());
    server_ = std::move(*server);
  }

  void say(std::string_view bytes) {
    clew::FileDescriptor client(socket(AF_INET, SOCK_STREAM, 0));
    check(connect(client.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0);
    (void)send(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(client.get(), SHUT_WR);
    constexpr int kTurns = 6;
    for (int turn = 0; turn < kTurns; ++turn)
      server_->turn();
    client.reset();
    server_->beat();
    server_->turn();
    (void)channel_->flush();
    std::array<char, 65536> unheard;
    while (recv(keeper_.get(), unheard.data(), unheard.size(), MSG_DONTWAIT) > 0) {
    }
  }

 private:
  clew::FileDescriptor keeper_;
  std::optional<serve::Channel> channel_;
  serve::Lines lines_{4096};
  std::optional<serve::Api> api_;
  serve::Page page_ = serve::Page::built_in();
  clew::FileDescriptor listener_;
  sockaddr_in address_{};
  std::unique_ptr<serve::HttpServer> server_;
};

void requests(std::string_view bytes) {
  OneClient client;
  client.say(bytes);
}

// As the page says it, with a body of anything.
void bodies(std::string_view bytes) {
  (void)serve::session_request(bytes);
  constexpr std::array kPaths = {"sessions"sv, "check"sv, "complete"sv, "explain"sv};
  if (bytes.empty()) return;
  const std::string_view path = kPaths[static_cast<uint8_t>(bytes.front()) % kPaths.size()];
  bytes.remove_prefix(1);
  OneClient client;
  client.say("POST /api/v1/" + std::string(path) +
             " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: " +
             std::to_string(bytes.size()) + "\r\n\r\n" + std::string(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr std::array kKinds = {frames, stream, texts, requests, bodies};
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  kKinds[data[0] % kKinds.size()](bytes);
  return 0;
}
