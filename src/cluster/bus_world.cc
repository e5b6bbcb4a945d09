// SPDX-License-Identifier: Apache-2.0
#include "cluster/bus_world.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <poll.h>

#include "cluster/bus_faulty.h"
#include "cluster/bus_nats.h"
#include "cluster/nats_server.h"

namespace clew::cluster {
namespace {

class LocalWorld final : public BusWorld {
 public:
  Expected<std::unique_ptr<Bus>> connect() override { return hub_.connect(); }
  Expected<std::unique_ptr<Bus>> connect_restricted() override {
    return hub_.connect({.publish = {"open.>"}, .subscribe = {"open.>"}});
  }
  void stop() override { hub_.set_reachable(false); }
  void start() override { hub_.set_reachable(true); }

 private:
  LocalHub hub_;
};

// With no faults but those that a test asks for.
class FaultyWorld final : public BusWorld {
 public:
  Expected<std::unique_ptr<Bus>> connect() override { return hub_.connect("test"); }
  Expected<std::unique_ptr<Bus>> connect_restricted() override {
    return hub_.connect("test", {.publish = {"open.>"}, .subscribe = {"open.>"}});
  }
  void stop() override { hub_.set_reachable(false); }
  void start() override { hub_.set_reachable(true); }

 private:
  FaultyHub hub_{1, {}};
};

class NatsWorld final : public BusWorld {
 public:
  NatsWorld() { server_.start(); }
  Expected<std::unique_ptr<Bus>> connect() override { return connect_as("free"); }
  Expected<std::unique_ptr<Bus>> connect_restricted() override { return connect_as("restricted"); }
  void stop() override { server_.kill(); }
  void start() override { server_.start(); }

 private:
  [[nodiscard]] Expected<std::unique_ptr<Bus>> connect_as(const std::string& user) const {
    return connect_nats(
        {.url = fmt::format("nats://{}:secret@{}", user, server_.place()), .name = "test"});
  }

  NatsServer server_{R"(
      authorization {
        users: [
          { user: free, password: secret }
          { user: restricted, password: secret,
            permissions: { publish: "open.>", subscribe: ["open.>", "_INBOX.>"] } }
        ]
      })"};
};

}  // namespace

std::unique_ptr<BusWorld> make_world(std::string_view kind) {
  if (kind == "local") return std::make_unique<LocalWorld>();
  if (kind == "faulty") return std::make_unique<FaultyWorld>();
  if (kind == "nats" && NatsServer::is_installed()) return std::make_unique<NatsWorld>();
  return nullptr;
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(const Bytes& bytes) {
  std::string text;
  for (const std::byte one : bytes)
    text += static_cast<char>(one);
  return text;
}

namespace {

bool look_until(Bus& bus, const std::function<bool()>& is_so, std::chrono::milliseconds at_most) {
  constexpr auto kPatience = std::chrono::seconds(30);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!is_so()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd one = {.fd = bus.descriptor(), .events = POLLIN, .revents = 0};
    (void)poll(&one, 1, static_cast<int>(std::min(left, at_most).count()));
  }
  return true;
}

}  // namespace

bool wait_until(Bus& bus, const std::function<bool()>& is_so) {
  return look_until(bus, is_so, std::chrono::hours(1));
}

bool try_until(Bus& bus, const std::function<bool()>& is_so) {
  return look_until(bus, is_so, std::chrono::milliseconds(50));
}

std::optional<Message> next_message(Bus& bus) {
  std::optional<Message> message;
  (void)wait_until(bus, [&] {
    message = bus.next();
    return message.has_value();
  });
  return message;
}

}  // namespace clew::cluster
