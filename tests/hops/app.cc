// SPDX-License-Identifier: Apache-2.0
// The application of the test bed, a program of a stranger: an HTTP server that asks redis and
// PostgreSQL about the id in the path of a request, and answers with what both say.
//
//     hops_threads|hops_pool|hops_tasks|hops_glib|hops_says PORT REDIS_HOST:PORT
//     POSTGRESQL_HOST:PORT
//
// A path in place of any of these is that of a UNIX socket.
// hops_threads has a thread for each connection. In the others one thread reads all connections,
// and 8 workers take the requests from a queue; hops_says says so with <clew/cause.h>. The queue of
// hops_tasks is one of functions, hops_glib has GThreadPools, and hops_uv has libuv's threads. Each
// thread that works has its own connections to both servers.
// GET /r/ID asks redis alone, /p/ID PostgreSQL alone, and any other path both.
#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef HAS_GLIB
#include <glib.h>
#endif
#ifdef HAS_UV
#include <uv.h>
#endif

#ifdef SAYS_CAUSES
#include "clew/cause.h"
#else
static void clew_cause_begin() {}
static void clew_cause_end() {}
static void clew_cause_put(const void*) {}
static void clew_cause_take(const void*) {}
#endif

#define APP_FUNCTION extern "C" __attribute__((noinline))

namespace {

constexpr const char* kSeparator = "\r\n\r\n";

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "hops: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

// --- connections ---------------------------------------------------------------------------------

struct Address {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

Address address_of_path(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) fail(path);
  path.copy(address.sun_path, path.size());
  Address made;
  std::memcpy(&made.bytes, &address, sizeof address);
  made.size = sizeof address;
  return made;
}

Address address_of(const std::string& text) {
  if (text[0] == '/') return address_of_path(text);
  const size_t colon = text.find(':');
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(text.substr(colon + 1))));
  if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) fail(text);
  Address made;
  std::memcpy(&made.bytes, &address, sizeof address);
  made.size = sizeof address;
  return made;
}

int socket_for(const Address& address) {
  const int fd = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

int connect_to(const std::string& text) {
  const Address address = address_of(text);
  const int fd = socket_for(address);
  if (connect(fd, address.get(), address.size) != 0) fail(text);
  return fd;
}

void send_all(int fd, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = write(fd, bytes.data() + sent, bytes.size() - sent);
    if (now <= 0) return;  // The peer has gone, and will not read an answer.
    sent += static_cast<size_t>(now);
  }
}

// Appends what has come; false at the end of the stream.
bool receive_more(int fd, std::string& bytes) {
  std::array<char, 4096> buffer{};
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got > 0) bytes.append(buffer.data(), static_cast<size_t>(got));
  return got > 0;
}

// A request and its answer on a connection that carries one at a time. `value_of` gives the
// answer's value once it is whole.
template <typename ValueOf>
std::string ask(int fd, const std::string& request, const ValueOf& value_of) {
  send_all(fd, request);
  std::string answer;
  std::optional<std::string> value;
  while (!(value = value_of(answer)))
    if (!receive_more(fd, answer)) fail("a server has hung up");
  return *value;
}

// --- redis ---------------------------------------------------------------------------------------

// `$6\r\nabcdef\r\n`, or `$-1\r\n` for no value.
std::optional<std::string> redis_value(const std::string& answer) {
  const size_t end = answer.find("\r\n");
  if (end == std::string::npos) return std::nullopt;
  const int size = std::stoi(answer.substr(1, end - 1));
  if (size < 0) return "none";
  if (answer.size() < end + 4 + static_cast<size_t>(size)) return std::nullopt;
  return answer.substr(end + 2, static_cast<size_t>(size));
}

// --- PostgreSQL ----------------------------------------------------------------------------------

void put_big_endian(std::string& bytes, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> shift);
}

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// The first column of the last row, when the server is ready for the next statement.
std::optional<std::string> postgresql_value(const std::string& answer) {
  std::string value = "none";
  for (size_t at = 0; at + 5 <= answer.size();) {
    const size_t next = at + 1 + big_endian(answer, at + 1);
    if (next > answer.size()) return std::nullopt;
    if (answer[at] == 'E') fail("PostgreSQL: " + answer.substr(at + 5, next - at - 5));
    if (answer[at] == 'D') value = answer.substr(at + 11, big_endian(answer, at + 7));
    if (answer[at] == 'Z') return value;
    at = next;
  }
  return std::nullopt;
}

std::string postgresql_start() {
  using std::string_literals::operator""s;
  const std::string parameters = "user\0tester\0database\0postgres\0\0"s;
  std::string message;
  put_big_endian(message, static_cast<uint32_t>(8 + parameters.size()));
  put_big_endian(message, 3 << 16);  // Version 3.0 of the protocol.
  return message + parameters;
}

std::string postgresql_query(const std::string& statement) {
  std::string message = "Q";
  put_big_endian(message, static_cast<uint32_t>(statement.size() + 5));
  return message + statement + '\0';
}

// --- the servers behind --------------------------------------------------------------------------

struct Addresses {
  std::string redis;
  std::string postgresql;
};

class Behind {
 public:
  explicit Behind(const Addresses& to)
      : redis_(connect_to(to.redis)), postgresql_(connect_to(to.postgresql)) {
    ask(postgresql_, postgresql_start(), postgresql_value);
  }
  Behind(const Behind&) = delete;
  Behind& operator=(const Behind&) = delete;
  ~Behind() {
    close(redis_);
    close(postgresql_);
  }

