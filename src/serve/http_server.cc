// SPDX-License-Identifier: Apache-2.0
#include "serve/http_server.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock_ns.h"

namespace clew::serve {
namespace {

// Those that are too many are told so; of those beyond nobody is told anything.
constexpr unsigned kTakenMax = kConnectionsMax + 16;
constexpr unsigned kIdleSecondsMax = 60;
// From the first byte of a request, or the end of the one before, to its last.
constexpr int64_t kRequestNsMax = 20'000'000'000;
constexpr size_t kHeadBytesMax = 32 << 10;
constexpr size_t kStreamBlockBytes = 64 << 10;

int64_t now_ns() {
  return clock_ns(CLOCK_MONOTONIC);
}

}  // namespace

struct HttpServer::Connection {
  int socket = -1;
  int64_t request_until_ns = 0;  // 0: it is being answered.
  bool is_too_much = false;
};

struct HttpServer::Exchange {
  HttpServer& server;
  MHD_Connection* connection;
  HttpRequest request{};
  bool is_too_long = false;
  bool is_suspended = false;
  uint32_t child = 0;  // That it waits for.
  std::optional<Reply> reply{};
};

struct HttpServer::Stream {
  HttpServer& server;
  MHD_Connection* connection;
  LineCursor cursor;
  SharedLine line{};  // That is being written, from `at` on.
  size_t at = 0;
  bool is_suspended = false;
  bool has_beat = true;  // The first one says at once that the stream is there.
};

// What the library calls. Each gets what belongs to a request, a connection or a response.
struct Callbacks {
  using Connection = HttpServer::Connection;
  using Exchange = HttpServer::Exchange;
  using Stream = HttpServer::Stream;

  static Connection* connection_of(MHD_Connection* connection) {
    const auto* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == nullptr ? nullptr : static_cast<Connection*>(info->socket_context);
  }

