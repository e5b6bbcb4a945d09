// SPDX-License-Identifier: Apache-2.0
#include "live/server.h"

#include <chrono>
#include <cstring>
#include <stdexcept>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace clew::live {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "clew-live-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = name;
  fs::permissions(path_, fs::perms::all);  // Servers may run as somebody else.
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

bool present(const std::string& program) {
  return access(program.c_str(), X_OK) == 0;
}

FileDescriptor connect_to(const std::string& socket_path) {
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

// Until the server listens; it says so by accepting.
void wait_for_socket(const Child& server, const std::string& socket_path) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!connect_to(socket_path).valid()) {
    if (!server.running() || std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("the server does not listen at " + socket_path);
    }
    sched_yield();
  }
}

std::string output_of(const ChildOptions& options, const std::string& input) {
  Child child(options);
  if (!input.empty()) child.write_line(input);
  child.close_input();
  Child::End end = child.wait_for_end();
  EXPECT_EQ(end.status, 0) << options.arguments[0] << ": " << end.error;
  return end.output;
}

Redis::Redis()
    : server_({.arguments = {"redis-server", "--port", "0", "--unixsocket", socket(), "--save", "",
                             "--dir", folder_.path(), "--enable-debug-command", "yes"}}) {
  wait_for_socket(server_, socket());
}

std::string Redis::work() const {
  output_of({.arguments = {"redis-benchmark", "-s", socket(), "-n", "100000", "-P", "16", "-q",
                           "-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,mset"}});
  return output_of({.arguments = {"redis-cli", "-s", socket()}},
                   "flushall\n"
                   "eval \"for i=1,20000 do redis.call('set','k'..i,i*i) end return 1\" 0\n"
                   "eval \"for i=1,2000 do redis.call('zadd','z',i%97,'m'..i) end return 2\" 0\n"
                   "sort z by nosort limit 0 5\nzrange z 10 20 withscores\nget k777\ndbsize\n"
                   "debug digest");
}

Child Redis::endless_load(const std::string& commands) const {
  return Child({.arguments = {"redis-benchmark", "-s", socket(), "-l", "-q", "-P", "16", "-n",
                              "100000", "-r", "1000", "-t", commands}});
}

}  // namespace clew::live
