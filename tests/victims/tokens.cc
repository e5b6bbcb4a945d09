// SPDX-License-Identifier: Apache-2.0
// Victim `tokens`: requests that go to other processes by tokens (clew/cause.h), in messages of all
// kinds. Each message says for the test which request it is of. What goes on with it calls work()
// with that, or with 0 where it must be nobody's.
//
//     send N, listen N         by a FIFO: 4 threads and 4 children send N each; N are received
//     ask N, serve N           by HTTP, 4 threads each: a client, and a server
//     publish N, subscribe N   by NATS, whose port is TOKENS_NATS
//     execute N                by the environment, to programs that are executed
//     hostile N                N requests among tokens that are none
//     replay N                 one request, whose token is received N times
//     texts N                  N requests whose messages have texts, of which a vocabulary knows
//
// In the folder TOKENS are the FIFO and the sockets.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clew/cause.h"
#include "victim.h"

VICTIM_COUNTER(receive);
VICTIM_COUNTER(work);

extern "C" VICTIM_FUNCTION void receive(uint64_t request) {
  VICTIM_COUNT(receive);
  VICTIM_CHECK(request != 0);
}

extern "C" VICTIM_FUNCTION void work(uint64_t request) {
  VICTIM_COUNT(work);
  VICTIM_CHECK(request != UINT64_MAX);
}

namespace {

constexpr uint64_t kThreads = 4;

std::string file(const char* name) {
  const char* const folder = getenv("TOKENS");
  VICTIM_CHECK(folder != nullptr);
  return std::string(folder == nullptr ? "" : folder) + "/" + name;
}

// Each of several threads does the same with its number.
template <typename Act>
void in_threads(const Act& act) {
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&act, i] { act(i); });
  for (std::thread& thread : threads)
    thread.join();
}

// The request numbers of one of the senders.
uint64_t request_of(uint64_t sender, uint64_t i) {
  return (sender + 1) * 1'000'000 + i;
}

// --- a FIFO --------------------------------------------------------------------------------------

struct Message {
  uint64_t request;
  std::array<char, CLEW_CAUSE_TEXT> token;
};

void send_some(int to, uint64_t sender, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    Message message{};
    message.request = request_of(sender, i);
    clew_cause_begin();
    receive(message.request);
    clew_cause_send_text(message.token.data());
    clew_cause_end();
    VICTIM_CHECK(write(to, &message, sizeof message) == sizeof message);
  }
}

void send(uint64_t count) {
  const int to = open(file("fifo").c_str(), O_WRONLY | O_CLOEXEC);
  std::array<char, CLEW_CAUSE_TEXT> first{};
  clew_cause_send_text(first.data());  // The children have its key, if they inherit any.
  std::array<pid_t, kThreads> children{};
  for (uint64_t i = 0; i < kThreads; ++i) {
    children[i] = fork();
    if (children[i] != 0) continue;
    send_some(to, kThreads + i, count);
    _exit(0);
  }
  in_threads([&](uint64_t i) { send_some(to, i, count); });
  for (const pid_t child : children)
    VICTIM_CHECK(waitpid(child, nullptr, 0) == child);
  close(to);
  victim_print("sent", 2 * kThreads * count);
}

// Whoever goes on with the message is of its request.
void go_on(uint64_t request, const char* token, size_t length) {
  (void)clew_cause_receive_text(token, length);
  work(request);
  clew_cause_end();
}

void listen_to_fifo(uint64_t count) {
  const int from = open(file("fifo").c_str(), O_RDONLY | O_CLOEXEC);
  std::atomic<uint64_t> received = 0;
  in_threads([&](uint64_t) {
    Message message{};
    while (read(from, &message, sizeof message) == sizeof message) {
      go_on(message.request, message.token.data(), strlen(message.token.data()));
      ++received;
    }
  });
  close(from);
  VICTIM_CHECK(received == count);
  victim_print("received", received);
}

// --- HTTP ----------------------------------------------------------------------------------------

int connect_to(const std::string& path, bool listens) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  VICTIM_CHECK(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);
  if (listens) {
    VICTIM_CHECK(bind(made, plain, sizeof address) == 0 && listen(made, 64) == 0);
  } else {
    VICTIM_CHECK(connect(made, plain, sizeof address) == 0);
  }
  return made;
}

// Up to and with what ends it.
std::string read_until(int from, std::string_view end) {
  std::string text;
  std::array<char, 4096> part{};
  while (text.find(end) == std::string::npos) {
    const ssize_t size = read(from, part.data(), part.size());
    if (size <= 0) break;
    text.append(part.data(), static_cast<size_t>(size));
  }
  return text;
}