  static void connected(void* self, MHD_Connection* connection, void** context,
                        MHD_ConnectionNotificationCode code) {
    auto& server = *static_cast<HttpServer*>(self);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      const std::unique_ptr<Connection> closed(static_cast<Connection*>(*context));
      server.connections_.erase(closed.get());
      return;
    }
    auto one = std::make_unique<Connection>();
    const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != nullptr) one->socket = info->connect_fd;
    one->request_until_ns = now_ns() + kRequestNsMax;
    one->is_too_much = server.connections_.size() >= kConnectionsMax;
    server.connections_.insert(one.get());
    *context = one.release();
  }

  static MHD_Result add_query(void* self, MHD_ValueKind, const char* name, const char* value) {
    auto& request = *static_cast<HttpRequest*>(self);
    request.query.insert_or_assign(name, value == nullptr ? "" : value);
    return MHD_YES;
  }

  static std::optional<std::string> header(MHD_Connection* connection, const char* name) {
    const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }

  static Exchange* begin(HttpServer& server, MHD_Connection* connection, const char* path,
                         const char* method) {
    auto exchange = std::make_unique<Exchange>(Exchange{server, connection});
    HttpRequest& request = exchange->request;
    request.path = path;
    request.method = method;
    request.host = header(connection, MHD_HTTP_HEADER_HOST);
    request.origin = header(connection, MHD_HTTP_HEADER_ORIGIN);
    request.authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
    request.if_none_match = header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
    (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_query, &request);
    return exchange.release();
  }

  // Before the body is read.
  static std::optional<Reply> early_refusal(const Exchange& exchange) {
    const Connection* const connection = connection_of(exchange.connection);
    if (connection == nullptr || connection->is_too_much) {
      Reply reply = problem(Status::Unavailable,
                            fmt::format("{} connections are open already", kConnectionsMax));
      reply.headers.emplace_back("Connection", "close");
      return reply;
    }
    if (auto refused = refusal_of(exchange.request, exchange.server.parts_.token)) return refused;
    const std::optional<std::string> length =
        header(exchange.connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    constexpr size_t kDigitsMax = 9;
    const bool is_too_long =
        length && (length->size() > kDigitsMax ||
                   std::strtoull(length->c_str(), nullptr, 10) > kBodyBytesMax);
    return is_too_long ? std::optional(too_long()) : std::nullopt;
  }

  static Reply too_long() {
    return problem(Status::ContentTooLarge,
                   fmt::format("a request has at most {} bytes", kBodyBytesMax));
  }

  // NOLINTNEXTLINE(readability-function-size)  As libmicrohttpd calls it.
  static MHD_Result handle(void* self, MHD_Connection* connection, const char* path,
                           const char* method, const char*, const char* data, size_t* size,
                           void** context) {
    if (*context == nullptr) {
      Exchange* const begun = begin(*static_cast<HttpServer*>(self), connection, path, method);
      *context = begun;
      const std::optional<Reply> refusal = early_refusal(*begun);
      return refusal ? send(*begun, *refusal) : MHD_YES;
    }
    Exchange& exchange = *static_cast<Exchange*>(*context);
    if (*size > 0) {
      exchange.is_too_long |= exchange.request.body.size() + *size > kBodyBytesMax;
      if (!exchange.is_too_long) exchange.request.body.append(data, *size);
      *size = 0;
      return MHD_YES;
    }
    return answer(exchange);
  }

  // The request is whole, or its reply has come.
  static MHD_Result answer(Exchange& exchange) {
    if (exchange.is_too_long) return send(exchange, too_long());
    if (exchange.reply) return send(exchange, *exchange.reply);
    if (Connection* const connection = connection_of(exchange.connection))
      connection->request_until_ns = 0;
    if (!exchange.request.path.starts_with("/api/"))
      return send(exchange, exchange.server.parts_.page.answer(exchange.request));
    const Answer answer = exchange.server.parts_.api.answer(exchange.request);
    if (const auto* const reply = std::get_if<Reply>(&answer)) return send(exchange, *reply);
    if (const auto* const from = std::get_if<StreamFrom>(&answer)) return stream(exchange, *from);
    exchange.child = std::get<ReplyLater>(answer).child;
    exchange.server.waiting_.emplace(exchange.child, &exchange);
    exchange.is_suspended = true;
    MHD_suspend_connection(exchange.connection);
    return MHD_YES;
  }

  static MHD_Result queue(MHD_Connection* connection, Status status, MHD_Response* response) {
    for (const auto& [name, value] : security_headers())
      (void)MHD_add_response_header(response, name.c_str(), value.c_str());
    const MHD_Result done = MHD_queue_response(connection, static_cast<unsigned>(status), response);
    MHD_destroy_response(response);
    return done;
  }

  // The bytes stay where they are, and are owned by the response for as long as it is there.
  struct Body {
    std::shared_ptr<const std::string> bytes;
  };
  static ssize_t read_body(void* self, uint64_t at, char* to, size_t most) {
    const std::string& bytes = *static_cast<Body*>(self)->bytes;
    const size_t count = std::min<size_t>(most, bytes.size() - std::min<size_t>(at, bytes.size()));
    if (count == 0) return MHD_CONTENT_READER_END_OF_STREAM;
    std::copy_n(bytes.data() + at, count, to);
    return static_cast<ssize_t>(count);
  }
  static void free_body(void* self) { const std::unique_ptr<Body> gone(static_cast<Body*>(self)); }

  static MHD_Result send(const Exchange& exchange, const Reply& reply) {
    auto body = std::make_unique<Body>(Body{reply.body});
    MHD_Response* const response = MHD_create_response_from_callback(
        reply.body->size(), kStreamBlockBytes, read_body, body.get(), free_body);
    if (response == nullptr) return MHD_NO;
    (void)body.release();
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply.type.c_str());
    for (const auto& [name, value] : reply.headers)
      (void)MHD_add_response_header(response, name.c_str(), value.c_str());
    return queue(exchange.connection, reply.status, response);
  }

  static MHD_Result stream(const Exchange& exchange, const StreamFrom& from) {
    auto stream = std::make_unique<Stream>(
        Stream{exchange.server, exchange.connection, LineCursor(from.after)});
    MHD_Response* const response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, kStreamBlockBytes, read_stream, stream.get(), free_stream);
    if (response == nullptr) return MHD_NO;
    exchange.server.streams_.insert(stream.release());
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/x-ndjson");
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return queue(exchange.connection, Status::Ok, response);
  }

  // Fills `line` with what comes next; false: there is nothing.
  static bool next_line(Stream& stream) {
    stream.at = 0;
    stream.line = stream.server.parts_.lines.next(stream.cursor);
    if (stream.line != nullptr) return true;
    if (!std::exchange(stream.has_beat, false)) return false;
    stream.line = std::make_shared<const std::string>(fmt::format(
        "{{\"n\":{},\"beat\":\"{}\"}}\n", stream.cursor.last(), clock_ns(CLOCK_REALTIME)));
    return true;
  }

  static ssize_t read_stream(void* self, uint64_t, char* to, size_t most) {
    Stream& stream = *static_cast<Stream*>(self);
    size_t filled = 0;
    while (filled < most) {
      const bool is_written = stream.line == nullptr || stream.at == stream.line->size();
      if (is_written && !next_line(stream)) break;
      const size_t count = std::min(most - filled, stream.line->size() - stream.at);
      std::copy_n(stream.line->data() + stream.at, count, to + filled);
      stream.at += count;
      filled += count;
    }
    if (filled == 0) {
      stream.is_suspended = true;
      MHD_suspend_connection(stream.connection);
    }
    return static_cast<ssize_t>(filled);
  }

  static void free_stream(void* self) {
    const std::unique_ptr<Stream> gone(static_cast<Stream*>(self));
    gone->server.streams_.erase(gone.get());
  }

  static void completed(void*, MHD_Connection* connection, void** context,
                        MHD_RequestTerminationCode) {
    const std::unique_ptr<Exchange> done(static_cast<Exchange*>(*context));
    *context = nullptr;
    if (Connection* const one = connection_of(connection))
      one->request_until_ns = now_ns() + kRequestNsMax;
    if (done == nullptr || done->child == 0) return;
    HttpServer& server = done->server;
    if (server.waiting_.erase(done->child) > 0) server.parts_.api.cancel(done->child);
  }
};

