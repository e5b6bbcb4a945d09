// SPDX-License-Identifier: Apache-2.0
#include "cluster/bus_world.h"

#include <chrono>

#include <poll.h>

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

}  // namespace

std::unique_ptr<BusWorld> make_world(std::string_view kind) {
  if (kind == "local") return std::make_unique<LocalWorld>();
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

bool wait_until(Bus& bus, const std::function<bool()>& is_so) {
  constexpr auto kPatience = std::chrono::seconds(30);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!is_so()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd one = {.fd = bus.descriptor(), .events = POLLIN, .revents = 0};
    (void)poll(&one, 1, static_cast<int>(left.count()));
  }
  return true;
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