// Of a header in the lower case of HTTP/2, or as it was sent.
std::string header(const std::string& text, std::string_view name) {
  const std::string wanted = "\r\n" + std::string(name) + ": ";
  const size_t at = text.find(wanted);
  if (at == std::string::npos) return "";
  const size_t begin = at + wanted.size();
  return text.substr(begin, text.find('\r', begin) - begin);
}

void write_all(int to, const std::string& text) {
  VICTIM_CHECK(write(to, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void serve(uint64_t count) {
  const int listening = connect_to(file("backend"), true);
  victim_print("listens", 1);
  fflush(stdout);
  std::atomic<uint64_t> left = count;
  std::atomic<uint64_t> kept = 0;
  in_threads([&](uint64_t) {
    while (left.fetch_sub(1) - 1 < count) {
      const int connection = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      const std::string request = read_until(connection, "\r\n\r\n");
      const std::string baggage = header(request, CLEW_CAUSE_HTTP);
      if (baggage.starts_with("user=%20x;p=1,")) ++kept;
      (void)clew_cause_receive_baggage(baggage.data(), baggage.size());
      work(strtoull(header(request, "X-Request").c_str(), nullptr, 10));
      clew_cause_end();
      write_all(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
      close(connection);
    }
  });
  close(listening);
  victim_print("kept", kept);
}

void ask(uint64_t count) {
  std::atomic<uint64_t> answers = 0;
  in_threads([&](uint64_t thread) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t request = request_of(thread, i);
      std::array<char, 256> baggage{"user=%20x;p=1, clew=old"};
      clew_cause_begin();
      receive(request);
      (void)clew_cause_send_baggage(baggage.data(), strlen(baggage.data()), baggage.size());
      clew_cause_end();
      const int connection = connect_to(file("front"), false);
      write_all(connection, "GET / HTTP/1.1\r\nHost: x\r\nX-Request: " + std::to_string(request) +
                                "\r\n" CLEW_CAUSE_HTTP ": " + baggage.data() +
                                "\r\nConnection: close\r\n\r\n");
      if (read_until(connection, "\r\n\r\nok").starts_with("HTTP/1.1 200")) ++answers;
      close(connection);
    }
  });
  victim_print("answers", answers);
}

// --- NATS ----------------------------------------------------------------------------------------

// A client's connection, by the text that its protocol is.
class Nats {
 public:
  Nats() : connection_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(atoi(getenv("TOKENS_NATS"))));
    VICTIM_CHECK(connect(connection_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    VICTIM_CHECK(line().starts_with("INFO "));
    say("CONNECT {\"verbose\":false,\"headers\":true}\r\n");
  }
  Nats(const Nats&) = delete;
  Nats& operator=(const Nats&) = delete;
  ~Nats() { close(connection_); }

  void say(const std::string& text) const { write_all(connection_, text); }
  // The server has done all that was said before.
  void settle() {
    say("PING\r\n");
    VICTIM_CHECK(line() == "PONG");
  }
  std::string line() {
    while (true) {
      const size_t end = text_.find("\r\n");
      if (end != std::string::npos) return take(end, 2);
      if (!fill()) return "";
    }
  }
  std::string bytes(size_t count) {
    while (text_.size() < count + 2 && fill()) {
    }
    return take(count, 2);
  }

 private:
  bool fill() {
    std::array<char, 4096> part{};
    const ssize_t size = read(connection_, part.data(), part.size());
    VICTIM_CHECK(size > 0);
    if (size > 0) text_.append(part.data(), static_cast<size_t>(size));
    return size > 0;
  }
  std::string take(size_t size, size_t behind) {
    const std::string taken = text_.substr(0, size);
    text_.erase(0, size + behind);
    return taken;
  }

  int connection_;
  std::string text_;
};

void publish(uint64_t count) {
  Nats nats;
  for (uint64_t request = 1; request <= count; ++request) {
    std::array<char, CLEW_CAUSE_TEXT> token{};
    clew_cause_begin();
    receive(request);
    clew_cause_send_text(token.data());
    clew_cause_end();
    const std::string headers =
        "NATS/1.0\r\n" CLEW_CAUSE_NATS ": " + std::string(token.data()) + "\r\n\r\n";
    const std::string payload = std::to_string(request);
    nats.say("HPUB orders " + std::to_string(headers.size()) + " " +
             std::to_string(headers.size() + payload.size()) + "\r\n" + headers + payload + "\r\n");
  }
  nats.settle();
  victim_print("published", count);
}

// "HMSG orders 1 HEADERS ALL", then the headers and the payload, which is the request.
void subscribe(uint64_t count) {
  Nats nats;
  nats.say("SUB orders 1\r\n");
  nats.settle();
  victim_print("listens", 1);
  fflush(stdout);
  for (uint64_t i = 0; i < count; ++i) {
    size_t headers = 0;
    size_t all = 0;
    const std::string head = nats.line();
    VICTIM_CHECK(sscanf(head.c_str(), "HMSG orders 1 %zu %zu", &headers, &all) == 2);
    const std::string message = nats.bytes(all);
    const std::string token = header(message, CLEW_CAUSE_NATS);
    go_on(strtoull(message.c_str() + headers, nullptr, 10), token.data(), token.size());
  }
  victim_print("received", count);
}

// --- tokens that are none, or another's ----------------------------------------------------------

// Text whose last byte is the last one that can be read.
class AtTheEdge {
 public:
  AtTheEdge() {
    void* const made =
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VICTIM_CHECK(made != MAP_FAILED);
    pages_ = static_cast<char*>(made);
    VICTIM_CHECK(mprotect(pages_ + kPage, kPage, PROT_NONE) == 0);
  }
  const char* put(std::string_view text) {
    char* const at = pages_ + kPage - text.size();
    text.copy(at, text.size());
    return at;
  }

 private:
  static constexpr size_t kPage = 4096;
  char* pages_;
};

struct Counted {
  uint64_t bad = 0;
  uint64_t unknown = 0;
};

// As a child that nobody traces makes it.
std::string foreign_token() {
  std::array<int, 2> ends{};
  VICTIM_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0);
  const pid_t child = fork();
  std::array<char, CLEW_CAUSE_TEXT> token{};
  if (child == 0) {
    clew_cause_send_text(token.data());
    _exit(write(ends[1], token.data(), token.size()) == static_cast<ssize_t>(token.size()) ? 0 : 1);
  }
  VICTIM_CHECK(read(ends[0], token.data(), token.size()) == static_cast<ssize_t>(token.size()));
  VICTIM_CHECK(waitpid(child, nullptr, 0) == child);
  close(ends[0]);
  close(ends[1]);
  return token.data();
}

void receive_bad(AtTheEdge& edge, const std::string& good, Counted& counted) {
  static const std::string long_text(1 << 20, 'a');
  std::string upper = good;
  upper[7] = 'A';
  std::string other = good;
  other[31] = '\0';
  const auto bad = [&](std::string_view text) {
    VICTIM_CHECK(clew_cause_receive_text(text.data(), text.size()) == 0);
    work(0);
    ++counted.bad;
  };
  bad(good.substr(0, 31));
  bad(good + "0");
  bad(upper);
  bad(other);
  bad(long_text);
  bad(std::string(32, '0'));
  bad({edge.put("f"), 1});
  bad({edge.put(good.substr(1)), 31});
  VICTIM_CHECK(clew_cause_receive_string(edge.put(std::string(33, 'a'))) == 0);
  work(0);
  ++counted.bad;
  for (const std::string& baggage : {"clew=" + good + ",clew=" + good, "a=1,clew=" + good + "0",
                                     std::string("clew="), "clew=" + good + "," + long_text}) {
    VICTIM_CHECK(clew_cause_receive_baggage(baggage.data(), baggage.size()) == 0);
    work(0);
    ++counted.bad;
  }
}

void receive_unknown(AtTheEdge& edge, const std::string& good, Counted& counted) {
  std::string forged = good;
  forged[counted.unknown % 32] = good[counted.unknown % 32] == '0' ? '1' : '0';
  for (const std::string& text : {forged, foreign_token()}) {
    VICTIM_CHECK(clew_cause_receive_text(edge.put(text), text.size()) == 1);
    work(0);
    ++counted.unknown;
  }
}

// No header is no token, and no error.
void receive_none(const std::string& good) {
  const std::string others = "clewx=" + good + ",xclew=" + good + ", a=b";
  VICTIM_CHECK(clew_cause_receive_text(nullptr, 32) == 0);
  work(0);
  VICTIM_CHECK(clew_cause_receive_string(nullptr) == 0);
  work(0);
  VICTIM_CHECK(clew_cause_receive_baggage(others.data(), others.size()) == 0);
  work(0);
}

void hostile(uint64_t count) {
  AtTheEdge edge;
  Counted counted;
  for (uint64_t request = 1; request <= count; ++request) {
    std::array<char, CLEW_CAUSE_TEXT> token{};
    clew_cause_begin();
    receive(request);
    clew_cause_send_text(token.data());
    // What comes in between must not stay in the request.
    receive_bad(edge, token.data(), counted);
    receive_unknown(edge, token.data(), counted);
    receive_none(token.data());
    VICTIM_CHECK(clew_cause_receive_text(edge.put(token.data()), 32) == 1);
    work(request);
    clew_cause_end();
  }
  victim_print("bad", counted.bad);
  victim_print("unknown", counted.unknown);
}

void replay(uint64_t count) {
  std::array<char, CLEW_CAUSE_TEXT> token{};
  clew_cause_begin();
  receive(1);
  clew_cause_send_text(token.data());
  clew_cause_end();
  for (uint64_t i = 0; i < count; ++i)
    go_on(1, token.data(), 32);
  victim_print("replayed", count);
}

// --- texts that nobody but the program knows of -------------------------------------------------

}  // namespace

