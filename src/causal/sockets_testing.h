// SPDX-License-Identifier: Apache-2.0
// Two servers behind each other, with clients that nobody looks at, whose messages a test writes
// down.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "causal/sockets.h"

namespace clew::causal {

inline constexpr Thread kFront{1, 1};
inline constexpr Thread kOther{1, 11};  // Of the same program.
inline constexpr Thread kBack{2, 2};

// An end of a connection, as its program has it.
struct End {
  uint64_t socket = 0;
  StreamKey out;
  bool accepted = false;
};

class KnownProfiles final : public Profiles {
 public:
  const Profile* of(int64_t pid) override {
    const auto found = known.find(pid);
    return found == known.end() ? nullptr : &found->second;
  }
  void forks(int64_t parent, int64_t child) override {
    if (known.contains(parent)) known[child] = known[parent];
  }
  void executes(int64_t pid) override { known.erase(pid); }
  void ends(int64_t pid) override { known.erase(pid); }
  std::string name_of(int64_t pid) override { return std::to_string(pid); }
  bool is_guessed(int64_t) override { return false; }

  std::map<int64_t, Profile> known;
};

class SocketsTest : public testing::Test {
 protected:
  SocketsTest() : sockets_(graph_, &known_) {
    profiles_[1] = {.onward = Onward::Last, .how = EdgeClass::Recipe};
    profiles_[2] = {.onward = Onward::Last, .how = EdgeClass::Recipe};
  }

  // Both ends of a connection; the second one accepted it.
  std::pair<End, End> connection() {
    const auto port = static_cast<uint16_t>(++last_port_);
    const StreamKey out{.from = 10, .to = 20, .from_port = port, .to_port = 80};
    return {{.socket = 1000U + port, .out = out, .accepted = false},
            {.socket = 2000U + port, .out = out.reversed(), .accepted = true}};
  }
  End client() { return connection().second; }
  void read(Thread thread, const End& end, ByteRange bytes) {
    sockets_.receive({.thread = thread,
                      .socket = end.socket,
                      .out = end.out,
                      .bytes = bytes,
                      .accepted = end.accepted});
  }
  void write(Thread thread, const End& end, ByteRange bytes) {
    sockets_.send({.thread = thread,
                   .socket = end.socket,
                   .out = end.out,
                   .bytes = bytes,
                   .accepted = end.accepted});
  }
  std::optional<Moment> event(Thread thread) { return graph_.event(thread); }
  bool before(const std::optional<Moment>& a, const std::optional<Moment>& b) {
    if (!a || !b || a->request != b->request) return false;
    for (const Reach& reach : graph_.before(*b)) {
      if (reach.segment == a->segment) return a->step <= reach.step;
    }
    return false;
  }

  KnownProfiles known_;
  std::map<int64_t, Profile>& profiles_ = known_.known;
  Graph graph_;
  Sockets sockets_;
  uint16_t last_port_ = 0;
};

}  // namespace clew::causal
