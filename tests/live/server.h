// SPDX-License-Identifier: Apache-2.0
// What tests need to run a server of Debian: a folder, its socket, and redis itself under load.
#pragma once

#include <filesystem>
#include <string>

#include "base/file_descriptor.h"
#include "live/child.h"

namespace clew::live {

// Gone, with all that is in it, at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

bool present(const std::string& program);

// Not valid when nobody listens.
FileDescriptor connect_to(const std::string& socket_path);

// Until the server listens; it says so by accepting.
void wait_for_socket(const Child& server, const std::string& socket_path);

// What a program prints that ends with status 0.
std::string output_of(const ChildOptions& options, const std::string& input = "");

class Redis {
 public:
  Redis();
  [[nodiscard]] pid_t pid() const { return server_.pid(); }
  [[nodiscard]] std::string socket() const { return folder_.file("redis.sock"); }
  // Load, then commands with known answers, then a digest of all the data.
  [[nodiscard]] std::string work() const;
  // Runs until it is killed.
  [[nodiscard]] Child endless_load(const std::string& commands) const;

 private:
  TemporaryFolder folder_;
  Child server_;
};

}  // namespace clew::live