extern "C" VICTIM_FUNCTION void send_order(const char* id, uint64_t request) {
  VICTIM_CHECK(id != nullptr && request != 0);
}

extern "C" VICTIM_FUNCTION void receive_order(const char* id, uint64_t request) {
  VICTIM_CHECK(id == nullptr || request != UINT64_MAX);
}

namespace {

void go_on_with_order(const char* id, uint64_t request) {
  receive_order(id, request);
  work(request);
  clew_cause_end();
}

void texts(uint64_t count) {
  for (uint64_t request = 1; request <= count; ++request) {
    // Shorter and longer than what fits into numbers, and of the same beginning.
    const std::string id = "order-" + std::string(request % 20, 'x') + std::to_string(request);
    clew_cause_begin();
    receive(request);
    send_order(id.c_str(), request);
    clew_cause_end();
    go_on_with_order(id.c_str(), request);
    go_on_with_order((id + "0").c_str(), 0);
    go_on_with_order(id.substr(1).c_str(), 0);
    go_on_with_order("", 0);
    go_on_with_order(nullptr, 0);
  }
  // The same text of two requests.
  for (uint64_t request = count + 1; request <= count + 2; ++request) {
    clew_cause_begin();
    receive(request);
    send_order("order-of-two", request);
    clew_cause_end();
  }
  go_on_with_order("order-of-two", 0);
  victim_print("texts", count);
}

// --- a program that is executed ------------------------------------------------------------------

// Until the probe is there: a session does not know what happens before. Without one there are two
// nops, of 2 and 8 bytes. No instruction may say that it goes to the middle of these.
void wait_for_probe() {
  const auto* code = reinterpret_cast<const volatile uint8_t*>(&clew_cause_receive_token);
  asm volatile("" : "+r"(code));
  while (code[0] == 0x66 && code[2] == 0x0f)
    sched_yield();
}

// What the program does that is executed.
void be_executed(uint64_t request) {
  wait_for_probe();
  VICTIM_CHECK(clew_cause_receive_string(getenv(CLEW_CAUSE_ENVIRONMENT)) == 1);
  work(request);
}

// Becomes this program, with one command.
void execute_one(uint64_t request, const char* token) {
  // It waits, for who started this.
  VICTIM_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  std::array<int, 2> ends{};
  VICTIM_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0);
  write_all(ends[1], "be_executed " + std::to_string(request) + "\nexit\n");
  VICTIM_CHECK(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  VICTIM_CHECK(dup2(nowhere, STDOUT_FILENO) == STDOUT_FILENO);
  setenv(CLEW_CAUSE_ENVIRONMENT, token, 1);
  execl("/proc/self/exe", "tokens", nullptr);
  _exit(1);
}

void execute(uint64_t count) {
  for (uint64_t request = 1; request <= count; ++request) {
    std::array<char, CLEW_CAUSE_TEXT> token{};
    clew_cause_begin();
    receive(request);
    clew_cause_send_text(token.data());
    clew_cause_end();
    const pid_t child = fork();
    if (child == 0) execute_one(request, token.data());
    int status = 1;
    VICTIM_CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  victim_print("executed", count);
}

}  // namespace

extern "C" uint64_t victim_run(uint64_t rounds) {
  hostile(rounds);
  return rounds;
}

extern "C" const VictimCommand victim_commands[] = {
    {"send", send},       {"listen", listen_to_fifo}, {"ask", ask},
    {"serve", serve},     {"execute", execute},       {"be_executed", be_executed},
    {"hostile", hostile}, {"replay", replay},         {"texts", texts},
    {"publish", publish}, {"subscribe", subscribe},   {nullptr, nullptr}};
