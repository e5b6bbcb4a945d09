// SPDX-License-Identifier: Apache-2.0
#include "metrics/server.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "metrics/threads.h"

namespace clew::metrics {
namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr size_t kScrapesAtOnce = 4;

}  // namespace

// One thread listens, and few serve; they and the owner meet under the lock.
class Server::Http {
 public:
  Http() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    server_.new_task_queue = [] {
      return std::make_unique<httplib::ThreadPool>(kScrapesAtOnce).release();
    };
    // A port that another root has is not ours, too.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      (void)setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      const std::optional<std::string> text = wait();
      response.status = text ? 200 : 503;
      if (text) response.set_content(*text, "text/plain; version=0.0.4; charset=utf-8");
    });
  }
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  ~Http() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    answered_.notify_all();
    server_.stop();
    if (listener_.joinable()) listener_.join();
  }

  // False: errno says why, where it is not 0.
  bool listen(const std::string& host, int port) {
    host_ = host;
    errno = 0;
    port_ =
        port == 0 ? server_.bind_to_any_port(host) : (server_.bind_to_port(host, port) ? port : -1);
    if (port_ < 0) return false;
    const SignalsBlocked blocked;
    listener_ = std::thread([this] { (void)server_.listen_after_bind(); });
    // It can be stopped from then on.
    while (!server_.is_running())
      std::this_thread::yield();
    return true;
  }
  [[nodiscard]] int descriptor() const { return event_.get(); }
  [[nodiscard]] std::string url() const {
    return fmt::format("http://{}:{}/metrics", host_, port_);
  }

  void answer(const std::string& text) {
    uint64_t count = 0;
    (void)!read(event_.get(), &count, sizeof count);
    {
      const std::lock_guard lock(mutex_);
      text_ = text;
      ++answers_;
    }
    answered_.notify_all();
  }
  void show(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
    is_shown_ = true;
  }

 private:
  std::optional<std::string> wait() {
    std::unique_lock lock(mutex_);
    if (is_shown_) return text_;
    const uint64_t before = answers_;
    const uint64_t one = 1;
    (void)!write(event_.get(), &one, sizeof one);
    const bool is_answered =
        answered_.wait_for(lock, kPatience, [&] { return answers_ != before || is_ending_; });
    if (!is_answered || is_ending_) return std::nullopt;
    return text_;
  }

  FileDescriptor event_;
  httplib::Server server_;
  std::thread listener_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::string text_;
  uint64_t answers_ = 0;
  bool is_shown_ = false;
  bool is_ending_ = false;
  std::string host_;
  int port_ = -1;
};

namespace {

bool is_known(const std::string& host) {
  const std::string name = host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(name.c_str(), nullptr, nullptr, &found);
  if (problem == 0) freeaddrinfo(found);
  return problem == 0;
}

tl::unexpected<Error> no_place(const std::string& address, const std::string& host, int error) {
  if (!is_known(host))
    return fail(ErrorCode::NotFound, fmt::format("no machine is known as '{}'", host));
  if (error == EADDRNOTAVAIL)
    return fail(ErrorCode::NotFound, fmt::format("{} is no address of this machine", host));
  if (error == EADDRINUSE)
    return fail(ErrorCode::Io, fmt::format("another program listens at {} already", address));
  return fail(ErrorCode::Io, fmt::format("cannot listen at {}{}{}", address, error == 0 ? "" : ": ",
                                         error == 0 ? "" : error_text(error)));
}

}  // namespace

Expected<std::unique_ptr<Server>> Server::start(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon != std::string::npos)
    (void)std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  if (colon == 0 || port < 0 || port > 65'535) {
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("'{}' is no address; one is written HOST:PORT, as in 127.0.0.1:9464", address));
  }
  auto http = std::make_unique<Http>();
  const std::string host = address.substr(0, colon);
  if (!http->listen(host, port)) return no_place(address, host, errno);
  return std::make_unique<Server>(std::move(http));
}

Server::Server(std::unique_ptr<Http> http) : http_(std::move(http)) {}
Server::~Server() = default;

int Server::descriptor() const {
  return http_->descriptor();
}

std::string Server::url() const {
  return http_->url();
}

void Server::answer(const std::string& text) {
  http_->answer(text);
}

void Server::show(std::string text) {
  http_->show(std::move(text));
}

}  // namespace clew::metrics
