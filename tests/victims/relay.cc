// SPDX-License-Identifier: Apache-2.0
// Victim `relay`: two servers behind each other, over TCP on the loopback interface or over UNIX
// sockets, and clients
// that ask the first one, several at a time. It asks the second one for each request, which knows
// the request's number from the message alone. So what a join by cause finds can be compared with
// what was so.
//
// `how N` says how messages travel from now on: the sum of the k... below. `elsewhere N` is `run N`
// with the second server in a child process. In `handed N` the second server is here, and hands
// each connection to a child when it has answered once.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(front_request);
VICTIM_COUNTER(back_request);
VICTIM_COUNTER(front_answer);

// Names of types that the kernel has, too.
struct sock {
  uint16_t sk_type;
};
struct unix_sock {
  sock sk;
  uint64_t inq_len;
};

namespace {

constexpr uint64_t kPeeks = 1;         // Looks at a message before it is read.
constexpr uint64_t kParts = 2;         // Sends and reads a message in parts.
constexpr uint64_t kSpliced = 4;       // Sends it through a pipe, without a buffer.
constexpr uint64_t kFile = 8;          // Sends it from a file.
constexpr uint64_t kVectors = 16;      // By writev() and readv().
constexpr uint64_t kOneShot = 32;      // A connection to the second server for each request.
constexpr uint64_t kSamePort = 64;     // As before, with the same port each time.
constexpr uint64_t kV6 = 128;          // Over IPv6.
constexpr uint64_t kUnix = 256;        // Over UNIX sockets.
constexpr uint64_t kPackets = 512;     // Over those that keep messages apart.
constexpr uint64_t kBound = 1024;      // Over UNIX sockets, and who connects has an address, too.
constexpr uint64_t kSpliceOut = 2048;  // The second server splices each 4th out, and does no work.
constexpr uint64_t kPair = 4096;       // The servers have pairs of UNIX sockets.
constexpr int kClients = 3;

std::atomic<uint64_t> how = 0;
std::atomic<uint64_t> digest = 0;
volatile unix_sock own_socket = {.sk = {.sk_type = 1}, .inq_len = 7};

bool travels(uint64_t which) {
  return (how & which) != 0;
}

}  // namespace

extern "C" VICTIM_FUNCTION void front_request(uint64_t request) {
  VICTIM_COUNT(front_request);
  digest += victim_mix(own_socket.sk.sk_type, request);
}

extern "C" VICTIM_FUNCTION void back_request(uint64_t request) {
  VICTIM_COUNT(back_request);
  digest += victim_mix(2, request);
}

extern "C" VICTIM_FUNCTION void front_answer(uint64_t request) {
  VICTIM_COUNT(front_answer);
  digest += victim_mix(3, request);
}

namespace {

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_un local;
};

constexpr uint64_t kAnyUnix = kUnix | kPackets | kBound;

// In place of a port, a name that no file has.
Address local(uint16_t port) {
  Address made{};
  made.local.sun_family = AF_UNIX;
  const std::string name = "relay." + std::to_string(getpid()) + "." + std::to_string(port);
  std::copy(name.begin(), name.end(), &made.local.sun_path[1]);
  return made;
}

Address loopback(uint16_t port) {
  if (travels(kAnyUnix)) return local(port);
  Address made{};
  if (travels(kV6)) {
    made.v6.sin6_family = AF_INET6;
    made.v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
    made.v6.sin6_port = htons(port);
  } else {
    made.v4.sin_family = AF_INET;
    made.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    made.v4.sin_port = htons(port);
  }
  return made;
}

socklen_t size_of(const Address& address) {
  if (address.any.sa_family == AF_UNIX) return sizeof address.local;
  return address.any.sa_family == AF_INET6 ? sizeof address.v6 : sizeof address.v4;
}

// The address of a UNIX socket comes from here.
std::atomic<uint16_t> last_name = 0;

