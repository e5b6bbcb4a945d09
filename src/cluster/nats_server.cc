// SPDX-License-Identifier: Apache-2.0
#include "cluster/nats_server.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::cluster {
namespace {

constexpr const char* kServer = "/usr/sbin/nats-server";

std::string with_folder(std::string text, const std::string& folder) {
  constexpr std::string_view kWord = "FOLDER";
  for (size_t at = text.find(kWord); at != std::string::npos; at = text.find(kWord))
    text.replace(at, kWord.size(), folder);
  return text;
}

// Until the server says that it is ready; all that it said, if it ends before.
std::string wait_for_ready(int log) {
  std::string said;
  std::array<char, 4096> some{};
  while (said.find("Server is ready") == std::string::npos) {
    const ssize_t size = read(log, some.data(), some.size());
    if (size <= 0) return said;
    said.append(some.data(), static_cast<size_t>(size));
  }
  return {};
}

}  // namespace

bool NatsServer::is_installed() {
  return access(kServer, X_OK) == 0;
}

int NatsServer::free_port() {
  const FileDescriptor any(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(any.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(any.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

NatsServer::NatsServer(std::string settings, Keeps keeps)
    : settings_(std::move(settings)), keeps_(keeps), port_(free_port()) {
  std::string name = (std::filesystem::temp_directory_path() / "clew-nats-XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
}

NatsServer::~NatsServer() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void NatsServer::start() {
  const std::string configuration = (folder_ / "server.conf").string();
  const std::string logs = keeps_ == Keeps::Nothing ? ""
                                                    : fmt::format("jetstream {{ store_dir: {} }}\n",
                                                                  (folder_ / "store").string());
  std::ofstream(configuration) << fmt::format("listen: \"{}:{}\"\n", address_, port_) << logs
                               << with_folder(settings_, folder_.string());
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  // Read until it is ready, and kept open: what it says later fits into the pipe, as one of three
  // says a lot of the others.
  constexpr int kLogBytes = 1 << 20;
  (void)fcntl(ends[1], F_SETPIPE_SZ, kLogBytes);
  log_ = FileDescriptor(ends[0]);
  FileDescriptor its_end(ends[1]);
  FileDescriptor network(network_.empty() ? -1 : open(network_.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(network_.empty() || network.valid()) << network_;
  const pid_t parent = getpid();
  pid_ = fork();
  ASSERT_GE(pid_, 0);
  if (pid_ == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(its_end.get(), STDOUT_FILENO);
    (void)dup2(its_end.get(), STDERR_FILENO);
    const bool is_there = network_.empty() || setns(network.get(), CLONE_NEWNET) == 0;
    if (is_there && getppid() == parent)
      execl(kServer, kServer, "-c", configuration.c_str(), nullptr);
    _exit(1);
  }
  its_end.reset();
  network.reset();
  const std::string said = wait_for_ready(log_.get());
  ASSERT_TRUE(said.empty()) << said;
}

void NatsServer::kill() {
  if (pid_ < 0) return;
  (void)::kill(pid_, SIGKILL);
  (void)waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void NatsServer::pause() {
  (void)::kill(pid_, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
  ASSERT_TRUE(WIFSTOPPED(status));
}

void NatsServer::resume() {
  (void)::kill(pid_, SIGCONT);
}

std::string NatsServer::place(const std::string& host) const {
  return fmt::format("{}:{}", host, port_);
}

NatsCluster::NatsCluster() {
  std::string routes;
  for (int& port : ports_) {
    port = NatsServer::free_port();
    routes += fmt::format("{}nats-route://127.0.0.1:{}", routes.empty() ? "" : ", ", port);
  }
  for (size_t i = 0; i < servers_.size(); ++i) {
    servers_[i].configure(
        fmt::format("server_name: s{}\ncluster {{ name: test, listen: \"127.0.0.1:{}\", "
                    "routes: [{}] }}\n",
                    i, ports_[i], routes));
  }
}

void NatsCluster::start() {
  for (NatsServer& server : servers_)
    server.start();
}

std::string NatsCluster::url() const {
  return fmt::format("nats://{},nats://{},nats://{}", servers_[0].place(), servers_[1].place(),
                     servers_[2].place());
}

}  // namespace clew::cluster