  [[nodiscard]] std::string redis(const std::string& id) const {
    return ask(redis_, "GET hops:" + id + "\r\n", redis_value);
  }
  [[nodiscard]] std::string postgresql(const std::string& id) const {
    return ask(postgresql_, postgresql_query("select reverse('" + id + "')"), postgresql_value);
  }

 private:
  int redis_;
  int postgresql_;
};

}  // namespace

struct Job {
  int fd;
  char kind;
  std::string id;
};

// A request has been read.
APP_FUNCTION void on_request(const char* id) {
  asm volatile("" : : "r"(id) : "memory");
}

// A thread begins to work for it.
APP_FUNCTION void work_on(const char* id) {
  asm volatile("" : : "r"(id) : "memory");
}

// Both servers have answered.
APP_FUNCTION void before_answer(const char* id) {
  asm volatile("" : : "r"(id) : "memory");
}

// A job goes into the queue, and comes out.
APP_FUNCTION void submit(const Job* job) {
  clew_cause_put(job);
  asm volatile("" : : "r"(job) : "memory");
}
APP_FUNCTION void begin_job(const Job* job) {
  clew_cause_take(job);
  asm volatile("" : : "r"(job) : "memory");
}

namespace {

// Takes one request from the front of `bytes`, if it is whole.
std::optional<Job> take_request(int fd, std::string& bytes) {
  const size_t end = bytes.find(kSeparator);
  if (end == std::string::npos) return std::nullopt;
  const size_t path = bytes.find('/');
  Job job = {.fd = fd, .kind = bytes[path + 1], .id = ""};
  job.id = bytes.substr(path + 3, bytes.find(' ', path) - path - 3);
  bytes.erase(0, end + std::strlen(kSeparator));
  clew_cause_begin();
  on_request(job.id.c_str());
  return job;
}

void answer(const Job& job, const Behind& behind) {
  work_on(job.id.c_str());
  std::string body = job.id;
  if (job.kind != 'p') body += " " + behind.redis(job.id);
  if (job.kind != 'r') body += " " + behind.postgresql(job.id);
  before_answer(job.id.c_str());
  send_all(job.fd,
           "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + kSeparator + body);
}

int listen_at(const std::string& where) {
  const bool is_path = where[0] == '/';
  const Address address = address_of(is_path ? where : "127.0.0.1:" + where);
  const int fd = socket_for(address);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, address.get(), address.size) != 0) fail("bind");
  if (listen(fd, 128) != 0) fail("listen");
  return fd;
}

int accept_from(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

#ifndef HAS_POOL
// --- a thread for each connection ----------------------------------------------------------------

void serve_connection(int fd, const Addresses& addresses) {
  const Behind behind(addresses);
  for (std::string bytes; receive_more(fd, bytes);) {
    while (const std::optional<Job> job = take_request(fd, bytes)) {
      answer(*job, behind);
      clew_cause_end();
    }
  }
  close(fd);
}

void serve_by_threads(int listener, const Addresses& addresses) {
  while (true)
    std::thread(serve_connection, accept_from(listener), addresses).detach();
}

#else
// --- a pool of workers ---------------------------------------------------------------------------

constexpr int kWorkers = 8;

#ifdef POOL
#include POOL  // Another Queue, and its start_workers().
#else
class Queue {
 public:
  void put(Job* job) {
    submit(job);
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
    is_there_.notify_one();
  }
  Job* take() {
    std::unique_lock lock(mutex_);
    is_there_.wait(lock, [this] { return !jobs_.empty(); });
    Job* const job = jobs_.front();
    jobs_.pop_front();
    begin_job(job);
    return job;
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_there_;
  std::deque<Job*> jobs_;
};

void work(Queue& queue, const Addresses& addresses) {
  const Behind behind(addresses);
  while (true) {
    Job* const job = queue.take();
    answer(*job, behind);
    delete job;
    clew_cause_end();
  }
}

void start_workers(Queue& queue, const Addresses& addresses) {
  for (int i = 0; i < kWorkers; ++i)
    std::thread(work, std::ref(queue), addresses).detach();
}
#endif

void watch(int poll, int fd) {
  epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
  if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

// What has come on a connection goes into the queue.
void read_requests(int fd, std::map<int, std::string>& read, Queue& queue) {
  std::string& bytes = read[fd];
  if (!receive_more(fd, bytes)) {
    read.erase(fd);
    close(fd);
    return;
  }
  while (std::optional<Job> job = take_request(fd, bytes)) {
    queue.put(new Job(std::move(*job)));
    clew_cause_end();
  }
}

void serve_by_pool(int listener, const Addresses& addresses) {
  Queue queue;
  start_workers(queue, addresses);
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  watch(poll, listener);
  std::map<int, std::string> read;
  while (true) {
    epoll_event event = {};
    if (epoll_wait(poll, &event, 1, -1) != 1) continue;
    if (event.data.fd == listener) {
      watch(poll, accept_from(listener));
    } else {
      read_requests(event.data.fd, read, queue);
    }
  }
}
#endif

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fputs("usage: hops_… PORT REDIS POSTGRESQL\n", stderr);
    return 2;
  }
  const Addresses addresses = {.redis = arguments[2], .postgresql = arguments[3]};
  const int listener = listen_at(arguments[1]);
#ifdef HAS_POOL
  serve_by_pool(listener, addresses);
#else
  serve_by_threads(listener, addresses);
#endif
}