int make_socket(uint16_t port, bool listens) {
  const bool is_unix = travels(kAnyUnix);
  const Address address = loopback(is_unix && port == 0 ? ++last_name : port);
  const int type = travels(kPackets) ? SOCK_SEQPACKET : SOCK_STREAM;
  const int made = socket(address.any.sa_family, type | SOCK_CLOEXEC, 0);
  const int on = 1;
  VICTIM_CHECK(setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  if (listens || !is_unix || travels(kBound))
    VICTIM_CHECK(bind(made, &address.any, size_of(address)) == 0);
  return made;
}

uint16_t port_of(int socket) {
  Address address{};
  socklen_t size = sizeof address;
  VICTIM_CHECK(getsockname(socket, &address.any, &size) == 0);
  if (address.any.sa_family == AF_UNIX) {
    const std::string_view name(&address.local.sun_path[1]);
    const std::string_view number = name.substr(name.rfind('.') + 1);
    uint16_t port = 0;
    std::from_chars(number.data(), number.data() + number.size(), port);
    return port;
  }
  return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

int listen_anywhere() {
  const int made = make_socket(0, true);
  VICTIM_CHECK(listen(made, 64) == 0);
  return made;
}

// What is sent goes at once.
int without_delay(int socket) {
  if (travels(kAnyUnix)) return socket;
  const int on = 1;
  VICTIM_CHECK(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
  return socket;
}

int accept_from(int listener) {
  const int made = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  return made < 0 ? made : without_delay(made);
}

int connect_to(uint16_t port, uint16_t from) {
  const int made = make_socket(from, false);
  const Address address = loopback(port);
  VICTIM_CHECK(connect(made, &address.any, size_of(address)) == 0);
  return without_delay(made);
}

using Message = std::array<char, 64>;  // A number, 8 times.

Message message_of(uint64_t request) {
  Message message{};
  for (size_t at = 0; at < message.size(); at += sizeof request)
    std::memcpy(&message[at], &request, sizeof request);
  return message;
}

uint64_t number_in(const Message& message) {
  uint64_t request = 0;
  std::memcpy(&request, message.data(), sizeof request);
  return request;
}

void send_spliced(int to, const Message& message) {
  std::array<int, 2> ends{};
  VICTIM_CHECK(pipe(ends.data()) == 0);
  VICTIM_CHECK(write(ends[1], message.data(), message.size()) == sizeof message);
  VICTIM_CHECK(splice(ends[0], nullptr, to, nullptr, message.size(), 0) == sizeof message);
  close(ends[0]);
  close(ends[1]);
}

void send_file(int to, const Message& message) {
  const int file = memfd_create("message", MFD_CLOEXEC);
  VICTIM_CHECK(write(file, message.data(), message.size()) == sizeof message);
  off_t begin = 0;
  VICTIM_CHECK(sendfile(to, file, &begin, message.size()) == sizeof message);
  close(file);
}

void send_message(int to, const Message& message) {
  if (travels(kSpliced)) return send_spliced(to, message);
  if (travels(kFile)) return send_file(to, message);
  size_t sent = 0;
  while (travels(kParts) && sent < 3)
    VICTIM_CHECK(send(to, &message[sent++], 1, MSG_NOSIGNAL) == 1);
  std::array<iovec, 2> parts = {
      {{const_cast<char*>(&message[sent]), 5},
       {const_cast<char*>(&message[sent + 5]), message.size() - sent - 5}}};
  const auto rest = static_cast<ssize_t>(message.size() - sent);
  if (travels(kVectors)) {
    VICTIM_CHECK(writev(to, parts.data(), parts.size()) == rest);
  } else {
    VICTIM_CHECK(write(to, &message[sent], message.size() - sent) == rest);
  }
}

bool receive_spliced(int from, Message& message) {
  std::array<int, 2> ends{};
  VICTIM_CHECK(pipe(ends.data()) == 0);
  size_t read = 0;
  while (read < message.size()) {
    const ssize_t moved = splice(from, nullptr, ends[1], nullptr, message.size() - read, 0);
    if (moved <= 0) break;
    VICTIM_CHECK(::read(ends[0], &message[read], static_cast<size_t>(moved)) == moved);
    read += static_cast<size_t>(moved);
  }
  close(ends[0]);
  close(ends[1]);
  return read == message.size();
}

// False: the other end is closed.
bool receive_message(int from, Message& message) {
  size_t read = 0;
  if (travels(kPeeks)) (void)recv(from, message.data(), message.size(), MSG_PEEK);
  while (read < message.size()) {
    const size_t most = travels(kParts) ? 7 : message.size();
    const size_t wanted = std::min(most, message.size() - read);
    std::array<iovec, 2> parts = {{{&message[read], 1}, {&message[read + 1], wanted - 1}}};
    const ssize_t count = travels(kVectors) ? readv(from, parts.data(), wanted > 1 ? 2 : 1)
                                            : recv(from, &message[read], wanted, 0);
    if (count <= 0) return false;
    read += static_cast<size_t>(count);
  }
  return true;
}

// --- the second server: a thread for each connection ---------------------------------------------

void serve_back(int connection) {
  Message message{};
  uint64_t count = 0;
  while (true) {
    const bool is_spliced = travels(kSpliceOut) && ++count % 4 == 0;
    if (!(is_spliced ? receive_spliced : receive_message)(connection, message)) break;
    if (!is_spliced) back_request(number_in(message));
    send_message(connection, message);
  }
  close(connection);
}

void run_back(int listener) {
  std::vector<std::thread> threads;
  while (true) {
    const int connection = accept_from(listener);
    if (connection < 0) break;
    threads.emplace_back(serve_back, connection);
  }
  for (std::thread& thread : threads)
    thread.join();
}

// --- the first one: a loop -----------------------------------------------------------------------

class Front {
 public:
  Front(int listener, uint16_t back) : listener_(listener), back_(back) {
    loop_ = epoll_create1(EPOLL_CLOEXEC);
    watch(listener_);
  }

  // Until all clients have gone.
  void run() {
    int left = kClients;
    while (left > 0) {
      std::array<epoll_event, 8> events{};
      const int count = epoll_wait(loop_, events.data(), events.size(), -1);
      for (int i = 0; i < count; ++i) {
        const int socket = events[static_cast<size_t>(i)].data.fd;
        if (socket == listener_) {
          watch(accept_from(listener_));
        } else if (client_of_.contains(socket)) {
          take_answer(socket);
        } else if (!take_request(socket)) {
          --left;
        }
      }
    }
    for (const auto& [client, server] : server_of_)
      close(server);
    for (std::thread& each : behind_pairs_)
      each.join();
    close(loop_);
  }

 private:
  void watch(int socket) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
    VICTIM_CHECK(epoll_ctl(loop_, EPOLL_CTL_ADD, socket, &event) == 0);
  }

  int server_of(int client) {
    const auto known = server_of_.find(client);
    if (known != server_of_.end()) return known->second;
    const bool is_same = travels(kSamePort) && last_port_ != 0;
    const int made = travels(kPair) ? make_pair() : connect_to(back_, is_same ? last_port_ : 0);
    if (travels(kSamePort) && !travels(kAnyUnix)) last_port_ = port_of(made);
    watch(made);
    client_of_[made] = client;
    return server_of_[client] = made;
  }

  // A second server of its own is at the other end.
  int make_pair() {
    std::array<int, 2> ends{};
    VICTIM_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    behind_pairs_.emplace_back(serve_back, ends[1]);
    return ends[0];
  }

  bool take_request(int client) {
    Message message{};
    if (!receive_message(client, message)) {
      close(client);
      return false;
    }
    front_request(number_in(message));
    send_message(server_of(client), message);
    // With one port there is one connection at a time.
    if (travels(kSamePort)) take_answer(server_of_[client]);
    return true;
  }

  void take_answer(int server) {
    Message message{};
    VICTIM_CHECK(receive_message(server, message));
    front_answer(number_in(message));
    const int client = client_of_[server];
    if (travels(kOneShot | kSamePort)) {
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      VICTIM_CHECK(setsockopt(server, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
      close(server);
      client_of_.erase(server);
      server_of_.erase(client);
    }
    send_message(client, message);
  }

  int listener_;
  uint16_t back_;
  int loop_;
  uint16_t last_port_ = 0;
  std::map<int, int> server_of_;  // By client,
  std::map<int, int> client_of_;  // and the other way round.
  std::vector<std::thread> behind_pairs_;
};

// --- the clients ---------------------------------------------------------------------------------

void ask(uint16_t front, uint64_t first, uint64_t count) {
  const int socket = connect_to(front, 0);
  for (uint64_t request = first; request < first + count; ++request) {
    Message answer{};
    send_message(socket, message_of(request));
    VICTIM_CHECK(receive_message(socket, answer) && number_in(answer) == request);
  }
  close(socket);
}

void run_clients(int front_listener, uint16_t back, uint64_t rounds) {
  std::vector<std::thread> clients;
  for (uint64_t i = 0; i < kClients; ++i)
    clients.emplace_back(ask, port_of(front_listener), 1'000'000 * (i + 1), rounds);
  Front(front_listener, back).run();
  for (std::thread& client : clients)
    client.join();
}

void elsewhere(uint64_t rounds) {
  const int front = listen_anywhere();
  const int back = listen_anywhere();
  const pid_t child = fork();
  if (child == 0) {
    run_back(back);
    _exit(0);
  }
  run_clients(front, port_of(back), rounds);
  VICTIM_CHECK(shutdown(back, SHUT_RDWR) == 0);
  int status = 0;
  VICTIM_CHECK(waitpid(child, &status, 0) == child && status == 0);
  close(back);
  close(front);
  victim_print("elsewhere", rounds);
}

// --- connections that go from a process to another one -------------------------------------------

union Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  cmsghdr header;
};

void hand(int to, int connection) {
  Control control{};
  char byte = 0;
  iovec part = {&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  control.header.cmsg_level = SOL_SOCKET;
  control.header.cmsg_type = SCM_RIGHTS;
  control.header.cmsg_len = CMSG_LEN(sizeof connection);
  std::memcpy(CMSG_DATA(&control.header), &connection, sizeof connection);
  VICTIM_CHECK(sendmsg(to, &message, MSG_NOSIGNAL) == 1);
  close(connection);
}

// Negative: there are no more.
int take_handed(int from) {
  Control control{};
  char byte = 0;
  iovec part = {&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  int connection = -1;
  std::memcpy(&connection, CMSG_DATA(&control.header), sizeof connection);
  return connection;
}

void serve_handed(int from) {
  std::vector<std::thread> threads;
  while (true) {
    const int connection = take_handed(from);
    if (connection < 0) break;
    threads.emplace_back(serve_back, connection);
  }
  for (std::thread& thread : threads)
    thread.join();
}

void hand_on(int listener, int to) {
  while (true) {
    const int connection = accept_from(listener);
    if (connection < 0) break;
    Message message{};
    VICTIM_CHECK(receive_message(connection, message));
    back_request(number_in(message));
    send_message(connection, message);
    hand(to, connection);
  }
  close(to);
}

void handed(uint64_t rounds) {
  std::array<int, 2> ends{};
  VICTIM_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const int front = listen_anywhere();
  const int back = listen_anywhere();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    close(back);
    serve_handed(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  std::thread hands(hand_on, back, ends[0]);
  run_clients(front, port_of(back), rounds);
  VICTIM_CHECK(shutdown(back, SHUT_RDWR) == 0);
  hands.join();
  int status = 0;
  VICTIM_CHECK(waitpid(child, &status, 0) == child && status == 0);
  close(back);
  close(front);
  victim_print("handed", rounds);
}

void set_how(uint64_t which) {
  how = which;
  victim_print("how", which);
}

}  // namespace

extern "C" uint64_t victim_run(uint64_t rounds) {
  digest = 0;
  const int front = listen_anywhere();
  const int back = listen_anywhere();
  std::thread server(run_back, back);
  run_clients(front, port_of(back), rounds);
  VICTIM_CHECK(shutdown(back, SHUT_RDWR) == 0);
  server.join();
  close(back);
  close(front);
  return digest;
}

extern "C" const VictimCommand victim_commands[] = {
    {"how", set_how}, {"elsewhere", elsewhere}, {"handed", handed}, {nullptr, nullptr}};
