// SPDX-License-Identifier: Apache-2.0
// All functions of a real server at once: thousands of sites, installed while it answers.
#include <cstdio>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inline/attachment.h"
#include "inline/brief_wait.h"
#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::cell;
using testing_::changed_text;
using testing_::Footprint;
using testing_::footprint_of;
using testing_::install_counters;
using testing_::module_of;

constexpr const char* kServer = "/usr/bin/redis-server";

// A redis-server of our own on a free port.
class Server {
 public:
  Server() {
    port_ = free_port();
    pid_ = fork();
    if (pid_ == 0) {
      const std::string port = std::to_string(port_);
      (void)!freopen("/dev/null", "w", stdout);
      execl(kServer, kServer, "--port", port.c_str(), "--save", "", "--bind", "127.0.0.1", nullptr);
      _exit(127);
    }
    while (ask("PING\r\n") != "+PONG\r\n" && waitpid(pid_, nullptr, WNOHANG) == 0)
      wait_briefly(std::chrono::microseconds(1000));  // Until it listens.
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }

  // Sends bytes on a new connection and returns the first part of the answer.
  [[nodiscard]] std::string ask(const std::string& request) const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = to_address(port_);
    char answer[4096] = "";
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      (void)!write(fd, request.data(), request.size());
      (void)!read(fd, answer, sizeof answer - 1);
    }
    close(fd);
    return answer;
  }

 private:
  static sockaddr_in to_address(uint16_t port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static uint16_t free_port() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = to_address(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    close(fd);
    return ntohs(address.sin_port);
  }

  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

TEST(AllFunctionsOfAServer, AreCountedWithoutHarm) {
  ASSERT_EQ(access(kServer, X_OK), 0) << kServer << " is not installed";
  const Server server;
  const auto module = module_of(server.pid(), "redis");
  ASSERT_NE(module, nullptr);
  const Footprint before = footprint_of(server.pid());
  auto attachment = Attachment::open(server.pid(), testing_::small_options());
  ASSERT_TRUE(attachment.has_value()) << attachment.error().message;
  std::vector<code::Request> requests;
  for (const target::Function& function : module->image.functions()) {
    requests.push_back({.kind = code::RequestKind::Entry, .address = function.address});
    requests.push_back({.kind = code::RequestKind::Exits, .address = function.address});
  }
  const code::Plan plan = plan_windows(module->code, requests);
  // More points than cells: all share one.
  const auto report = install_counters(*attachment, *module, plan, {.shared_cell = true});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  std::printf("%zu points in %u windows, stopped %.2f ms\n", plan.points.size(), report->windows,
              static_cast<double>(attachment->stops().longest.count()) / 1e6);
  EXPECT_TRUE(report->refusals.empty());
  const uint64_t quiet = cell(*attachment, 0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(server.ask("SET key value\r\n"), "+OK\r\n");
    ASSERT_EQ(server.ask("GET key\r\n"), "$5\r\nvalue\r\n");
  }
  EXPECT_GT(cell(*attachment, 0), quiet + 10'000);
  const auto done = attachment->detach();
  ASSERT_TRUE(done.has_value());
  std::printf("detached, stopped %.2f ms\n",
              static_cast<double>(attachment->stops().longest.count()) / 1e6);
  EXPECT_FALSE(done->residue) << done->residue_reason;
  EXPECT_TRUE(changed_text(server.pid()).empty());
  EXPECT_EQ(footprint_of(server.pid()).descriptors, before.descriptors);
  EXPECT_EQ(server.ask("GET key\r\n"), "$5\r\nvalue\r\n");
}

}  // namespace
}  // namespace clew::inline_
