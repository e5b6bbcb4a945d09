// SPDX-License-Identifier: Apache-2.0
// A NATS server of Debian's package for tests: on a free port of loopback, with its files in a
// folder that goes with it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include <sys/types.h>

#include "base/file_descriptor.h"

namespace clew::cluster {

class NatsServer {
 public:
  static bool is_installed();

  // `settings` are lines of its configuration, besides where it listens and keeps its files; in
  // them FOLDER is its folder.
  enum class Keeps : uint8_t { Logs, Nothing };
  explicit NatsServer(std::string settings, Keeps keeps = Keeps::Logs);
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  void start();  // On the same port and files as before. Returns when it listens.
  void kill();   // -9
  void pause();  // Returns when it stands still.
  void resume();
  void configure(std::string settings) { settings_ = std::move(settings); }
  // Else it listens on loopback.
  void listen_on(std::string address) { address_ = std::move(address); }
  // Where it runs: a network, as /proc/PID/ns/net names it.
  void run_in(std::string network) { network_ = std::move(network); }

  static int free_port();
  // "host:port"
  [[nodiscard]] std::string place(const std::string& host = "127.0.0.1") const;
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  std::string settings_;
  Keeps keeps_;
  std::filesystem::path folder_;
  std::string address_ = "127.0.0.1";
  std::string network_;
  int port_ = 0;
  pid_t pid_ = -1;
  FileDescriptor log_;
};

// Three of them that keep each entry three times.
class NatsCluster {
 public:
  NatsCluster();
  void start();
  // Of all of them.
  [[nodiscard]] std::string url() const;
  NatsServer& server(size_t i) { return servers_[i]; }

 private:
  std::array<int, 3> ports_{};
  std::array<NatsServer, 3> servers_{NatsServer(""), NatsServer(""), NatsServer("")};
};

}  // namespace clew::cluster
