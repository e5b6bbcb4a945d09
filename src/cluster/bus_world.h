// SPDX-License-Identifier: Apache-2.0
// What the tests of buses run in: a bus of some kind whose server, or what stands for it, can go
// and come back; and words for tests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cluster/bus.h"
#include "cluster/bus_local.h"

namespace clew::cluster {

class BusWorld {
 public:
  virtual ~BusWorld() = default;
  virtual Expected<std::unique_ptr<Bus>> connect() = 0;
  // An end that may publish, append and subscribe only below "open." and to its own inbox.
  virtual Expected<std::unique_ptr<Bus>> connect_restricted() = 0;
  virtual void stop() = 0;
  virtual void start() = 0;
};

// "local", "faulty", "nats". None: it cannot be had on this machine.
std::unique_ptr<BusWorld> make_world(std::string_view kind);

Bytes bytes_of(std::string_view text);
std::string text_of(const Bytes& bytes);

// Waits for the end's descriptor until `is_so`; false: it took too long.
bool wait_until(Bus& bus, const std::function<bool()>& is_so);
// The same for calls that are to be made again after a while.
bool try_until(Bus& bus, const std::function<bool()>& is_so);
std::optional<Message> next_message(Bus& bus);

}  // namespace clew::cluster