HttpServer::HttpServer(Parts parts) : parts_(std::move(parts)) {
  parts_.api.set_teller([this](uint32_t child, const Reply& reply) { reply_came(child, reply); });
}

Expected<std::unique_ptr<HttpServer>> HttpServer::start(const FileDescriptor& listener,
                                                        Parts parts) {
  auto server = std::make_unique<HttpServer>(std::move(parts));
  const int taken = dup(listener.get());  // The library closes it.
  server->daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, Callbacks::handle,
      server.get(), MHD_OPTION_LISTEN_SOCKET, taken, MHD_OPTION_CONNECTION_LIMIT, kTakenMax,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSecondsMax, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kHeadBytesMax, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
      Callbacks::connected, server.get(), MHD_OPTION_NOTIFY_COMPLETED, Callbacks::completed,
      nullptr, MHD_OPTION_END);
  if (server->daemon_ == nullptr) return fail(ErrorCode::Io, "libmicrohttpd does not start");
  return server;
}

HttpServer::~HttpServer() {
  if (daemon_ == nullptr) return;
  for (auto& [child, exchange] : waiting_)
    resume(*exchange);
  for (Stream* const stream : streams_)
    if (std::exchange(stream->is_suspended, false)) MHD_resume_connection(stream->connection);
  MHD_stop_daemon(daemon_);
}

int HttpServer::descriptor() const {
  return MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int HttpServer::wait_ms() const {
  MHD_UNSIGNED_LONG_LONG milliseconds = 0;
  if (MHD_get_timeout(daemon_, &milliseconds) != MHD_YES) return -1;
  constexpr MHD_UNSIGNED_LONG_LONG kMost = 60'000;
  return static_cast<int>(std::min(milliseconds, kMost));
}

void HttpServer::turn() {
  (void)MHD_run(daemon_);
}

void HttpServer::resume(Exchange& exchange) {
  if (std::exchange(exchange.is_suspended, false)) MHD_resume_connection(exchange.connection);
}

void HttpServer::reply_came(uint32_t child, const Reply& reply) {
  const auto found = waiting_.find(child);
  if (found == waiting_.end()) return;
  Exchange& exchange = *found->second;
  waiting_.erase(found);
  exchange.reply = reply;
  resume(exchange);
}

void HttpServer::wake_streams() {
  for (Stream* const stream : streams_)
    if (std::exchange(stream->is_suspended, false)) MHD_resume_connection(stream->connection);
}

void HttpServer::beat() {
  for (Stream* const stream : streams_)
    stream->has_beat = true;
  wake_streams();
  const int64_t now = now_ns();
  for (const Connection* const connection : connections_) {
    const bool is_over = connection->request_until_ns != 0 && connection->request_until_ns < now;
    if (is_over) (void)shutdown(connection->socket, SHUT_RDWR);
  }
}

}  // namespace clew::serve
